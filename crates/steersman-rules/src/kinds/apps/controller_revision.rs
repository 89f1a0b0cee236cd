//! `ControllerRevision`.

use crate::kinds::kind::Kind;
use crate::kinds::old;

/// What is said of `ControllerRevision`.
pub(super) const KIND: Kind = Kind {
    plural: "controllerrevisions",
    name: "ControllerRevision",
    rules: &old::revision::ControllerRevision,
    ..Kind::namespaced(super::GROUP, "v1")
};
