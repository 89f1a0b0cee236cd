//! What a claim asks for, whether it stands in a claim or in a template of claims: requests for
//! devices, each for exactly one kind of device or for the first of several that is available;
//! constraints between them; and configuration.

use std::collections::HashSet;

use serde_json::Value;

use super::device::{LIST_MAX, at_most, configuration, named, unique};
use super::identifier::fully_qualified;
use super::selector::selectors;
use super::taint::{check_tolerations, fill_tolerations};
use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill_number, fill_text, items, text, within_existing};

const ALTERNATIVES_MAX: usize = 8;

/// Fills in how many devices a request is for, and how what it tolerates compares.
pub(super) fn defaults(spec: &mut Value) {
    let request = |request: &mut Value| {
        fill_text(request, "allocationMode", "ExactCount");
        if request["allocationMode"] == "ExactCount" {
            fill_number(request, "count", 1);
        }
        fill_tolerations(request);
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
    let known = request_names(devices.value);
    let [requests, constraints, configs] =
        ["requests", "constraints", "config"].map(|list| devices.at(list));
    if at_most(&requests, LIST_MAX, errors) {
        requests.items().for_each(|request| check_request(&request, errors));
        unique(&requests, |request| text(&request["name"]), errors);
    }
    if at_most(&constraints, LIST_MAX, errors) {
        constraints.items().for_each(|constraint| check_constraint(&constraint, &known, errors));
    }
    if at_most(&configs, LIST_MAX, errors) {
        for config in configs.items() {
            references(&config, &known, errors);
            configuration(&config, false, errors);
        }
    }
}

/// The names that constraints, configurations and results may use.
pub(super) fn request_names(devices: &Value) -> HashSet<String> {
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

/// The mistakes in the requests that something is for.
pub(super) fn references(part: &At<'_, '_>, known: &HashSet<String>, errors: &mut Errors) {
    let list = part.at("requests");
    if at_most(&list, LIST_MAX, errors) {
        list.items().for_each(|name| reference(&name, known, errors));
        unique(&list, text, errors);
    }
}

/// The mistakes in the name of a request, or of one of its alternatives.
pub(super) fn reference(name: &At<'_, '_>, known: &HashSet<String>, errors: &mut Errors) {
    const UNKNOWN: &str = "must be the name of a request in the claim or the name of a request and \
                           a subrequest separated by '/'";
    let given = name.text();
    let has_few_parts = given.split('/').count() <= 2;
    if has_few_parts {
        for part in given.split('/') {
            let mistakes = names::dns1123_label(part);
            errors.extend(mistakes.iter().map(|why| name.invalid_value(part, why)));
        }
    }
    if !has_few_parts || !known.contains(given) {
        errors.push(name.invalid_value(given, UNKNOWN));
    }
}

fn check_constraint(constraint: &At<'_, '_>, known: &HashSet<String>, errors: &mut Errors) {
    references(constraint, known, errors);
    let [same, distinct] =
        ["matchAttribute", "distinctAttribute"].map(|field| constraint.at(field));
    if same.is_set() {
        fully_qualified(&same, errors);
    } else if distinct.is_set() {
        fully_qualified(&distinct, errors);
    } else {
        // Kubernetes says so although none is set.
        let why = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but \
                   multiple fields are set";
        errors.push(constraint.required(why));
    }
}

fn check_request(request: &At<'_, '_>, errors: &mut Errors) {
    const ONE: &str = "exactly one of `exactly` or `firstAvailable` is required";
    named(&request.at("name"), names::dns1123_label, errors);
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
            if at_most(&first, ALTERNATIVES_MAX, errors) {
                for sub in first.items() {
                    named(&sub.at("name"), names::dns1123_label, errors);
                    check_exact_request(&sub, errors);
                }
                unique(&first, |sub| text(&sub["name"]), errors);
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
    check_tolerations(request, errors);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::field::messages;
    use crate::kinds::resource::{resource_claim, resource_claim_template};

    /// What is wrong with a claim whose request `a` is for one of two, beside which this is said.
    fn mistakes(list: &str, items: &Value) -> Vec<String> {
        let either = json!([{"name": "x", "deviceClassName": "c"},
                            {"name": "y", "deviceClassName": "c"}]);
        let mut devices = json!({"requests": [{"name": "a", "firstAvailable": either}]});
        devices[list] = items.clone();
        let mut claim = json!({"metadata": {"name": "c"}, "spec": {"devices": devices}});
        let rules = resource_claim::KIND.rules;
        rules.fill_in(&mut claim);
        messages(&rules.validate_create(&claim))
    }

    #[test]
    fn constraints_are_between_requests_that_there_are() {
        const UNKNOWN: &str = "must be the name of a request in the claim or the name of a request \
                               and a subrequest separated by '/'";
        let at = "spec.devices.constraints[0]";
        let model = "example.com/model";
        let on = |requests: &[&str]| json!({"requests": requests, "matchAttribute": model});
        for (constraint, expected) in [
            (json!({"matchAttribute": model}), vec![]),
            (json!({"distinctAttribute": model}), vec![]),
            (on(&["a", "a/x", "a/y"]), vec![]),
            (
                on(&["b", "a/z", "a/x/y", "a", "a"]),
                vec![
                    format!("{at}.requests[0]: Invalid value: \"b\": {UNKNOWN}"),
                    format!("{at}.requests[1]: Invalid value: \"a/z\": {UNKNOWN}"),
                    format!("{at}.requests[2]: Invalid value: \"a/x/y\": {UNKNOWN}"),
                    format!("{at}.requests[4]: Duplicate value: \"a\""),
                ],
            ),
            (
                on(&["a/X"]),
                vec![
                    format!(
                        "{at}.requests[0]: Invalid value: \"X\": a lowercase RFC 1123 label must \
                         consist of lower case alphanumeric characters or '-', and must start and \
                         end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex \
                         used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                    ),
                    format!("{at}.requests[0]: Invalid value: \"a/X\": {UNKNOWN}"),
                ],
            ),
            (
                json!({"distinctAttribute": "model"}),
                vec![format!(
                    "{at}.distinctAttribute: Invalid value: \"model\": a fully qualified name must \
                     be a domain and a name separated by a slash"
                )],
            ),
            (
                json!({}),
                vec![format!(
                    "{at}: Required value: exactly one of \"matchAttribute\" or \
                     \"distinctAttribute\" is required, but multiple fields are set"
                )],
            ),
        ] {
            assert_eq!(mistakes("constraints", &json!([constraint])), expected, "{constraint}");
        }
    }

    #[test]
    fn what_is_too_long_is_not_looked_into() {
        let many: Value = vec![json!({}); 33].into();
        for list in ["requests", "constraints", "config"] {
            let expected = format!("spec.devices.{list}: Too many: 33: must have at most 32 items");
            assert_eq!(mistakes(list, &many), [expected]);
        }
        let requests = json!([{"name": "a", "firstAvailable": vec![json!({}); 9]}]);
        let expected =
            "spec.devices.requests[0].firstAvailable: Too many: 9: must have at most 8 items";
        assert_eq!(mistakes("requests", &requests), [expected]);
        let config = json!([{"requests": vec!["?"; 33]}]);
        let expected = [
            "spec.devices.config[0].requests: Too many: 33: must have at most 32 items",
            "spec.devices.config[0].opaque: Required value",
        ];
        assert_eq!(mistakes("config", &config), expected);
    }

    #[test]
    fn requests_say_what_they_tolerate_of_devices() {
        let at = "spec.devices.requests[0].exactly.tolerations[0]";
        for (toleration, expected) in [
            (json!({"key": "broken", "value": "yes"}), vec![]),
            (
                json!({"operator": "Exists", "value": "yes"}),
                vec![format!(
                    "{at}.value: Invalid value: \"yes\": must be empty for operator `Exists`"
                )],
            ),
        ] {
            let exactly = json!({"deviceClassName": "c", "tolerations": [toleration]});
            let requests = json!([{"name": "a", "exactly": exactly}]);
            assert_eq!(mistakes("requests", &requests), expected, "{toleration}");
        }
    }

    #[test]
    fn a_claim_from_before_tolerations_had_a_default_stays_as_it_is() {
        let exactly = json!({"deviceClassName": "c", "tolerations": [{"key": "broken"}]});
        let spec = json!({"devices": {"requests": [{"name": "a", "exactly": exactly}]}});
        for (rules, stored, pointer) in [
            (
                resource_claim::KIND.rules,
                json!({"spec": spec}),
                "/spec/devices/requests/0/exactly/tolerations/0/operator",
            ),
            (
                resource_claim_template::KIND.rules,
                json!({"spec": {"spec": spec}}),
                "/spec/spec/devices/requests/0/exactly/tolerations/0/operator",
            ),
        ] {
            let mut new = stored.clone();
            rules.fill_in(&mut new);
            assert_eq!(new.pointer(pointer), Some(&json!("Equal")));
            assert!(rules.validate_update(&stored, &new).is_empty());
            *new.pointer_mut(pointer).unwrap() = json!("Exists");
            assert_eq!(rules.validate_update(&stored, &new).len(), 1);
        }
    }

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
