//! `ValidatingWebhookConfiguration`: webhooks that may refuse requests, and change nothing.

use super::reserved;
use super::webhook;
use crate::kinds::kind::Kind;
use crate::rules::Rules;
use crate::rules::document::each;

/// What is said of `ValidatingWebhookConfiguration`.
pub(super) const KIND: Kind = Kind {
    plural: "validatingwebhookconfigurations",
    name: "ValidatingWebhookConfiguration",
    rules: &RULES,
    ..webhook::CONFIGURATION
};

const RULES: Rules = Rules {
    default: |configuration| each(configuration, "webhooks", webhook::defaults),
    check: webhook::check,
    warn: reserved::warnings,
    ..Rules::NONE
};
