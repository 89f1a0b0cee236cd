//! What a claim asks for, whether it stands in a claim or in a template of claims: requests for
//! devices, each for exactly one kind of device or for the first of several that is available;
//! constraints between them; and configuration.

use std::collections::HashSet;

use serde_json::Value;

use super::device::{LIST_MAX, at_most, configuration, selectors};
use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill_number, fill_text, items, text, within_existing};

const ALTERNATIVES_MAX: usize = 8;

/// Fills in how many devices a request is for.
pub(super) fn defaults(spec: &mut Value) {
    let request = |request: &mut Value| {
        fill_text(request, "allocationMode", "ExactCount");
        if request["allocationMode"] == "ExactCount" {
            fill_number(request, "count", 1);
        }
    };
    within_existing(spec, "devices", |devices| {
        each(devices, "requests", |entry| {
            within_existing(entry, "exactly", request);
            each(entry, "firstAvailable", request);
        });
    });
}

/// The mistakes in what a claim asks for.
pub(super) fn check(spec: &At<'_, '_>, errors: &mut Errors) {
    let devices = spec.at("devices");
    for list in ["requests", "constraints", "config"] {
        at_most(&devices.at(list), LIST_MAX, errors);
    }
    let mut seen = HashSet::new();
    for request in devices.each("requests") {
        check_request(&request, errors);
        let name = request.at("name");
        if !seen.insert(name.text()) {
            errors.push(request.with(name.value).duplicate());
        }
    }
    let known = request_names(devices.value);
    for constraint in devices.each("constraints") {
        check_request_references(&constraint, &known, errors);
        let same = constraint.at("matchAttribute");
        let distinct = constraint.at("distinctAttribute");
        if same.is_absent() && distinct.is_absent() {
            let detail = "exactly one of `matchAttribute` or `distinctAttribute` is required";
            errors.push(constraint.required(detail));
        }
    }
    for config in devices.each("config") {
        check_request_references(&config, &known, errors);
        configuration(&config, errors);
    }
}

/// The names that constraints and configurations may use.
fn request_names(devices: &Value) -> HashSet<String> {
    let mut known = HashSet::new();
    for request in items(&devices["requests"]) {
        let name = text(&request["name"]);
        known.insert(name.to_owned());
        for sub in items(&request["firstAvailable"]) {
            known.insert(format!("{name}/{}", text(&sub["name"])));
        }
    }
    known
}

fn check_request_references(part: &At<'_, '_>, known: &HashSet<String>, errors: &mut Errors) {
    at_most(&part.at("requests"), LIST_MAX, errors);
    for name in part.each("requests") {
        if !known.contains(name.text()) {
            let detail = "must be the name of a request in the claim or the name of a request \
                          and a subrequest separated by '/'";
            errors.push(name.invalid(detail));
        }
    }
}

fn check_request(request: &At<'_, '_>, errors: &mut Errors) {
    const ONE: &str = "exactly one of `exactly` or `firstAvailable` is required";
    request.at("name").follows(names::dns1123_label, errors);
    let exactly = request.at("exactly");
    let first = request.at("firstAvailable");
    match (exactly.is_absent(), first.is_empty()) {
        (true, true) => errors.push(request.required(ONE)),
        (false, false) => {
            let detail = format!("{ONE}, but multiple fields are set");
            errors.push(request.invalid_value(Value::Null, &detail));
        }
        (false, true) => check_exact_request(&exactly, errors),
        (true, false) => {
            at_most(&first, ALTERNATIVES_MAX, errors);
            let mut seen = HashSet::new();
            for sub in request.each("firstAvailable") {
                sub.at("name").follows(names::dns1123_label, errors);
                check_exact_request(&sub, errors);
                let name = sub.at("name");
                if !seen.insert(name.text()) {
                    errors.push(sub.with(name.value).duplicate());
                }
            }
        }
    }
}

fn check_exact_request(request: &At<'_, '_>, errors: &mut Errors) {
    request.at("deviceClassName").requires(names::dns1123_subdomain, errors);
    selectors(request, &Value::Null, errors);
    let mode = request.at("allocationMode");
    let count = request.at("count");
    match mode.text() {
        "All" if count.number_or_zero() != 0 => {
            errors.push(count.invalid("must not be specified when allocationMode is 'All'"));
        }
        "ExactCount" if count.number_or_zero() <= 0 => {
            errors.push(count.invalid("must be greater than zero"));
        }
        "All" | "ExactCount" => {}
        _ => errors.push(mode.not_supported(&["All", "ExactCount"])),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::kinds::resource::{resource_claim, resource_claim_template};

    #[test]
    fn expressions_are_checked_wherever_they_stand() {
        let wrong = json!({"deviceClassName": "c", "allocationMode": "All", "selectors": [
            {"cel": {"expression": "1"}},
        ]});
        let mut alternative = wrong.clone();
        alternative["name"] = "s".into();
        let spec = json!({"devices": {"requests": [
            {"name": "a", "exactly": wrong}, {"name": "b", "firstAvailable": [alternative]},
        ]}});
        let claim = json!({"metadata": {"name": "c"}, "spec": spec});
        let template = json!({"metadata": {"name": "c"}, "spec": {"spec": spec}});
        for (rules, object, prefix) in [
            (resource_claim::KIND.rules, claim, "spec"),
            (resource_claim_template::KIND.rules, template, "spec.spec"),
        ] {
            let errors = rules.validate_create(&object);
            let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
            let at = |request: &str| {
                format!("{prefix}.devices.requests{request}.selectors[0].cel.expression")
            };
            assert_eq!(fields, [at("[0].exactly"), at("[1].firstAvailable[0]")]);
        }
    }
}
