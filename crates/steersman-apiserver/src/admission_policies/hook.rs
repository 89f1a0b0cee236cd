//! A policy and its bindings as they are used: read once when they change, not at each request.

use std::sync::Arc;

use serde_json::Value;
use steersman_rules::admission_policy::Policy;
use steersman_rules::metadata;
use steersman_rules::selector::LabelSelector;

use crate::admission_registration::{Rule, Subject};
use crate::document::items;

/// A policy, and where it applies.
#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) policy: Arc<Registered>,
    /// By name.
    pub(crate) bindings: Vec<Arc<Binding>>,
}

/// A policy, and what it is about.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) policy: Policy,
    pub(crate) constraints: Constraints,
}

/// A binding.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) name: String,
    /// The name of its policy.
    pub(crate) policy: String,
    /// What else must hold for the policy to apply.
    pub(crate) constraints: Option<Constraints>,
    pub(crate) param_ref: Option<ParamRef>,
    /// What a policy that judges leads to: `Deny`, `Warn` or `Audit`.
    pub(crate) actions: Vec<String>,
}

/// Where the parameters of a policy are.
#[derive(Debug)]
pub(crate) struct ParamRef {
    /// Empty, if they are selected.
    pub(crate) name: String,
    /// Empty, if it is that of the request.
    pub(crate) namespace: String,
    pub(crate) selector: Option<LabelSelector>,
    /// Whether requests are refused if there are none.
    pub(crate) denies: bool,
}

/// Which requests a policy or a binding is about.
#[derive(Debug)]
pub(crate) struct Constraints {
    pub(crate) rules: Vec<NamedRule>,
    pub(crate) excluded: Vec<NamedRule>,
    /// Whether rules also match other versions of what they name.
    pub(crate) equivalent: bool,
    pub(crate) namespaces: LabelSelector,
    pub(crate) objects: LabelSelector,
}

/// A rule that may be about some objects only.
#[derive(Debug)]
pub(crate) struct NamedRule {
    pub(crate) rule: Rule,
    /// Empty, if it is about all.
    names: Vec<String>,
}

impl Registered {
    pub(super) fn of(document: &Value, compile: fn(&Value) -> Policy) -> Self {
        let constraints = Constraints::of(&document["spec"]["matchConstraints"]);
        Self { policy: compile(document), constraints }
    }
}

impl Binding {
    pub(super) fn of(document: &Value) -> Self {
        let spec = &document["spec"];
        let part = |field: &str| Some(&spec[field]).filter(|value| value.is_object());
        Self {
            name: metadata::text(document, "name").to_owned(),
            policy: text(&spec["policyName"]),
            constraints: part("matchResources").map(Constraints::of),
            param_ref: part("paramRef").map(ParamRef::of),
            actions: items(&spec["validationActions"]).iter().map(text).collect(),
        }
    }
}

impl ParamRef {
    fn of(reference: &Value) -> Self {
        let selector = &reference["selector"];
        Self {
            name: text(&reference["name"]),
            namespace: text(&reference["namespace"]),
            selector: selector.is_object().then(|| LabelSelector::of_document(selector)),
            denies: reference["parameterNotFoundAction"] == "Deny",
        }
    }
}

impl Constraints {
    fn of(constraints: &Value) -> Self {
        let rules = |field: &str| items(&constraints[field]).iter().map(NamedRule::of).collect();
        Self {
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
            equivalent: constraints["matchPolicy"] == "Equivalent",
            namespaces: LabelSelector::of_document(&constraints["namespaceSelector"]),
            objects: LabelSelector::of_document(&constraints["objectSelector"]),
        }
    }
}

impl NamedRule {
    fn of(rule: &Value) -> Self {
        let names = items(&rule["resourceNames"]).iter().map(text).collect();
        Self { rule: Rule::of(rule), names }
    }

    pub(crate) fn matches(&self, subject: Subject<'_>, name: &str) -> bool {
        self.rule.matches(subject)
            && (self.names.is_empty() || self.names.iter().any(|n| n == name))
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
