//! `VolumeAttachment`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `VolumeAttachment`.
pub(super) const KIND: Kind = Kind {
    plural: "volumeattachments",
    name: "VolumeAttachment",
    traits: &[Trait::VersionedUpdate, Trait::StatusAlone, Trait::Status],
    rules: &old::storage::VOLUME_ATTACHMENT,
    ..Kind::of_cluster(super::GROUP, "v1")
};
