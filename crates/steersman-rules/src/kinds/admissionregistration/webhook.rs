//! What the two kinds of webhook configurations share: whom to call, about what, and how.

use std::collections::HashSet;

use serde_json::Value;

use super::matching::{
    FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION_POLICIES, match_conditions, match_defaults,
    rule_with_operations,
};
use crate::admission_policy::Compiler;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::resource::Effect;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill, text, within_existing};
use crate::rules::label_selector::label_selector;
use crate::rules::webhook_client::client_config;
use crate::table::cells::len;
use crate::table::{Column, age};

const REVIEW_VERSIONS: &[&str] = &["v1", "v1beta1"];

/// What is said of both kinds of configurations.
pub(super) const CONFIGURATION: Kind = Kind {
    traits: &[Trait::ApiExtensions, Trait::Generation, Trait::VersionedUpdate],
    columns,
    effect: Some(Effect::WebhookConfiguration),
    ..Kind::of_cluster(super::GROUP, "v1")
};

/// Fills in how one webhook is called.
pub(super) fn defaults(webhook: &mut Value) {
    fill(webhook, "failurePolicy", "Fail");
    fill(webhook, "timeoutSeconds", 10);
    match_defaults(webhook);
    each(webhook, "rules", |rule| fill(rule, "scope", "*"));
    within_existing(webhook, "clientConfig", |client| {
        within_existing(client, "service", |service| fill(service, "port", 443));
    });
}

/// The mistakes in a configuration of webhooks; their names are its keys.
pub(super) fn check(configuration: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for webhook in configuration.each("webhooks") {
        check_webhook(&webhook, errors);
        check_review_versions(&webhook, errors);
        let name = webhook.at("name");
        if !name.is_empty() && !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
    }
}

fn check_webhook(webhook: &At<'_, '_>, errors: &mut Errors) {
    let name = webhook.at("name");
    names::fully_qualified_name(name.text(), &name.path(), errors);
    webhook.each("rules").for_each(|rule| rule_with_operations(&rule, errors));
    webhook.at("failurePolicy").one_of(FAILURE_POLICIES, errors);
    webhook.at("matchPolicy").one_of(MATCH_POLICIES, errors);
    let effects = webhook.at("sideEffects");
    if effects.is_absent() {
        errors.push(effects.required("must specify one of None, NoneOnDryRun"));
    }
    effects.one_of(&["None", "NoneOnDryRun"], errors);
    let timeout = webhook.at("timeoutSeconds");
    if timeout.is_set() && !(1..=30).contains(&timeout.number_or_zero()) {
        errors.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    label_selector(&webhook.at("namespaceSelector"), errors);
    label_selector(&webhook.at("objectSelector"), errors);
    webhook.at("reinvocationPolicy").one_of(REINVOCATION_POLICIES, errors);
    client_config(&webhook.at("clientConfig"), errors);
    match_conditions(webhook, &Compiler::new(false), errors);
}

fn check_review_versions(webhook: &At<'_, '_>, errors: &mut Errors) {
    let all = webhook.at("admissionReviewVersions");
    if all.is_empty() {
        return errors.push(all.required("must specify one of v1, v1beta1"));
    }
    let listed: Vec<&str> = all.list().iter().map(text).collect();
    for (i, version) in webhook.each("admissionReviewVersions").enumerate() {
        if listed[..i].contains(&version.text()) {
            errors.push(version.invalid("duplicate version"));
        } else {
            version.follows(names::dns1035_label, errors);
        }
    }
    if !listed.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        errors.push(all.invalid("must include at least one of v1, v1beta1"));
    }
}

/// How many webhooks there are.
fn columns() -> Vec<Column> {
    vec![
        Column::count("Webhooks", |configuration, _| len(&configuration["webhooks"]).into()),
        age(),
    ]
}
