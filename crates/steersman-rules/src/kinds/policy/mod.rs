//! The kinds of `policy`.

mod pod_disruption_budget;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "policy";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[pod_disruption_budget::KIND];
