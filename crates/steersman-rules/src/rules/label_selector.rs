//! Label selectors and node selectors inside objects: operators, keys and values.

use serde_json::Value;
use steersman_values::LabelSelector;

use super::at::{At, Errors};
use super::document::text;
use crate::names;

/// The mistakes in a label selector; an absent one is fine.
pub(crate) fn label_selector(selector: &At<'_, '_>, errors: &mut Errors) {
    selector.at("matchLabels").labels(errors);
    for requirement in selector.each("matchExpressions") {
        let operator = requirement.at("operator");
        let values = requirement.at("values");
        match (operator.text(), values.is_empty()) {
            ("In" | "NotIn", true) => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(values.required(why));
            }
            ("Exists" | "DoesNotExist", false) => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(values.forbidden(why));
            }
            ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
            _ => errors.push(operator.invalid("not a valid selector operator")),
        }
        requirement.at("key").follows(names::qualified_name, errors);
        for value in values.items() {
            value.follows(names::label_value, errors);
        }
    }
}

/// Whether a label selector matches labels. One with an operator that nobody knows matches none,
/// beside what [`label_selector`] says of it.
pub(crate) fn matches(selector: &Value, labels: &Value) -> bool {
    LabelSelector::of_unvalidated(selector)
        .is_some_and(|selector| selector.matches(|key| labels.get(key).map(text)))
}

/// Whether values must be possible values of labels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    Labels,
    Any,
}

/// The mistakes in a selector of nodes.
pub(crate) fn node_selector(selector: &At<'_, '_>, errors: &mut Errors) {
    let terms = selector.at("nodeSelectorTerms");
    if terms.list().is_empty() {
        errors.push(terms.required("must have at least one node selector term"));
    }
    for term in terms.items() {
        node_term(&term, Values::Labels, errors);
    }
}

/// The mistakes in one term of a selector of nodes.
pub(crate) fn node_term(term: &At<'_, '_>, values: Values, errors: &mut Errors) {
    for requirement in term.each("matchExpressions") {
        node_requirement(&requirement, values, errors);
    }
    for requirement in term.each("matchFields") {
        node_field(&requirement, errors);
    }
}

fn node_requirement(requirement: &At<'_, '_>, kind: Values, errors: &mut Errors) {
    let operator = requirement.at("operator");
    let values = requirement.at("values");
    match (operator.text(), values.len()) {
        ("In" | "NotIn", 0) => {
            errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        ("Exists" | "DoesNotExist", 1..) => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(values.forbidden(why));
        }
        ("Gt" | "Lt", 0 | 2..) => {
            let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(values.required(why));
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt", _) => {}
        _ => errors.push(operator.invalid("not a valid selector operator")),
    }
    requirement.at("key").follows(names::qualified_name, errors);
    if kind == Values::Labels {
        for value in values.items() {
            value.follows(names::label_value, errors);
        }
    }
}

fn node_field(requirement: &At<'_, '_>, errors: &mut Errors) {
    let operator = requirement.at("operator");
    let values = requirement.at("values");
    if !["In", "NotIn"].contains(&operator.text()) {
        errors.push(operator.invalid("not a valid selector operator"));
    } else if values.len() != 1 {
        let why =
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
        errors.push(values.required(why));
    }
    let key = requirement.at("key");
    if key.text() == "metadata.name" {
        for value in values.items() {
            value.follows(names::dns1123_subdomain, errors);
        }
    } else {
        errors.push(key.invalid("not a valid field selector key"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::matches;

    #[test]
    fn a_selector_matches_by_all_its_labels_and_expressions() {
        let labels = json!({"app": "web", "empty": ""});
        let expression = |key: &str, operator: &str, values: &[&str]| {
            let requirement = json!({"key": key, "operator": operator, "values": values});
            json!({"matchExpressions": [requirement]})
        };
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"app": "web", "empty": ""}}), true),
            (json!({"matchLabels": {"app": "web", "absent": ""}}), false),
            (expression("app", "In", &["web", "db"]), true),
            (expression("absent", "In", &[""]), false),
            (expression("app", "NotIn", &["web"]), false),
            (expression("absent", "NotIn", &["web"]), true),
            (expression("empty", "Exists", &[]), true),
            (expression("absent", "DoesNotExist", &[]), true),
            (expression("app", "Near", &["web"]), false),
            (expression("app", "Gt", &["1"]), false),
            (json!({"matchExpressions": [{"operator": "Exists"}]}), false),
            (json!({"matchExpressions": [{"operator": "NotIn", "values": ["web"]}]}), true),
        ] {
            assert_eq!(matches(&selector, &labels), expected, "{selector}");
        }
    }
}
