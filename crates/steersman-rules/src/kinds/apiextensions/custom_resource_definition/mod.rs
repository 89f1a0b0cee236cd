//! `CustomResourceDefinition`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `CustomResourceDefinition`.
pub(super) const KIND: Kind = Kind {
    plural: "customresourcedefinitions",
    name: "CustomResourceDefinition",
    short_names: &["crd", "crds"],
    traits: &[
        Trait::ApiExtensions,
        Trait::Generation,
        Trait::VersionedUpdate,
        Trait::Status,
        Trait::NoStatusTable,
    ],
    storage_prefix: Some("apiextensions.k8s.io/customresourcedefinitions"),
    rules: &old::definition::DEFINITION,
    ..Kind::of_cluster(super::GROUP, "v1")
};
