//! The kinds of `flowcontrol.apiserver.k8s.io`: which requests belong together, and how many of them
//! the server serves at once.

mod conditions;
mod flow_schema;
mod mandatory;
mod priority_level_configuration;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[flow_schema::KIND, priority_level_configuration::KIND];
