//! A configuration as it is used: read once when it changes, not at each request.

use std::time::Duration;

use serde_json::Value;

use super::rules::Rule;
use crate::webhook_client::Target;
use steersman_rules::metadata;
use steersman_rules::selector::LabelSelector;

/// One webhook of a configuration.
#[derive(Debug)]
pub(super) struct Webhook {
    pub(super) name: String,
    /// The name of its configuration.
    pub(super) configuration: String,
    pub(super) rules: Vec<Rule>,
    /// Whether rules also match other versions of what they name.
    pub(super) equivalent: bool,
    pub(super) namespaces: LabelSelector,
    pub(super) objects: LabelSelector,
    pub(super) has_conditions: bool,
    /// Whether a request is refused if the webhook cannot be asked.
    pub(super) fails: bool,
    pub(super) timeout: Duration,
    /// Whether it may be asked about what is not going to happen.
    pub(super) knows_dry_run: bool,
    /// Whether it is asked again after others have changed the object.
    pub(super) is_reinvoked: bool,
    /// The version of the reviews that it reads; `None` if it reads none that is known here.
    pub(super) review_version: Option<&'static str>,
    pub(super) target: Target,
}

/// The webhooks of a configuration, in its order.
pub(super) fn webhooks(configuration: &Value) -> Vec<Webhook> {
    let name = metadata::text(configuration, "name");
    let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
    webhooks.map(|webhook| compile(name, webhook)).collect()
}

fn compile(configuration: &str, webhook: &Value) -> Webhook {
    let text = |field: &str| webhook[field].as_str().unwrap_or("");
    let rules = webhook["rules"].as_array().into_iter().flatten();
    let conditions = webhook["matchConditions"].as_array();
    Webhook {
        name: text("name").to_owned(),
        configuration: configuration.to_owned(),
        rules: rules.map(Rule::of).collect(),
        equivalent: text("matchPolicy") != "Exact",
        namespaces: LabelSelector::of_document(&webhook["namespaceSelector"]),
        objects: LabelSelector::of_document(&webhook["objectSelector"]),
        has_conditions: conditions.is_some_and(|conditions| !conditions.is_empty()),
        fails: text("failurePolicy") != "Ignore",
        timeout: Duration::from_secs(webhook["timeoutSeconds"].as_u64().unwrap_or(10)),
        knows_dry_run: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
        is_reinvoked: text("reinvocationPolicy") == "IfNeeded",
        review_version: review_version(&webhook["admissionReviewVersions"]),
        target: Target::of(&webhook["clientConfig"]),
    }
}

/// The first version that both sides know.
fn review_version(versions: &Value) -> Option<&'static str> {
    let mut versions = versions.as_array().into_iter().flatten();
    versions.find_map(|version| match version.as_str()? {
        "v1" => Some("v1"),
        "v1beta1" => Some("v1beta1"),
        _ => None,
    })
}
