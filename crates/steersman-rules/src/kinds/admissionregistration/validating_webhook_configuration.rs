//! `ValidatingWebhookConfiguration`: webhooks that may refuse requests, and change nothing.

use super::webhook;
use crate::kinds::kind::{Kind, Trait};
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::document::each;

/// What is said of `ValidatingWebhookConfiguration`.
pub(super) const KIND: Kind = Kind {
    plural: "validatingwebhookconfigurations",
    name: "ValidatingWebhookConfiguration",
    traits: &[Trait::ApiExtensions, Trait::Generation, Trait::VersionedUpdate],
    rules: &RULES,
    columns: webhook::columns,
    effect: Some(Effect::WebhookConfiguration),
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: |configuration| each(configuration, "webhooks", webhook::defaults),
    check: webhook::check,
    ..Rules::NONE
};
