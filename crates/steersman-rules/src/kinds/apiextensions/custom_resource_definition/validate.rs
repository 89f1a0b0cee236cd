//! The mistakes that a definition can have: in its names, versions and conversion here, in its
//! schemas in [`schema`] and [`structural`], in what hangs on a version in [`version`].
//!
//! Kubernetes keeps what all versions say alike in one place, and complains about it there: a
//! schema that every version has stands at `spec.validation`, not at `spec.versions[0].schema`.

mod schema;
mod structural;
#[cfg(test)]
mod tests;
mod version;

use std::collections::HashSet;

use serde_json::{Value, json};

use super::resources::versions_of;
use crate::field::{Errors, FieldError};
use crate::metadata;
use crate::names;
use crate::rules::at::At;
use crate::rules::webhook_client::client_config;

/// The mistakes in a definition that is new or replaces another.
pub(crate) fn validate(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &definition["spec"];
    let mut errors: Errors = of_group(spec).into_iter().collect();
    errors.extend(one_of(&spec["scope"], "spec.scope", &["Cluster", "Namespaced"]));
    if spec["preserveUnknownFields"] == true {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                   spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", &json!(true), why));
    }
    errors.extend(of_versions(definition));
    errors.extend(of_names(definition));
    errors.extend(version::of_all(definition, old));
    errors.extend(of_conversion(&spec["conversion"]));
    errors.extend(of_stored_versions(definition));
    errors.extend(of_approval(definition));
    errors.into()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// As much of a name as stands in paths: these are built for every part of a schema, and a name
/// may be as long as a definition.
fn clip(name: &str) -> &str {
    &name[..name.floor_char_boundary(256)]
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn one_of(value: &Value, field: &str, known: &[&str]) -> Option<FieldError> {
    match text(value) {
        "" => Some(FieldError::required(field, "")),
        given if known.contains(&given) => None,
        _ => Some(FieldError::not_supported(field, value, known)),
    }
}

/// All complaints of a rule as one error.
fn joined(field: &str, value: &str, rule: fn(&str) -> Vec<String>) -> Option<FieldError> {
    let complaints = rule(value);
    (!complaints.is_empty())
        .then(|| FieldError::invalid(field, &json!(value), &complaints.join(",")))
}

fn of_group(spec: &Value) -> Vec<FieldError> {
    const FIELD: &str = "spec.group";
    let group = text(&spec["group"]);
    if group.is_empty() {
        return vec![FieldError::required(FIELD, "")];
    }
    let mut errors: Vec<_> = joined(FIELD, group, names::dns1123_subdomain).into_iter().collect();
    if errors.is_empty() && !group.contains('.') {
        let why = "should be a domain with at least one dot";
        errors.push(FieldError::invalid(FIELD, &spec["group"], why));
    }
    errors
}

fn of_names(definition: &Value) -> Vec<FieldError> {
    const MIXED: &str = "may have mixed case, but should otherwise match: ";
    let spec = &definition["spec"];
    let all = &spec["names"];
    let mut errors = Vec::new();
    for key in ["plural", "singular", "kind", "listKind"] {
        let field = format!("spec.names.{key}");
        let name = text(&all[key]);
        let kind = key.to_lowercase().ends_with("kind");
        let complaints =
            names::dns1035_label(&if kind { name.to_lowercase() } else { name.to_owned() });
        if name.is_empty() {
            errors.push(FieldError::required(field, ""));
        } else if !complaints.is_empty() {
            let why = format!("{}{}", if kind { MIXED } else { "" }, complaints.join(","));
            errors.push(FieldError::invalid(field, &all[key], &why));
        }
    }
    for key in ["shortNames", "categories"] {
        for (i, name) in list(&all[key]).iter().enumerate() {
            let field = format!("spec.names.{key}[{i}]");
            errors.extend(joined(&field, text(name), names::dns1035_label));
        }
    }
    if !text(&all["kind"]).is_empty() && all["kind"] == all["listKind"] {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", &all["listKind"], why));
    }
    let name = metadata::text(definition, "name");
    if name != format!("{}.{}", text(&all["plural"]), text(&spec["group"])) {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", &json!(name), why));
    }
    errors
}

fn of_versions(definition: &Value) -> Errors {
    let mut errors = Errors::default();
    let mut seen = HashSet::new();
    let mut unique = true;
    for (index, version) in versions_of(definition).enumerate() {
        let name = text(&version["name"]);
        let field = format!("spec.versions[{index}].name");
        errors.extend(joined(&field, name, names::dns1035_label));
        unique &= seen.insert(name);
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::required(field, "schemas are required"));
        }
        errors.extend(deprecation(version, index));
    }
    let all = &definition["spec"]["versions"];
    if !unique {
        let why = "must contain unique version names";
        errors.push(FieldError::invalid("spec.versions", all, why));
    }
    if versions_of(definition).filter(|version| version["storage"] == true).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", all, why));
    }
    errors
}

fn deprecation(version: &Value, index: usize) -> Vec<FieldError> {
    let warning = &version["deprecationWarning"];
    let Some(given) = warning.as_str() else { return Vec::new() };
    let field = format!("spec.versions[{index}].deprecationWarning");
    let odd = given.char_indices().find(|(_, c)| c.is_control());
    let rules = [
        (version["deprecated"] != true, "can only be set for deprecated versions".to_owned()),
        (given.len() > 256, "must be <= 256 characters long".to_owned()),
        (given.is_empty(), "must not be an empty string".to_owned()),
        (
            odd.is_some(),
            format!(
                "must only contain printable UTF-8 characters; non-printable character found at \
                 index {}",
                odd.map_or(0, |(at, _)| at)
            ),
        ),
    ];
    let broken = rules.iter().filter(|(broken, _)| *broken);
    broken.map(|(_, why)| FieldError::invalid(field.as_str(), warning, why)).collect()
}

fn of_conversion(conversion: &Value) -> Errors {
    const ELSE: &str = "should not be set when strategy is not set to Webhook";
    if conversion.is_null() {
        return Errors::default();
    }
    let field = "spec.conversion.strategy";
    let mut errors: Errors =
        one_of(&conversion["strategy"], field, &["None", "Webhook"]).into_iter().collect();
    let webhook = &conversion["webhook"];
    let client = &webhook["clientConfig"];
    let reviews = &webhook["conversionReviewVersions"];
    let client_field = "spec.conversion.webhookClientConfig";
    let reviews_field = "spec.conversion.conversionReviewVersions";
    if conversion["strategy"] != "Webhook" {
        if !client.is_null() {
            errors.push(FieldError::forbidden(client_field, ELSE));
        }
        if !list(reviews).is_empty() {
            errors.push(FieldError::forbidden(reviews_field, ELSE));
        }
        return errors;
    }
    if client.is_null() {
        let why = "required when strategy is set to Webhook";
        errors.push(FieldError::required(client_field, why));
    } else {
        client_config(&At::new(client, client_field), &mut errors);
    }
    errors.extend(review_versions(reviews, reviews_field));
    errors
}

fn review_versions(versions: &Value, field: &str) -> Errors {
    let all: Vec<&str> = list(versions).iter().map(text).collect();
    let mut errors = Errors::default();
    if all.is_empty() {
        errors.push(FieldError::required(field, ""));
        return errors;
    }
    let mut seen = HashSet::new();
    for (i, version) in all.iter().enumerate() {
        let field = format!("{field}[{i}]");
        if !seen.insert(version) {
            errors.push(FieldError::invalid(field, &json!(version), "duplicate version"));
        } else {
            errors.extend(names::invalid(&field, version, names::dns1035_label));
        }
    }
    if !all.iter().any(|version| ["v1", "v1beta1"].contains(version)) {
        let why = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(field, versions, why));
    }
    errors
}

fn of_stored_versions(definition: &Value) -> Vec<FieldError> {
    let stored = definition["status"]["storedVersions"].as_array().into_iter().flatten();
    let known: HashSet<&str> = versions_of(definition).map(|known| text(&known["name"])).collect();
    let missing = stored.enumerate().filter(|(_, version)| !known.contains(text(version)));
    let complain = |(index, version): (usize, &Value)| {
        let name = text(version);
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        FieldError::invalid(format!("status.storedVersions[{index}]"), version, &why)
    };
    missing.map(complain).collect()
}

/// Groups of the Kubernetes community need its approval, as an annotation.
fn of_approval(definition: &Value) -> Option<FieldError> {
    const ANNOTATION: &str = "api-approved.kubernetes.io";
    let group = text(&definition["spec"]["group"]);
    let protected = [".k8s.io", ".kubernetes.io"].iter().any(|end| group.ends_with(end))
        || ["k8s.io", "kubernetes.io"].contains(&group);
    let annotation = &definition["metadata"]["annotations"][ANNOTATION];
    let field = || format!("metadata.annotations[{ANNOTATION}]");
    match text(annotation) {
        _ if !protected => None,
        "" => Some(FieldError::required(
            field(),
            "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
             https://github.com/kubernetes/enhancements/pull/1111",
        )),
        given if given.starts_with("unapproved") => None,
        given if given.starts_with("https://") || given.starts_with("http://") => None,
        given => {
            let why = format!(
                "protected groups must have approval annotation \"{ANNOTATION}\" with either a \
                 URL or a reason starting with \"unapproved\", see \
                 https://github.com/kubernetes/enhancements/pull/1111"
            );
            Some(FieldError::invalid(field(), &json!(given), &why))
        }
    }
}
