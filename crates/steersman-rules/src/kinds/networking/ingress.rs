//! `Ingress`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `Ingress`.
pub(super) const KIND: Kind = Kind {
    plural: "ingresses",
    name: "Ingress",
    short_names: &["ing"],
    traits: &[Trait::Generation, Trait::Status],
    storage_prefix: Some("ingress"),
    rules: &old::ingress::INGRESS,
    ..Kind::namespaced(super::GROUP, "v1")
};
