//! Kinds of `resource.k8s.io`: classes of devices, claims for them, and what drivers offer.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::pod::claims::template_metadata;
use super::volume::driver_name;
use crate::field::FieldError;
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill_number, fill_text, items, text, within, within_existing};
use crate::rules::label_selector::node_selector;

const LIST_MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;
const RESERVED_MAX: usize = 256;
const SLICE_DEVICES_MAX: usize = 128;
const POOL_NAME_MAX: usize = 253;

/// The strategy of device classes.
pub(in crate::kinds) const CLASS: Rules = Rules {
    check: |class, _, errors| {
        let spec = class.at("spec");
        selectors(&spec, errors);
        spec.each("config").for_each(|config| configuration(&config, errors));
    },
    ..Rules::NONE
};

/// The strategy of resource claims.
pub(in crate::kinds) const CLAIM: Rules = Rules {
    default: |claim| within(claim, "spec", claim_defaults),
    status: Some(|| json!({})),
    check: |claim, old, errors| {
        if old.is_null() {
            claim_spec(&claim.at("spec"), errors);
        }
    },
    change: |claim, old, errors| claim.at("spec").unchanged(&old["spec"], errors),
    check_status: claim_status,
    ..Rules::NONE
};

/// The strategy of templates of resource claims.
pub(in crate::kinds) const CLAIM_TEMPLATE: Rules = Rules {
    default: |template| {
        within(template, "spec", |spec| within(spec, "spec", claim_defaults));
    },
    check: |template, old, errors| {
        if old.is_null() {
            let outer = template.at("spec");
            template_metadata(&outer.at("metadata"), errors);
            claim_spec(&outer.at("spec"), errors);
        }
    },
    change: |template, old, errors| template.at("spec").unchanged(&old["spec"], errors),
    ..Rules::NONE
};

/// The strategy of slices of resources.
pub(in crate::kinds) const SLICE: Rules = Rules {
    check: |slice, _, errors| resource_slice(&slice.at("spec"), errors),
    change: |slice, old, errors| {
        let spec = slice.at("spec");
        for key in ["nodeName", "driver"] {
            spec.at(key).unchanged(&old["spec"][key], errors);
        }
        let pool = spec.at("pool");
        pool.at("name").unchanged(&old["spec"]["pool"]["name"], errors);
    },
    ..Rules::NONE
};

fn claim_defaults(spec: &mut Value) {
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

fn at_most(part: &At<'_, '_>, max: usize, errors: &mut Errors) {
    if part.len() > max {
        errors.push(part.too_many(max));
    }
}

fn selectors(part: &At<'_, '_>, errors: &mut Errors) {
    at_most(&part.at("selectors"), LIST_MAX, errors);
    for selector in part.each("selectors") {
        let cel = selector.at("cel");
        if cel.is_absent() {
            errors.push(cel.required(""));
        }
    }
}

fn configuration(config: &At<'_, '_>, errors: &mut Errors) {
    let opaque = config.at("opaque");
    if opaque.is_absent() {
        errors.push(opaque.required("exactly one of `opaque` is required"));
        return;
    }
    driver_name(&opaque.at("driver"), errors);
    let parameters = opaque.at("parameters");
    match parameters.value {
        Value::Null => errors.push(parameters.required("")),
        Value::Object(_) => {}
        _ => {
            let shown = Value::from("<value omitted>");
            let detail = "must be a valid JSON object";
            errors.push(FieldError::invalid(parameters.path(), &shown, detail));
        }
    }
}

fn claim_spec(spec: &At<'_, '_>, errors: &mut Errors) {
    let devices = spec.at("devices");
    for list in ["requests", "constraints", "config"] {
        at_most(&devices.at(list), LIST_MAX, errors);
    }
    let mut seen = HashSet::new();
    for request in devices.each("requests") {
        check_request(&request, errors);
        if !seen.insert(text(&request.value["name"]).to_owned()) {
            errors.push(FieldError::duplicate(request.path(), &request.value["name"]));
        }
    }
    let known = request_names(devices.value);
    for constraint in devices.each("constraints") {
        request_references(&constraint, &known, errors);
        let (same, distinct) =
            (constraint.at("matchAttribute"), constraint.at("distinctAttribute"));
        if same.is_absent() && distinct.is_absent() {
            let detail = "exactly one of `matchAttribute` or `distinctAttribute` is required";
            errors.push(constraint.required(detail));
        }
    }
    for config in devices.each("config") {
        request_references(&config, &known, errors);
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

fn request_references(part: &At<'_, '_>, known: &HashSet<String>, errors: &mut Errors) {
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
    request.at("name").follows(names::dns1123_label, errors);
    let (exactly, first) = (request.at("exactly"), request.at("firstAvailable"));
    match (exactly.is_absent(), first.is_empty()) {
        (true, true) => errors
            .push(request.required("exactly one of `exactly` or `firstAvailable` is required")),
        (false, false) => errors.push(FieldError::invalid(
            request.path(),
            &Value::Null,
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are \
             set",
        )),
        (false, true) => exact_request(&exactly, errors),
        (true, false) => {
            at_most(&first, ALTERNATIVES_MAX, errors);
            let mut seen = HashSet::new();
            for sub in request.each("firstAvailable") {
                sub.at("name").follows(names::dns1123_label, errors);
                exact_request(&sub, errors);
                if !seen.insert(text(&sub.value["name"]).to_owned()) {
                    errors.push(FieldError::duplicate(sub.path(), &sub.value["name"]));
                }
            }
        }
    }
}

fn exact_request(request: &At<'_, '_>, errors: &mut Errors) {
    request.at("deviceClassName").requires(names::dns1123_subdomain, errors);
    selectors(request, errors);
    let (mode, count) = (request.at("allocationMode"), request.at("count"));
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

fn claim_status(claim: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let status = claim.at("status");
    let reserved = status.at("reservedFor");
    at_most(&reserved, RESERVED_MAX, errors);
    let mut seen = HashSet::new();
    for user in status.each("reservedFor") {
        let uid = user.at("uid");
        user.at("resource").require(errors);
        user.at("name").require(errors);
        if uid.require(errors) && !seen.insert(uid.text().to_owned()) {
            errors.push(FieldError::duplicate(uid.path(), uid.value));
        }
    }
    let (before, after) = (&old["status"]["allocation"], status.at("allocation"));
    if !reserved.is_empty() && after.is_absent() {
        errors.push(reserved.forbidden("may not be specified when `allocated` is not set"));
    }
    if !before.is_null() && after.is_set() {
        after.unchanged(before, errors);
    }
}

fn resource_slice(spec: &At<'_, '_>, errors: &mut Errors) {
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, \
                       `perDeviceNodeSelection` is required";
    let selector = spec.at("nodeSelector");
    let chosen = [
        !spec.at("nodeName").is_empty(),
        selector.is_set(),
        spec.value["allNodes"] == true,
        spec.value["perDeviceNodeSelection"] == true,
    ];
    let name = spec.at("nodeName");
    if !name.is_empty() {
        name.follows(names::dns1123_subdomain, errors);
    }
    if selector.is_set() {
        node_selector(&selector, errors);
    }
    match chosen.iter().filter(|chosen| **chosen).count() {
        0 => errors.push(spec.required(ONE)),
        1 => {}
        _ => errors.push(FieldError::invalid(spec.path(), &Value::Null, ONE)),
    }
    driver_name(&spec.at("driver"), errors);
    check_pool(&spec.at("pool"), errors);
    at_most(&spec.at("devices"), SLICE_DEVICES_MAX, errors);
    let mut seen = HashSet::new();
    for device in spec.each("devices") {
        let name = device.at("name");
        name.follows(names::dns1123_label, errors);
        if !seen.insert(name.text().to_owned()) {
            errors.push(FieldError::duplicate(device.path(), name.value));
        }
        at_most_attributes(&device, errors);
    }
}

fn check_pool(pool: &At<'_, '_>, errors: &mut Errors) {
    let (name, count) = (pool.at("name"), pool.at("resourceSliceCount"));
    if name.require(errors) {
        if name.text().len() > POOL_NAME_MAX {
            errors.push(FieldError::too_long(name.path(), POOL_NAME_MAX));
        }
        for part in name.text().split('/') {
            errors.extend(names::invalid(&name.path(), part, names::dns1123_subdomain));
        }
    }
    if count.number_or_zero() <= 0 {
        errors.push(count.invalid("must be greater than zero"));
    }
    pool.at("generation").not_negative(errors);
}

fn at_most_attributes(device: &At<'_, '_>, errors: &mut Errors) {
    let all = device.at("attributes").len() + device.at("capacity").len();
    if all > LIST_MAX {
        let detail =
            format!("the total number of attributes and capacities must not exceed {LIST_MAX}");
        let field = device.path();
        errors.push(FieldError::invalid(field, &Value::from(all), &detail));
    }
}
