//! The kinds of `authentication.k8s.io`.

mod self_subject_review;
mod token_review;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "authentication.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[self_subject_review::KIND, token_review::KIND];
