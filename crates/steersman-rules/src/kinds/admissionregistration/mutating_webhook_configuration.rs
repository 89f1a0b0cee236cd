//! `MutatingWebhookConfiguration`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `MutatingWebhookConfiguration`.
pub(super) const KIND: Kind = Kind {
    plural: "mutatingwebhookconfigurations",
    name: "MutatingWebhookConfiguration",
    traits: &[Trait::ApiExtensions, Trait::Generation, Trait::VersionedUpdate],
    rules: &old::webhook::MUTATING,
    ..Kind::of_cluster(super::GROUP, "v1")
};
