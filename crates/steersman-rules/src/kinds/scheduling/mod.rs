//! The kinds of `scheduling.k8s.io`.

mod priority_class;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "scheduling.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[priority_class::KIND];
