//! Resource quotas: which resources they may count, and in which scopes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::kinds::kind::{Kind, Trait};
use crate::quantity::Quantity;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{items, text};
use crate::rules::internal;
use crate::rules::resource_name::{self, is_compute, is_quota_resource};
use crate::table::cells::printed;
use crate::table::{Column, age};

/// What is said of `ResourceQuota`.
pub(super) const KIND: Kind = Kind {
    plural: "resourcequotas",
    name: "ResourceQuota",
    short_names: &["quota"],
    traits: &[Trait::Status],
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const SCOPES: &[&str] = &[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];

const RULES: Rules = Rules {
    status: Some(|| json!({})),
    check: |quota, _, errors| check_spec(&quota.at("spec"), errors),
    change,
    check_status: |quota, _, errors| {
        let status = quota.at("status");
        for list in ["hard", "used"] {
            amounts(&status, list, errors);
        }
    },
    warn: |quota, old| if old.is_none() { warnings(quota) } else { Vec::new() },
    ..Rules::NONE
};

/// Who may ask for more than they may have.
fn warnings(quota: &Value) -> Vec<String> {
    let hard = &quota["spec"]["hard"];
    let mut warnings = Vec::new();
    for name in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let mut asked = format!("requests.{name}");
        // Two are also counted by the name alone.
        if hard[&asked].is_null() && ["cpu", "memory"].contains(&name) {
            name.clone_into(&mut asked);
        }
        let limited = format!("limits.{name}");
        if let (Some(most), Some(limit)) =
            (Quantity::of(&hard[&asked]), Quantity::of(&hard[&limited]))
            && most > limit
        {
            warnings.push(format!(
                "ResourceQuota {asked} ({most}) should be less than {limited} ({limit})"
            ));
        }
    }
    warnings
}

fn amounts(part: &At<'_, '_>, list: &str, errors: &mut Errors) {
    for (name, amount) in part.at(list).entries() {
        resource_name::check(name, &amount, errors);
        if !name.contains('/') && !is_quota_resource(name) {
            errors.push(amount.invalid_value(name, "must be a standard resource for quota"));
        }
        resource_name::check_amount(name, &amount, errors);
    }
}

fn check_spec(spec: &At<'_, '_>, errors: &mut Errors) {
    amounts(spec, "hard", errors);
    let scopes = spec.at("scopes");
    let named: Vec<&str> = items(scopes.value).iter().map(text).collect();
    let hard = standard_resources(spec);
    for scope in &named {
        // Each of these shows all scopes.
        if errors.is_full() {
            break;
        }
        if !SCOPES.contains(scope) {
            errors.push(scopes.invalid("unsupported scope"));
        }
        for _ in misfits(&hard, scope) {
            errors.push(scopes.invalid("unsupported scope applied to resource"));
        }
    }
    conflicts(&named, &scopes, errors);
    let selector = spec.at("scopeSelector");
    if selector.is_set() {
        scope_selector(spec, &selector, errors);
    }
}

/// The resources of a quota that scopes apply to or not, of which there are only so many.
fn standard_resources<'v>(spec: &At<'v, '_>) -> Vec<&'v str> {
    let hard = spec.value["hard"].as_object().into_iter().flatten();
    hard.map(|(name, _)| name.as_str()).filter(|name| is_quota_resource(name)).collect()
}

/// The resources of a quota that a scope does not apply to.
fn misfits<'a>(hard: &'a [&'a str], scope: &'a str) -> impl Iterator<Item = &'a &'a str> {
    let pods =
        |name: &str| name == "pods" || (is_compute(name) && !name.ends_with("ephemeral-storage"));
    hard.iter().filter(move |name| !match scope {
        "BestEffort" => **name == "pods",
        "VolumeAttributesClass" => ["persistentvolumeclaims", "requests.storage"].contains(name),
        scope if SCOPES.contains(&scope) => pods(name),
        _ => true,
    })
}

fn conflicts(scopes: &[&str], at: &At<'_, '_>, errors: &mut Errors) {
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|scope| scopes.contains(scope)) {
            errors.push(at.invalid("conflicting scopes"));
        }
    }
}

fn scope_selector(spec: &At<'_, '_>, selector: &At<'_, '_>, errors: &mut Errors) {
    const EXISTS: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
         ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
         ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
    let list = selector.at("matchExpressions");
    let at = list.path();
    let mut scopes = Vec::new();
    let hard = standard_resources(spec);
    for requirement in items(list.value) {
        // Each of these shows the whole selector.
        if errors.is_full() {
            break;
        }
        let requirement = At::new(requirement, &at);
        let scope = requirement.at("scopeName");
        let operator = requirement.at("operator");
        let values = requirement.at("values");
        if !SCOPES.contains(&scope.text()) {
            errors.push(scope.invalid("unsupported scope"));
        }
        for _ in misfits(&hard, scope.text()) {
            let detail = "unsupported scope applied to resource";
            let shown = internal::shown("ScopeSelector", selector.value);
            errors.push(FieldError::invalid_shown(at.clone(), &shown, detail));
        }
        let any = ["PriorityClass", "VolumeAttributesClass"].contains(&scope.text());
        if !any && SCOPES.contains(&scope.text()) && operator.text() != "Exists" {
            errors.push(operator.invalid(EXISTS));
        }
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => errors.push(values.required(
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(values.invalid(
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(operator.invalid("not a valid selector operator")),
        }
        scopes.push(text(&requirement.value["scopeName"]).to_owned());
    }
    let named: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let shown = &spec.value["scopes"];
    conflicts(&named, &At::new(shown, &at), errors);
}

/// The order of the scopes does not matter, nor how often one is named.
fn change(quota: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let set = |quota: &Value| -> BTreeSet<String> {
        items(&quota["spec"]["scopes"]).iter().map(|s| text(s).to_owned()).collect()
    };
    if set(quota.value) != set(old) {
        let spec = quota.at("spec");
        errors.push(spec.at("scopes").invalid("field is immutable"));
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("Request", |quota, _| usage(quota, false)),
        Column::text("Limit", |quota, _| usage(quota, true)),
        age(),
    ]
}

/// What a quota counts, as `name: used/hard`, limits apart from the rest.
fn usage(quota: &Value, limits: bool) -> Value {
    let status = &quota["status"];
    let hard = status["hard"].as_object().into_iter().flatten();
    let parts: Vec<_> = hard
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = match &status["used"][name] {
                Value::Null => "0".to_owned(),
                used => printed(used),
            };
            format!("{name}: {used}/{}", printed(hard))
        })
        .collect();
    parts.join(", ").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_held_to_each_rule() {
        let quota = json!({"spec": {"hard": {"a b": "1"}}});
        let errors = RULES.validate_create(&quota);
        let told: Vec<&str> = errors.iter().map(|error| error.text.as_str()).collect();
        assert!(told[0].starts_with("Invalid value: \"a b\": name part must"), "{told:?}");
        let standard = "Invalid value: \"a b\": must be a standard resource for quota";
        assert_eq!(told[1..], [standard]);
    }

    #[test]
    fn a_new_quota_that_lets_ask_for_more_than_it_allows_is_warned_of() {
        for (hard, expected) in [
            (
                json!({"requests.cpu": "2", "limits.cpu": "1"}),
                vec!["ResourceQuota requests.cpu (2) should be less than limits.cpu (1)"],
            ),
            (
                json!({"memory": "2Gi", "limits.memory": "1Gi", "limits.cpu": "1"}),
                vec!["ResourceQuota memory (2Gi) should be less than limits.memory (1Gi)"],
            ),
            (json!({"requests.cpu": "1", "cpu": "3", "limits.cpu": "1000m"}), vec![]),
        ] {
            let quota = json!({"spec": {"hard": hard}});
            assert_eq!(RULES.warnings(&quota, None), expected, "{quota}");
            assert_eq!(RULES.warnings(&quota, Some(&quota)), [""; 0]);
        }
    }
}
