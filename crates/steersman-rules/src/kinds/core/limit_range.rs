//! Limit ranges: which resources they may name, and how the figures of each must be ordered.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};

use crate::field::FieldError;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::quantity::Quantity;
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill, text, within};
use crate::rules::resource_name;

/// What is said of `LimitRange`.
pub(super) const KIND: Kind = Kind {
    plural: "limitranges",
    name: "LimitRange",
    short_names: &["limits"],
    traits: &[Trait::CreateOnUpdate],
    rules: &RULES,
    effect: Some(Effect::LimitRange),
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: |range| {
        within(range, "spec", |spec| each(spec, "limits", limit_defaults));
    },
    check,
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

fn check(range: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = range.at("spec");
    let mut seen = HashSet::new();
    for limit in spec.each("limits") {
        let kind = limit.at("type");
        let before = errors.len();
        kind.follows(names::qualified_name, errors);
        let standard = ["Pod", "Container", "PersistentVolumeClaim"].contains(&kind.text());
        if errors.len() == before && !kind.text().contains('/') && !standard {
            errors.push(kind.invalid("must be a standard limit type or fully qualified"));
        }
        if !seen.insert(text(limit.value.get("type").unwrap_or(&Value::Null))) {
            errors.push(kind.duplicate());
        }
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
