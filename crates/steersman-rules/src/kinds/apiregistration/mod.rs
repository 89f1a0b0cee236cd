//! The kinds of `apiregistration.k8s.io`.

mod api_service;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "apiregistration.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[api_service::KIND];
