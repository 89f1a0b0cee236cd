//! APIServices: which server answers for a group and version.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::field::FieldError;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::at::{At, Errors, PORTS};
use crate::rules::document::{fill, text, within, within_existing};
use crate::table::cells::condition;
use crate::table::{Column, age};

/// What is said of APIServices.
pub(super) const KIND: Kind = Kind {
    plural: "apiservices",
    name: "APIService",
    traits: &[
        Trait::ApiExtensions,
        Trait::VersionedUpdate,
        Trait::StatusAlone,
        Trait::Status,
        Trait::NoStatusTable,
    ],
    storage_prefix: Some("apiregistration.k8s.io/apiservices"),
    rules: &RULES,
    effect: Some(Effect::ApiService),
    columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: |service| {
        within(service, "spec", |spec| {
            within_existing(spec, "service", |service| fill(service, "port", 443));
        });
    },
    status: Some(|| json!({})),
    check,
    check_status: |service, _, errors| {
        let status = service.at("status");
        for condition in status.each("conditions") {
            let given = condition.at("status");
            let known = ["True", "False", "Unknown"];
            if !known.contains(&given.text()) {
                let value = Value::from(given.text());
                errors.push(FieldError::not_supported(given.path(), &value, &known));
            }
        }
    },
    ..Rules::NONE
};

fn columns() -> Vec<Column> {
    vec![Column::text("Service", service), Column::text("Available", available), age()]
}

fn service(api: &Value, _: Timestamp) -> Value {
    match &api["spec"]["service"] {
        Value::Null => "Local".into(),
        service => format!("{}/{}", text(&service["namespace"]), text(&service["name"])).into(),
    }
}

fn available(api: &Value, _: Timestamp) -> Value {
    match condition(api, "Available") {
        Some(condition) => match (text(&condition["status"]), text(&condition["reason"])) {
            (status @ "True", _) | (status, "") => status.into(),
            (status, reason) => format!("{status} ({reason})").into(),
        },
        None => "Unknown".into(),
    }
}

fn check(service: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = service.at("spec");
    let group = spec.at("group");
    let version = spec.at("version");
    let name = text(&service.value["metadata"]["name"]);
    let full = format!("{}.{}", version.text(), group.text());
    // The core group has no name to end with.
    let expected = if group.is_empty() { format!("{}.", version.text()) } else { full };
    // A prefix is never the whole name.
    let prefix = text(&service.value["metadata"]["generateName"]);
    for (field, name) in [("metadata.generateName", prefix), ("metadata.name", name)] {
        if !name.is_empty() && name != expected {
            let detail = format!("must be `spec.version+\".\"+spec.group`: {expected:?}");
            errors.push(FieldError::invalid(field, &Value::from(name), &detail));
        }
    }
    if !group.is_empty() {
        group.follows(names::dns1123_subdomain, errors);
    } else if version.text() != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.push(group.required(detail));
    }
    let given = Value::from(version.text());
    version.with(&given).follows(names::dns1035_label, errors);
    for (key, max) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let priority = spec.at(key);
        if priority.number_or_zero() <= 0 || priority.number_or_zero() > max {
            let detail = format!("must be positive and less than {max}");
            let given = Value::from(priority.number_or_zero());
            errors.push(FieldError::invalid(priority.path(), &given, &detail));
        }
    }
    backend(&spec, errors);
}

fn backend(spec: &At<'_, '_>, errors: &mut Errors) {
    let service = spec.at("service");
    let bundle = spec.at("caBundle");
    let insecure = spec.at("insecureSkipTLSVerify");
    let skips = *insecure.value == true;
    if service.is_absent() {
        if !bundle.is_empty() {
            let detail = "local APIServices may not have a caBundle";
            // Of what base64 stands for.
            let given = bundle.text().trim_end_matches('=');
            let shown = Value::from(format!("{} bytes", given.len() * 3 / 4));
            errors.push(FieldError::invalid(bundle.path(), &shown, detail));
        }
        if skips {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(insecure.invalid(detail));
        }
        return;
    }
    service.at("namespace").require(errors);
    service.at("name").require(errors);
    let port = service.at("port");
    if !PORTS.contains(&port.number_or_zero()) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(port.invalid(detail));
    }
    if skips && !bundle.is_empty() {
        errors.push(insecure.invalid("may not be true if caBundle is present"));
    }
}
