//! A configuration as it is used: read once when it changes, not at each request.

use std::time::Duration;

use serde_json::Value;
use steersman_cel::Program;
use steersman_rules::match_conditions;
use steersman_rules::metadata;
use steersman_rules::selector::LabelSelector;

use super::rules::Rule;
use crate::webhook_client::{Target, review_version};

/// One webhook of a configuration.
#[derive(Debug)]
pub(crate) struct Webhook {
    pub(crate) name: String,
    /// The name of its configuration.
    pub(crate) configuration: String,
    pub(crate) rules: Vec<Rule>,
    /// Whether rules also match other versions of what they name.
    pub(crate) equivalent: bool,
    pub(crate) namespaces: LabelSelector,
    pub(crate) objects: LabelSelector,
    /// What must hold of a request, too.
    pub(crate) conditions: Vec<Condition>,
    /// Whether a request is refused if the webhook cannot be asked.
    pub(crate) fails: bool,
    pub(crate) timeout: Duration,
    /// Whether it may be asked about what is not going to happen.
    pub(crate) knows_dry_run: bool,
    /// Whether it is asked again after others have changed the object.
    pub(crate) is_reinvoked: bool,
    /// The version of the reviews that it reads; `None` if it reads none that is known here.
    pub(crate) review_version: Option<&'static str>,
    pub(crate) target: Target,
}

/// A match condition.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) expression: String,
    /// What to evaluate, or why that cannot be done: it was stored by a server that does not check.
    pub(crate) program: Result<Program, String>,
}

impl Condition {
    fn of(condition: &Value) -> Self {
        let expression = condition["expression"].as_str().unwrap_or_default().to_owned();
        Self { program: match_conditions::compile(&expression), expression }
    }
}

/// The webhooks of a configuration, in its order.
pub(super) fn all(configuration: &Value) -> Vec<Webhook> {
    let name = metadata::text(configuration, "name");
    let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
    webhooks.map(|webhook| compile(name, webhook)).collect()
}

fn compile(configuration: &str, webhook: &Value) -> Webhook {
    let text = |field: &str| webhook[field].as_str().unwrap_or("");
    let rules = webhook["rules"].as_array().into_iter().flatten();
    let conditions = webhook["matchConditions"].as_array().into_iter().flatten();
    Webhook {
        name: text("name").to_owned(),
        configuration: configuration.to_owned(),
        rules: rules.map(Rule::of).collect(),
        equivalent: text("matchPolicy") != "Exact",
        namespaces: LabelSelector::of_document(&webhook["namespaceSelector"]),
        objects: LabelSelector::of_document(&webhook["objectSelector"]),
        conditions: conditions.map(Condition::of).collect(),
        fails: text("failurePolicy") != "Ignore",
        timeout: Duration::from_secs(webhook["timeoutSeconds"].as_u64().unwrap_or(10)),
        knows_dry_run: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
        is_reinvoked: text("reinvocationPolicy") == "IfNeeded",
        review_version: review_version(&webhook["admissionReviewVersions"]),
        target: Target::of(&webhook["clientConfig"]),
    }
}
