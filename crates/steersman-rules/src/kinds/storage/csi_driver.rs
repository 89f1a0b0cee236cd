//! `CSIDriver`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `CSIDriver`.
pub(super) const KIND: Kind = Kind {
    plural: "csidrivers",
    name: "CSIDriver",
    traits: &[Trait::VersionedUpdate],
    rules: &old::storage::CSI_DRIVER,
    ..Kind::of_cluster(super::GROUP, "v1")
};
