//! `StorageClass`.

use crate::kinds::kind::Kind;
use crate::kinds::old;

/// What is said of `StorageClass`.
pub(super) const KIND: Kind = Kind {
    plural: "storageclasses",
    name: "StorageClass",
    short_names: &["sc"],
    rules: &old::storage::STORAGE_CLASS,
    ..Kind::of_cluster(super::GROUP, "v1")
};
