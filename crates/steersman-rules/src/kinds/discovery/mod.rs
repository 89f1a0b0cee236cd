//! `discovery.k8s.io`: the addresses behind services.

mod endpoint_slice;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "discovery.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[endpoint_slice::KIND];
