//! `CSIStorageCapacity`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `CSIStorageCapacity`.
pub(super) const KIND: Kind = Kind {
    plural: "csistoragecapacities",
    name: "CSIStorageCapacity",
    traits: &[Trait::VersionedUpdate],
    rules: &old::storage::CSI_STORAGE_CAPACITY,
    ..Kind::namespaced(super::GROUP, "v1")
};
