//! Limits and quotas of a namespace: which resources they may name, and how much of each.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::field::FieldError;
use crate::names;
use crate::quantity::Quantity;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill, items, text, within};
use crate::rules::resource_name::{self, is_compute, is_quota_resource};

const SCOPES: &[&str] = &[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];

/// The strategy of limit ranges.
pub(in crate::kinds) const LIMIT_RANGE: Rules = Rules {
    default: |range| {
        within(range, "spec", |spec| each(spec, "limits", limit_defaults));
    },
    check: limit_range,
    ..Rules::NONE
};

/// The strategy of resource quotas.
pub(in crate::kinds) const RESOURCE_QUOTA: Rules = Rules {
    status: Some(|| json!({})),
    check: |quota, _, errors| quota_spec(&quota.at("spec"), errors),
    change: |quota, old, errors| {
        let set = |quota: &Value| -> BTreeSet<String> {
            items(&quota["spec"]["scopes"]).iter().map(|s| text(s).to_owned()).collect()
        };
        if set(quota.value) != set(old) {
            let spec = quota.at("spec");
            errors.push(spec.at("scopes").invalid("field is immutable"));
        }
    },
    check_status: |quota, _, errors| {
        let status = quota.at("status");
        for list in ["hard", "used"] {
            quota_amounts(&status, list, errors);
        }
    },
    ..Rules::NONE
};

fn limit_defaults(limit: &mut Value) {
    if limit["type"] != "Container" {
        return;
    }
    for (list, source) in
        [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")]
    {
        let known = limit[source].as_object().cloned().unwrap_or_default();
        if known.is_empty() && limit[list].is_null() {
            continue;
        }
        within(limit, list, |list| {
            known.into_iter().for_each(|(key, value)| fill(list, &key, value));
        });
    }
}

fn limit_range(range: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = range.at("spec");
    let mut seen: Vec<&str> = Vec::new();
    for limit in spec.each("limits") {
        let kind = limit.at("type");
        let before = errors.len();
        kind.follows(names::qualified_name, errors);
        let standard = ["Pod", "Container", "PersistentVolumeClaim"].contains(&kind.text());
        if errors.len() == before && !kind.text().contains('/') && !standard {
            errors.push(kind.invalid("must be a standard limit type or fully qualified"));
        }
        if seen.contains(&kind.text()) {
            errors.push(kind.duplicate());
        }
        seen.push(text(limit.value.get("type").unwrap_or(&Value::Null)));
        limit_lists(&limit, errors);
        limit_amounts(&limit, errors);
    }
}

fn limit_lists(limit: &At<'_, '_>, errors: &mut Errors) {
    let kind = text(&limit.value["type"]);
    let of_pod = kind == "Pod";
    for list in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        let part = limit.at(list);
        if of_pod && list.starts_with("default") {
            if !part.is_empty() {
                errors.push(part.forbidden("may not be specified when `type` is 'Pod'"));
            }
            continue;
        }
        for (name, entry) in limit.at(list).entries() {
            let sound = resource_name::check(name, &entry, errors);
            if sound && (of_pod || kind == "Container") {
                resource_name::check_of_container(name, &entry, errors);
            }
        }
    }
    let has = |list: &str| !limit.value[list]["storage"].is_null();
    if kind == "PersistentVolumeClaim" && !has("min") && !has("max") {
        errors.push(limit.at("limits").required(
            "either minimum or maximum storage value is required, but neither was provided",
        ));
    }
}

/// How the figures of one resource must be ordered: the list complained about, the two figures
/// compared, and the figure shown.
struct Order {
    at: &'static str,
    small: (&'static str, &'static str),
    large: (&'static str, &'static str),
    shown: &'static str,
}

const ORDERS: &[Order] = &[
    Order { at: "min", small: ("min", "min"), large: ("max", "max"), shown: "min" },
    Order {
        at: "defaultRequest",
        small: ("min", "min"),
        large: ("defaultRequest", "default request"),
        shown: "defaultRequest",
    },
    Order {
        at: "defaultRequest",
        small: ("defaultRequest", "default request"),
        large: ("max", "max"),
        shown: "defaultRequest",
    },
    Order {
        at: "defaultRequest",
        small: ("defaultRequest", "default request"),
        large: ("default", "default limit"),
        shown: "defaultRequest",
    },
    Order { at: "default", small: ("min", "min"), large: ("default", "default"), shown: "min" },
    Order { at: "default", small: ("default", "default"), large: ("max", "max"), shown: "max" },
];

fn limit_amounts(limit: &At<'_, '_>, errors: &mut Errors) {
    let lists = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];
    let names: BTreeSet<&String> =
        lists.iter().filter_map(|list| limit.value[list].as_object()).flat_map(Map::keys).collect();
    for name in names {
        for order in ORDERS {
            let [small, large] =
                [order.small, order.large].map(|(list, _)| &limit.value[list][name]);
            let parsed = (Quantity::of(small), Quantity::of(large));
            if let (Some(low), Some(high)) = parsed
                && low > high
            {
                let detail = format!(
                    "{} value {} is greater than {} value {}",
                    order.small.1,
                    text(small),
                    order.large.1,
                    text(large)
                );
                let field = limit.at(order.at).entry(name).path();
                let shown = &limit.value[order.shown][name];
                errors.push(FieldError::invalid(field, shown, &detail));
            }
        }
        let ratios = limit.at("maxLimitRequestRatio");
        let ratio = ratios.entry(name);
        if Quantity::of(ratio.value).is_some_and(|ratio| ratio < Quantity::ONE) {
            errors.push(ratio.invalid(&format!("ratio {} is less than 1", ratio.text())));
        }
    }
}

fn quota_amounts(part: &At<'_, '_>, list: &str, errors: &mut Errors) {
    for (name, amount) in part.at(list).entries() {
        let sound = resource_name::check(name, &amount, errors);
        if sound && !name.contains('/') && !is_quota_resource(name) {
            errors.push(amount.invalid_value(name, "must be a standard resource for quota"));
        }
        resource_name::check_amount(name, &amount, errors);
    }
}

fn quota_spec(spec: &At<'_, '_>, errors: &mut Errors) {
    quota_amounts(spec, "hard", errors);
    let scopes = spec.at("scopes");
    let named: Vec<&str> = items(scopes.value).iter().map(text).collect();
    for scope in &named {
        if !SCOPES.contains(scope) {
            errors.push(scopes.invalid("unsupported scope"));
        }
        for _ in misfits(spec, scope) {
            errors.push(scopes.invalid("unsupported scope applied to resource"));
        }
    }
    conflicts(&named, &scopes, errors);
    let selector = spec.at("scopeSelector");
    if selector.is_set() {
        scope_selector(spec, &selector, errors);
    }
}

/// The resources of a quota that a scope does not apply to.
fn misfits<'a>(spec: &'a At<'_, '_>, scope: &'a str) -> impl Iterator<Item = &'a str> {
    let pods =
        |name: &str| name == "pods" || (is_compute(name) && !name.ends_with("ephemeral-storage"));
    let hard = spec.value["hard"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    hard.filter(move |name| {
        is_quota_resource(name)
            && !match scope {
                "BestEffort" => *name == "pods",
                "VolumeAttributesClass" => {
                    ["persistentvolumeclaims", "requests.storage"].contains(name)
                }
                scope if SCOPES.contains(&scope) => pods(name),
                _ => true,
            }
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
    for requirement in items(list.value) {
        let requirement = At::new(requirement, &at);
        let (scope, operator) = (requirement.at("scopeName"), requirement.at("operator"));
        let values = requirement.at("values");
        if !SCOPES.contains(&scope.text()) {
            errors.push(scope.invalid("unsupported scope"));
        }
        for _ in misfits(spec, scope.text()) {
            let detail = "unsupported scope applied to resource";
            errors.push(FieldError::invalid(at.as_str(), selector.value, detail));
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
