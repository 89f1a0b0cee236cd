//! The kinds of `apiextensions.k8s.io`.

pub mod custom_resource_definition;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "apiextensions.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[custom_resource_definition::KIND];
