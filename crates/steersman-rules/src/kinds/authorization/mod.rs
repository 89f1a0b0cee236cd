//! The kinds of `authorization.k8s.io`.

mod local_subject_access_review;
mod self_subject_access_review;
mod self_subject_rules_review;
mod subject_access_review;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "authorization.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[
    local_subject_access_review::KIND,
    self_subject_access_review::KIND,
    self_subject_rules_review::KIND,
    subject_access_review::KIND,
];
