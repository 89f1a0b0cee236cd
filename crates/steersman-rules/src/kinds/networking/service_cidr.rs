//! `ServiceCIDR`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `ServiceCIDR`.
pub(super) const KIND: Kind = Kind {
    plural: "servicecidrs",
    name: "ServiceCIDR",
    traits: &[Trait::StatusAlone, Trait::Status],
    rules: &old::network::SERVICE_CIDR,
    ..Kind::of_cluster(super::GROUP, "v1")
};
