//! `Job`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `Job`.
pub(super) const KIND: Kind = Kind {
    plural: "jobs",
    name: "Job",
    traits: &[Trait::All, Trait::Generation, Trait::Status],
    selectable_fields: &["status.successful"],
    rules: &old::batch::Job,
    ..Kind::namespaced(super::GROUP, "v1")
};
