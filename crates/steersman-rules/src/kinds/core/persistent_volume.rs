//! `PersistentVolume`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `PersistentVolume`.
pub(super) const KIND: Kind = Kind {
    plural: "persistentvolumes",
    name: "PersistentVolume",
    short_names: &["pv"],
    traits: &[Trait::Status],
    rules: &old::volume::VOLUME,
    ..Kind::of_cluster(super::GROUP, "v1")
};
