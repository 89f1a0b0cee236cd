//! The mistakes that a definition can have.

use serde_json::{Value, json};

use super::definition::versions;
use crate::field::FieldError;
use crate::metadata;
use crate::names;

/// The mistakes in a definition.
pub(crate) fn validate(definition: &Value) -> Vec<FieldError> {
    let spec = &definition["spec"];
    let mut errors = of_names(definition);
    match spec["scope"].as_str() {
        Some("Cluster" | "Namespaced") => {}
        None | Some("") => errors.push(FieldError::required("spec.scope", "")),
        Some(_) => {
            let known = ["Cluster", "Namespaced"];
            errors.push(FieldError::not_supported("spec.scope", &spec["scope"], &known));
        }
    }
    errors.extend(of_versions(definition));
    errors.extend(of_stored_versions(definition));
    errors
}

fn of_names(definition: &Value) -> Vec<FieldError> {
    let spec = &definition["spec"];
    let mut errors = Vec::new();
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let (group, plural, kind) =
        (text(&spec["group"]), text(&spec["names"]["plural"]), text(&spec["names"]["kind"]));
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !group.contains('.') {
        let why = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", &spec["group"], why));
    } else {
        errors.extend(names::invalid("spec.group", &group, names::dns1123_subdomain));
    }
    if plural.is_empty() {
        errors.push(FieldError::required("spec.names.plural", ""));
    } else {
        errors.extend(names::invalid("spec.names.plural", &plural, names::dns1035_label));
    }
    if kind.is_empty() {
        errors.push(FieldError::required("spec.names.kind", ""));
    } else {
        let lower = kind.to_lowercase();
        errors.extend(names::invalid("spec.names.kind", &lower, names::dns1035_label));
    }
    let name = metadata::text(definition, "name");
    if name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", &json!(name), why));
    }
    errors
}

fn of_versions(definition: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (index, version) in versions(definition).enumerate() {
        let path = format!("spec.versions[{index}]");
        let name = version["name"].as_str().unwrap_or("");
        errors.extend(names::invalid(&format!("{path}.name"), name, names::dns1035_label));
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(format!("{path}.name"), &version["name"]));
        }
        seen.push(name);
        let field = format!("{path}.schema.openAPIV3Schema");
        let schema = &version["schema"]["openAPIV3Schema"];
        if !schema.is_object() {
            errors.push(FieldError::required(field, "schemas are required"));
        } else if schema["type"].is_null() {
            let why = "must not be empty at the root";
            errors.push(FieldError::required(format!("{field}.type"), why));
        } else if schema["type"] != "object" {
            let why = "must be object at the root";
            errors.push(FieldError::invalid(format!("{field}.type"), &schema["type"], why));
        }
    }
    if versions(definition).filter(|version| version["storage"] == true).count() != 1 {
        let value = definition["spec"]["versions"].clone();
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", &value, why));
    }
    errors
}

fn of_stored_versions(definition: &Value) -> Vec<FieldError> {
    let stored = definition["status"]["storedVersions"].as_array().into_iter().flatten();
    let missing = stored
        .enumerate()
        .filter(|(_, version)| !versions(definition).any(|known| known["name"] == **version));
    let complain = |(index, version): (usize, &Value)| {
        let name = version.as_str().unwrap_or("");
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        FieldError::invalid(format!("status.storedVersions[{index}]"), version, &why)
    };
    missing.map(complain).collect()
}
