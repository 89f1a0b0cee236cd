//! Label selectors and node selectors inside objects: operators, keys and values.

use super::document::text;
use super::part::{Errors, Part};
use crate::names;

/// The mistakes in a label selector; an absent one is fine.
pub(super) fn label_selector(selector: &Part<'_>, errors: &mut Errors) {
    let labels = selector.field("matchLabels");
    if !labels.is_absent() {
        errors.extend(names::validate_labels(labels.value, &labels.path()));
    }
    for requirement in selector.each("matchExpressions") {
        let values = requirement.field("values");
        match text(&requirement.value["operator"]) {
            "In" | "NotIn" if values.is_empty() => {
                errors
                    .push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                errors.push(values.forbidden(
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => {
                errors.push(requirement.field("operator").invalid("not a valid selector operator"));
            }
        }
        requirement.field("key").follows(names::qualified_name, errors);
        for value in requirement.each("values") {
            value.follows(names::label_value, errors);
        }
    }
}

/// The mistakes in a node selector, which must have terms.
pub(super) fn node_selector(selector: &Part<'_>, errors: &mut Errors) {
    let terms = selector.field("nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(terms.required("must have at least one node selector term"));
    }
    for term in selector.each("nodeSelectorTerms") {
        for requirement in term.each("matchExpressions") {
            node_requirement(&requirement, errors);
            requirement.field("key").follows(names::qualified_name, errors);
        }
        for requirement in term.each("matchFields") {
            field_requirement(&requirement, errors);
        }
    }
}

fn node_requirement(requirement: &Part<'_>, errors: &mut Errors) {
    let values = requirement.field("values");
    match text(&requirement.value["operator"]) {
        "In" | "NotIn" if values.is_empty() => {
            errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(
            values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
        ),
        "Gt" | "Lt" if values.len() != 1 => errors.push(
            values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"),
        ),
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => errors.push(requirement.field("operator").invalid("not a valid selector operator")),
    }
    for value in requirement.each("values") {
        value.follows(names::label_value, errors);
    }
}

/// A field selector of a node; only its name can be selected.
fn field_requirement(requirement: &Part<'_>, errors: &mut Errors) {
    let values = requirement.field("values");
    match text(&requirement.value["operator"]) {
        "In" | "NotIn" if values.len() != 1 => errors.push(values.required(
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        )),
        "In" | "NotIn" => {}
        _ => errors.push(requirement.field("operator").invalid("not a valid selector operator")),
    }
    let key = requirement.field("key");
    if key.text() == "metadata.name" {
        for value in requirement.each("values") {
            value.follows(names::dns1123_subdomain, errors);
        }
    } else {
        errors.push(key.invalid("not a valid field selector key"));
    }
}
