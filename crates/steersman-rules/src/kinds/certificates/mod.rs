//! The kinds of `certificates.k8s.io`.

mod certificate_signing_request;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "certificates.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[certificate_signing_request::KIND];
