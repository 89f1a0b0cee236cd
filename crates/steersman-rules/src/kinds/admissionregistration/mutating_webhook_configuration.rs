//! `MutatingWebhookConfiguration`: webhooks that may change objects on their way in.

use super::webhook;
use crate::kinds::kind::{Kind, Trait};
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::document::{each, fill};

/// What is said of `MutatingWebhookConfiguration`.
pub(super) const KIND: Kind = Kind {
    plural: "mutatingwebhookconfigurations",
    name: "MutatingWebhookConfiguration",
    traits: &[Trait::ApiExtensions, Trait::Generation, Trait::VersionedUpdate],
    rules: &RULES,
    columns: webhook::columns,
    effect: Some(Effect::WebhookConfiguration),
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: |configuration| {
        each(configuration, "webhooks", |webhook| {
            webhook::defaults(webhook);
            fill(webhook, "reinvocationPolicy", "Never");
        });
    },
    check: webhook::check,
    ..Rules::NONE
};
