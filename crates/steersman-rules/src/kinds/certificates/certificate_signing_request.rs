//! `CertificateSigningRequest`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `CertificateSigningRequest`.
pub(super) const KIND: Kind = Kind {
    plural: "certificatesigningrequests",
    name: "CertificateSigningRequest",
    short_names: &["csr"],
    traits: &[Trait::Approval, Trait::Status],
    selectable_fields: &["spec.signerName"],
    rules: &old::certificate::REQUEST,
    ..Kind::of_cluster(super::GROUP, "v1")
};
