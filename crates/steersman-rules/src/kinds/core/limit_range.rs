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
use crate::rules::resource_name::{self, HUGE_PAGES, is_native};

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
    for list in ["max", "min", "default", "defaultRequest"] {
        let part = limit.at(list);
        if kind != "Pod" || !list.starts_with("default") {
            resource_names(&part, kind, errors);
        } else if !part.is_empty() {
            errors.push(part.forbidden("may not be specified when `type` is 'Pod'"));
        }
    }
    let has = |list: &str| !limit.value[list]["storage"].is_null();
    if kind == "PersistentVolumeClaim" && !has("min") && !has("max") {
        errors.push(limit.at("limits").required(
            "either minimum or maximum storage value is required, but neither was provided",
        ));
    }
    resource_names(&limit.at("maxLimitRequestRatio"), kind, errors);
}

fn resource_names(list: &At<'_, '_>, kind: &str, errors: &mut Errors) {
    for (name, entry) in list.entries() {
        resource_name::check(name, &entry, errors);
        if ["Pod", "Container"].contains(&kind) {
            resource_name::check_of_container(name, &entry, errors);
        }
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
    // The defaults of pods are refused as such, and not looked at.
    let of_pod = limit.value["type"] == "Pod";
    let counts = |list: &str| !of_pod || !list.starts_with("default");
    let lists = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];
    let lists = lists.iter().filter(|list| counts(list));
    let names: BTreeSet<&String> =
        lists.filter_map(|list| limit.value[list].as_object()).flat_map(Map::keys).collect();
    for name in names {
        for order in ORDERS.iter().filter(|order| counts(order.small.0) && counts(order.large.0)) {
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
        most_of_ratio(limit, name, errors);
        if !of_pod {
            same_defaults(limit, name, errors);
        }
    }
}

/// A ratio that no limit and request within the bounds can have is a mistake.
fn most_of_ratio(limit: &At<'_, '_>, name: &str, errors: &mut Errors) {
    /// Amounts from here on are compared in whole units: their thousandths may be too many.
    const MILLI_END: i64 = i64::MAX / 1000;
    let ratios = limit.at("maxLimitRequestRatio");
    let ratio = ratios.entry(name);
    let amount = |list: &str| Quantity::of(&limit.value[list][name]);
    let (Some(wanted), Some(min), Some(max)) =
        (Quantity::of(ratio.value), amount("min"), amount("max"))
    else {
        return;
    };
    let fine = [wanted, min, max].iter().all(|amount| amount.value() < MILLI_END);
    let (wanted, most) = if fine {
        let most = max.milli_value() as f64 / min.milli_value() as f64;
        (wanted.milli_value() as f64 / 1000.0, most)
    } else {
        (wanted.value() as f64, max.value() as f64 / min.value() as f64)
    };
    if wanted > most {
        let why = format!("ratio {} is greater than max/min = {most:.6}", ratio.text());
        errors.push(ratio.invalid(&why));
    }
}

/// Of what cannot be promised twice, containers have what they ask for.
fn same_defaults(limit: &At<'_, '_>, name: &str, errors: &mut Errors) {
    let requests = limit.at("defaultRequest");
    let request = requests.entry(name);
    let default = &limit.value["default"][name];
    let overcommits = is_native(name) && !name.starts_with(HUGE_PAGES);
    if let (Some(asked), Some(given)) = (Quantity::of(request.value), Quantity::of(default))
        && !overcommits
        && asked != given
    {
        let (default, request_text) = (text(default), request.text());
        let why = format!(
            "default value {default} must equal to defaultRequest value {request_text} in {name}"
        );
        errors.push(request.invalid(&why));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::field::messages;

    fn told(limit: &Value) -> Vec<String> {
        messages(&RULES.validate_create(&json!({"spec": {"limits": [limit]}})))
    }

    #[test]
    fn a_ratio_lies_between_one_and_what_the_bounds_allow() {
        let limit = |min: &str, ratio: &str| {
            json!({
                "type": "Container",
                "max": {"cpu": "2"}, "min": {"cpu": min}, "maxLimitRequestRatio": {"cpu": ratio},
            })
        };
        assert_eq!(told(&limit("1", "2")), [""; 0]);
        assert_eq!(told(&limit("0", "3")), [""; 0]);
        let place = "spec.limits[0].maxLimitRequestRatio[cpu]";
        for (min, ratio, why) in [
            ("1", "3", "Invalid value: \"3\": ratio 3 is greater than max/min = 2.000000"),
            (
                "1500m",
                "1500m",
                "Invalid value: \"1500m\": ratio 1500m is greater than max/min = 1.333333",
            ),
            ("1", "500m", "Invalid value: \"500m\": ratio 500m is less than 1"),
        ] {
            assert_eq!(told(&limit(min, ratio)), [format!("{place}: {why}")]);
        }
    }

    #[test]
    fn a_name_is_held_to_each_rule_and_that_of_a_ratio_comes_last() {
        let limit = |kind: &str| json!({"type": kind, "maxLimitRequestRatio": {"a b": "2"}});
        let of_container = told(&limit("Container"));
        let at = "spec.limits[0].maxLimitRequestRatio[a b]: Invalid value: \"a b\"";
        assert_eq!(of_container.len(), 2, "{of_container:?}");
        assert!(of_container[0].starts_with(&format!("{at}: name part must")), "{of_container:?}");
        assert_eq!(of_container[1], format!("{at}: must be a standard resource for containers"));
        let of_claim = told(&limit("PersistentVolumeClaim"));
        assert_eq!(
            of_claim[0],
            "spec.limits[0].limits: Required value: either minimum or maximum storage value is \
             required, but neither was provided"
        );
        assert_eq!(of_claim[1], of_container[0]);
    }

    #[test]
    fn defaults_of_what_cannot_be_promised_twice_are_the_same() {
        let limit = |name: &str, kind: &str| json!({"type": kind, "default": {name: "2"}, "defaultRequest": {name: "1"}});
        assert_eq!(
            told(&limit("a.b/c", "Container")),
            ["spec.limits[0].defaultRequest[a.b/c]: Invalid value: \"1\": default value 2 must \
              equal to defaultRequest value 1 in a.b/c"]
        );
        assert_eq!(told(&limit("cpu", "Container")), [""; 0]);
        assert_eq!(
            told(&limit("a.b/c", "Pod")),
            [
                "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
                "spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is \
                 'Pod'",
            ]
        );
    }
}
