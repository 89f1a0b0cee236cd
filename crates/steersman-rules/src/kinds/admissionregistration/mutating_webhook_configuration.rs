//! `MutatingWebhookConfiguration`: webhooks that may change objects on their way in.

use super::reserved;
use super::webhook;
use crate::kinds::kind::Kind;
use crate::rules::Rules;
use crate::rules::document::{each, fill};

/// What is said of `MutatingWebhookConfiguration`.
pub(super) const KIND: Kind = Kind {
    plural: "mutatingwebhookconfigurations",
    name: "MutatingWebhookConfiguration",
    rules: &RULES,
    ..webhook::CONFIGURATION
};

const RULES: Rules = Rules {
    default: |configuration| {
        each(configuration, "webhooks", |webhook| {
            webhook::defaults(webhook);
            fill(webhook, "reinvocationPolicy", "Never");
        });
    },
    check: webhook::check,
    warn: reserved::warnings,
    ..Rules::NONE
};
