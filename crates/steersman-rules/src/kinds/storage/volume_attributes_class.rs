//! `VolumeAttributesClass`.

use crate::kinds::kind::Kind;
use crate::kinds::old;

/// What is said of `VolumeAttributesClass`.
pub(super) const KIND: Kind = Kind {
    plural: "volumeattributesclasses",
    name: "VolumeAttributesClass",
    short_names: &["vac"],
    rules: &old::storage::VOLUME_ATTRIBUTES_CLASS,
    ..Kind::of_cluster(super::GROUP, "v1")
};
