//! `IngressClass`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `IngressClass`.
pub(super) const KIND: Kind = Kind {
    plural: "ingressclasses",
    name: "IngressClass",
    traits: &[Trait::Generation],
    rules: &old::ingress::INGRESS_CLASS,
    ..Kind::of_cluster(super::GROUP, "v1")
};
