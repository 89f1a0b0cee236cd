//! The mistakes that a definition can have: in its names, versions and conversion here, in its
//! schemas in [`schema`] and [`structural`], in what hangs on a version in [`version`].
//!
//! Kubernetes keeps what all versions say alike in one place, and complains about it there: a
//! schema that every version has stands at `spec.validation`, not at `spec.versions[0].schema`.

mod defaults;
mod patterns;
mod said;
mod schema;
mod shown;
mod structural;
#[cfg(test)]
mod tests;
mod version;

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use super::approval::{self, Approval, approval};
use super::bundle::{self, bundle_mistake};
use super::is_established;
use super::resources::versions_of;
use crate::field::{Errors, FieldError};
use crate::metadata;
use crate::names;
use crate::rules::at::At;
use crate::rules::webhook_client::client_config;

/// The mistakes in a definition that is new or replaces another, in the order of Kubernetes.
pub(crate) fn validate(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &definition["spec"];
    // A name is looked at once; it stays.
    let names = old.is_none().then(|| of_own_name(definition));
    let mut errors: Errors = names.into_iter().flatten().collect();
    errors.extend(of_group(spec));
    errors.extend(one_of(&spec["scope"], "spec.scope", &["Cluster", "Namespaced"]));
    let found = version::of_all(definition, old);
    errors.extend(of_versions(definition, found.own));
    errors.extend(of_names(&spec["names"]));
    errors.extend(found.shared);
    let strategy = &spec["conversion"]["strategy"];
    if keeps_unknown(spec) && strategy != "None" {
        let why = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid("spec.conversion.strategy", strategy, why));
    }
    errors.extend(of_conversion(&spec["conversion"], old));
    errors.extend(of_stored_versions(definition));
    errors.extend(of_approval(definition, old));
    if keeps_unknown(spec) {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                   spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", &json!(true), why));
    }
    errors.into()
}

/// Whether a definition asks for what there is no more: to keep fields of which no schema knows.
fn keeps_unknown(spec: &Value) -> bool {
    spec["preserveUnknownFields"] == true
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

/// A prefix of names is held against the whole name, too.
fn of_own_name(definition: &Value) -> Vec<FieldError> {
    let spec = &definition["spec"];
    let wanted = format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]));
    let why = "must be spec.names.plural+\".\"+spec.group";
    let names = ["generateName", "name"].map(|field| (field, metadata::text(definition, field)));
    let others = names.into_iter().filter(|(_, name)| !name.is_empty() && *name != wanted);
    others
        .map(|(field, name)| FieldError::invalid(format!("metadata.{field}"), &json!(name), why))
        .collect()
}

fn of_names(all: &Value) -> Vec<FieldError> {
    const MIXED: &str = "may have mixed case, but should otherwise match: ";
    const KEYS: [&str; 4] = ["plural", "singular", "kind", "listKind"];
    let (missing, given): (Vec<&str>, Vec<&str>) =
        KEYS.iter().partition(|key| text(&all[**key]).is_empty());
    let required = |key: &str| FieldError::required(format!("spec.names.{key}"), "");
    let mut errors: Vec<FieldError> = missing.into_iter().map(required).collect();
    for key in given {
        let name = text(&all[key]);
        let kind = key.to_lowercase().ends_with("kind");
        let complaints =
            names::dns1035_label(&if kind { name.to_lowercase() } else { name.to_owned() });
        if !complaints.is_empty() {
            let why = format!("{}{}", if kind { MIXED } else { "" }, complaints.join(","));
            errors.push(FieldError::invalid(format!("spec.names.{key}"), &all[key], &why));
        }
    }
    errors.extend(of_labels(all, "shortNames"));
    if !text(&all["kind"]).is_empty() && all["kind"] == all["listKind"] {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", &all["listKind"], why));
    }
    errors.extend(of_labels(all, "categories"));
    errors
}

fn of_labels<'a>(all: &'a Value, key: &'a str) -> impl Iterator<Item = FieldError> + 'a {
    list(&all[key]).iter().enumerate().filter_map(move |(i, name)| {
        joined(&format!("spec.names.{key}[{i}]"), text(name), names::dns1035_label)
    })
}

/// The mistakes in versions, among them those in what hangs on each.
fn of_versions(definition: &Value, own: Vec<Errors>) -> Errors {
    let mut errors = Errors::default();
    for (index, version) in versions_of(definition).enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::required(field, ""));
        }
    }
    let mut schemas = versions_of(definition).map(|version| &version["schema"]["openAPIV3Schema"]);
    if keeps_unknown(&definition["spec"]) && schemas.any(has_defaults) {
        let why = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", &json!(true), why));
    }
    let mut seen = HashSet::new();
    let mut unique = true;
    for ((index, version), own) in versions_of(definition).enumerate().zip(own) {
        let name = text(&version["name"]);
        unique &= seen.insert(name);
        let field = format!("spec.versions[{index}].name");
        errors.extend(joined(&field, name, names::dns1035_label));
        errors.extend(deprecation(version, index));
        errors.extend(own);
    }
    if !unique {
        errors.push(all_wrong(definition, "must contain unique version names"));
    }
    if versions_of(definition).filter(|version| version["storage"] == true).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        errors.push(all_wrong(definition, why));
    }
    // Kubernetes keeps the name of the first in a second place, too.
    let first = versions_of(definition).next().map_or("", |version| text(&version["name"]));
    if !first.is_empty() {
        errors.extend(joined("spec.version", first, names::dns1035_label));
    }
    errors
}

/// Whether there are defaults in a schema.
fn has_defaults(schema: &Value) -> bool {
    let below = |key: &&str| schema[*key].is_object() && has_defaults(&schema[*key]);
    let parts = |key: &&str| list(&schema[*key]).iter().any(has_defaults);
    let mut properties = schema["properties"].as_object().into_iter().flatten();
    !schema["default"].is_null()
        || ["items", "not", "additionalProperties"].iter().any(below)
        || ["allOf", "anyOf", "oneOf"].iter().any(parts)
        || properties.any(|(_, property)| has_defaults(property))
}

/// All versions together are wrong.
fn all_wrong(definition: &Value, why: &str) -> FieldError {
    let alike = version::alike(&versions_of(definition).collect::<Vec<_>>());
    let shown = shown::versions(versions_of(definition), &alike);
    FieldError::invalid_shown("spec.versions", &shown, why)
}

fn deprecation(version: &Value, index: usize) -> Vec<FieldError> {
    let warning = &version["deprecationWarning"];
    let Some(given) = warning.as_str() else { return Vec::new() };
    let field = format!("spec.versions[{index}].deprecationWarning");
    let invalid = |why: &str| FieldError::invalid(field.as_str(), warning, why);
    if version["deprecated"] != true {
        return vec![invalid("can only be set for deprecated versions")];
    }
    let mut errors = Vec::new();
    if given.len() > 256 {
        errors.push(invalid("must be <= 256 characters long"));
    }
    if given.is_empty() {
        errors.push(invalid("must not be an empty string"));
    }
    if let Some(odd) = UNPRINTABLE.find(given) {
        errors.push(invalid(&format!(
            "must only contain printable UTF-8 characters; non-printable character found at index \
             {}",
            odd.start()
        )));
    }
    errors
}

/// What Go does not print: of all that is space, it prints only one.
static UNPRINTABLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[^\p{L}\p{M}\p{N}\p{P}\p{S} ]").expect("the pattern is written here")
});

fn of_conversion(conversion: &Value, old: Option<&Value>) -> Errors {
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
        let broken = bundle::mistake(&client["caBundle"]);
        if let Some(why) = broken.filter(|_| old.is_some_and(has_sound_bundle)) {
            let field = format!("{client_field}.caBundle");
            errors.push(FieldError::invalid(field, &client["caBundle"], why));
        }
    }
    errors.extend(review_versions(reviews, reviews_field));
    errors
}

/// Whether a definition is served, and with a bundle that is none or is sound: it stays so.
fn has_sound_bundle(old: &Value) -> bool {
    is_established(old) && bundle_mistake(old).is_none()
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
    const FIELD: &str = "status.storedVersions";
    let is_stored = |version: &&Value| version["storage"] == true;
    let name = |version: &'_ Value| version["name"].clone();
    // Who has stored nothing yet stores the first that is to be.
    let stored = match list(&definition["status"]["storedVersions"]) {
        [] => versions_of(definition).find(is_stored).map(name).into_iter().collect(),
        given => given.to_vec(),
    };
    if stored.is_empty() {
        let why = "must have at least one stored version";
        return vec![FieldError::invalid(FIELD, &Value::Null, why)];
    }
    let all = json!(stored);
    let absent = versions_of(definition).filter(is_stored).map(name);
    let absent = absent.filter(|version| !stored.contains(version)).map(|version| {
        let why = format!("must have the storage version {}", text(&version));
        FieldError::invalid(FIELD, &all, &why)
    });
    let known: HashSet<&str> = versions_of(definition).map(|known| text(&known["name"])).collect();
    let missing = stored.iter().enumerate().filter(|(_, version)| !known.contains(text(version)));
    let complain = |(index, version): (usize, &Value)| {
        let name = text(version);
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        FieldError::invalid(format!("status.storedVersions[{index}]"), version, &why)
    };
    absent.chain(missing.map(complain)).collect()
}

/// Groups of the Kubernetes community need its approval. What was let pass once is let pass again.
fn of_approval(definition: &Value, old: Option<&Value>) -> Option<FieldError> {
    let now = approval(definition)?;
    if old.and_then(approval) == Some(now) {
        return None;
    }
    let why = now.message(definition);
    match now {
        Approval::Missing => Some(FieldError::required(approval::field(), &why)),
        Approval::Invalid => {
            let given = json!(approval::given(definition));
            Some(FieldError::invalid(approval::field(), &given, &why))
        }
        Approval::Approved | Approval::Bypassed => None,
    }
}
