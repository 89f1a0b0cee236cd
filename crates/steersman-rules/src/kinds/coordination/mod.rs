//! The kinds of `coordination.k8s.io`.

mod lease;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "coordination.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[lease::KIND];
