//! Variables of the environment, and where their values come from.

use super::paths::no_backsteps;
use crate::field::FieldError;
use crate::names;
use crate::quantity::Quantity;
use crate::rules::at::{At, Errors};

/// What of a pod a variable can show.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// What of a pod's fields the downward API converts at all.
const CONVERTED: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

const CPU_DIVISORS: &[&str] = &["1m", "1"];
const BYTE_DIVISORS: &[&str] =
    &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

const SOURCES: [&str; 5] =
    ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

/// What the name of a variable requires.
fn variable_name(name: &str) -> Vec<String> {
    let allowed = |c: char| (c.is_ascii_graphic() || c == ' ') && c != '=';
    if name.chars().all(allowed) {
        return Vec::new();
    }
    let rule = "a valid environment variable name must consist only of printable ASCII \
                characters other than '='";
    vec![rule.to_owned()]
}

/// The mistakes in a list of variables.
pub(super) fn variables(list: &At<'_, '_>, errors: &mut Errors) {
    for variable in list.items() {
        variable.at("name").requires(variable_name, errors);
        let source = variable.at("valueFrom");
        if source.is_set() {
            value_from(&source, variable.at("value").text(), errors);
        }
    }
}

fn value_from(source: &At<'_, '_>, value: &str, errors: &mut Errors) {
    let given = SOURCES.iter().filter(|key| source.at(key).is_set()).count();
    let of = |key: &'static str| Some(key).filter(|key| source.at(key).is_set());
    if let Some(key) = of("fieldRef") {
        field_ref(&source.at(key), FIELDS, errors);
    }
    if let Some(key) = of("resourceFieldRef") {
        resource_ref(&source.at(key), false, errors);
    }
    for key in ["configMapKeyRef", "secretKeyRef"].into_iter().filter_map(of) {
        let source = source.at(key);
        source.at("name").follows(names::dns1123_subdomain, errors);
        source.at("key").requires(names::config_key, errors);
    }
    if let Some(key) = of("fileKeyRef") {
        let source = source.at(key);
        source.at("key").requires(variable_name, errors);
        source.at("volumeName").requires(names::dns1123_label, errors);
        let path = source.at("path");
        if path.text().is_empty() {
            errors.push(path.required(""));
        } else {
            no_backsteps(&path, errors);
        }
    }
    let why = match given {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
             `secretKeyRef` or `fileKeyRef`"
        }
        _ if !value.is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(source.invalid_value("", why));
}

/// The mistakes in a reference to a field of the pod.
pub(super) fn field_ref(reference: &At<'_, '_>, fields: &[&str], errors: &mut Errors) {
    let path = reference.at("fieldPath");
    if reference.at("apiVersion").text().is_empty() {
        errors.push(reference.at("apiVersion").required(""));
        return;
    }
    if path.text().is_empty() {
        errors.push(path.required(""));
        return;
    }
    let split = path.text().strip_suffix("']").and_then(|rest| rest.split_once("['"));
    let (field, subscript) = match split {
        Some((field, subscript)) if !field.is_empty() => (field, Some(subscript)),
        _ => (path.text(), None),
    };
    let version = reference.at("apiVersion").text();
    let known = match subscript {
        Some(_) => ["metadata.annotations", "metadata.labels"].contains(&field),
        None => CONVERTED.contains(&field) || field == "spec.host",
    };
    if version != "v1" {
        let why = format!("error converting fieldPath: unsupported pod version: {version}");
        errors.push(path.invalid(&why));
    } else if !known {
        let why = format!("error converting fieldPath: field label not supported: {}", path.text());
        let why = if subscript.is_some() {
            format!(
                "error converting fieldPath: field label does not support subscript: {}",
                path.text()
            )
        } else {
            why
        };
        errors.push(path.invalid(&why));
    } else if let Some(subscript) = subscript {
        let key = match field {
            "metadata.annotations" => subscript.to_lowercase(),
            _ => subscript.to_owned(),
        };
        let complaints = names::qualified_name(&key);
        errors.extend(complaints.iter().map(|why| reference.invalid_value(key.as_str(), why)));
    } else {
        // The name that clients of old have for it.
        let field = if field == "spec.host" { "spec.nodeName" } else { field };
        if !fields.contains(&field) {
            errors.push(FieldError::not_supported(path.path(), &field.into(), fields));
        }
    }
}

/// The mistakes in a reference to a container's resources.
pub(super) fn resource_ref(reference: &At<'_, '_>, volume: bool, errors: &mut Errors) {
    let resource = reference.at("resource");
    let huge = ["requests.hugepages-", "limits.hugepages-"];
    if volume && reference.at("containerName").text().is_empty() {
        errors.push(reference.at("containerName").required(""));
    } else if resource.text().is_empty() {
        errors.push(resource.required(""));
    } else if !RESOURCES.contains(&resource.text())
        && !huge.iter().any(|prefix| resource.text().starts_with(prefix))
    {
        errors.push(resource.not_supported(RESOURCES));
    }
    divisor(reference, resource.text(), errors);
}

fn divisor(reference: &At<'_, '_>, resource: &str, errors: &mut Errors) {
    let divisor = reference.at("divisor");
    let Some(quantity) = Quantity::of(divisor.value).filter(|q| *q != Quantity::ZERO) else {
        return;
    };
    let name = resource.split_once('.').map_or("", |(_, name)| name);
    let (what, allowed) = match name {
        "cpu" => ("cpu", CPU_DIVISORS),
        "memory" => ("memory", BYTE_DIVISORS),
        "ephemeral-storage" => ("local ephemeral storage", BYTE_DIVISORS),
        _ if name.starts_with("hugepages-") => ("hugepages", BYTE_DIVISORS),
        _ => return,
    };
    if allowed.contains(&quantity.to_string().as_str()) {
        return;
    }
    let list = if what == "cpu" { "1m and 1".to_owned() } else { allowed.join(", ") };
    let why = format!("only divisor's values {list} are supported with the {what} resource");
    errors.push(divisor.invalid_value(resource, &why));
}

/// Upstream takes the name for the beginning of one here.
fn source_name(name: &str) -> Vec<String> {
    names::prefix(name, names::dns1123_subdomain)
}

/// The mistakes in the sources of whole sets of variables.
pub(super) fn sources(list: &At<'_, '_>, errors: &mut Errors) {
    for source in list.items() {
        source.at("prefix").may_follow(variable_name, errors);
        let mut given = 0;
        for key in ["configMapRef", "secretRef"] {
            if source.at(key).is_set() {
                given += 1;
                source.at(key).at("name").requires(source_name, errors);
            }
        }
        match given {
            0 => {
                let why = "must specify one of: `configMapRef` or `secretRef`";
                errors.push(list.invalid_value("", why));
            }
            1 => {}
            _ => {
                let why = "may not have more than one field specified at a time";
                errors.push(list.invalid_value("", why));
            }
        }
    }
}
