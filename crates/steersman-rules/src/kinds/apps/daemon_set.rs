//! `DaemonSet`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `DaemonSet`.
pub(super) const KIND: Kind = Kind {
    plural: "daemonsets",
    name: "DaemonSet",
    short_names: &["ds"],
    traits: &[Trait::All, Trait::Generation, Trait::Status],
    rules: &old::daemonset::DaemonSet,
    ..Kind::namespaced(super::GROUP, "v1")
};
