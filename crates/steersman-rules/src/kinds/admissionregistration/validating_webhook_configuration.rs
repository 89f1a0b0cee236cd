//! `ValidatingWebhookConfiguration`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `ValidatingWebhookConfiguration`.
pub(super) const KIND: Kind = Kind {
    plural: "validatingwebhookconfigurations",
    name: "ValidatingWebhookConfiguration",
    traits: &[Trait::ApiExtensions, Trait::Generation, Trait::VersionedUpdate],
    rules: &old::webhook::VALIDATING,
    ..Kind::of_cluster(super::GROUP, "v1")
};
