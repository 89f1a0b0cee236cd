//! `Lease`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `Lease`.
pub(super) const KIND: Kind = Kind {
    plural: "leases",
    name: "Lease",
    traits: &[Trait::CreateOnUpdate, Trait::VersionedUpdate],
    rules: &old::scheduling::LEASE,
    ..Kind::namespaced(super::GROUP, "v1")
};
