//! The kinds of `node.k8s.io`.

mod runtime_class;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "node.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[runtime_class::KIND];
