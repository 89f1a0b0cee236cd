//! What the two kinds of bindings share: subjects, and the role that they get, which stays.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::GROUP;
use crate::field::FieldError;
use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill_text, items, text, within_existing};
use crate::table::{Column, age};

/// Fills in the groups of what a binding names.
pub(super) fn defaults(binding: &mut Value) {
    within_existing(binding, "roleRef", |role| fill_text(role, "apiGroup", GROUP));
    each(binding, "subjects", |subject| {
        if subject["kind"] == "User" || subject["kind"] == "Group" {
            fill_text(subject, "apiGroup", GROUP);
        }
    });
}

/// The mistakes in a binding that may refer to roles of these kinds.
pub(super) fn check(binding: &At<'_, '_>, kinds: &[&str], errors: &mut Errors) {
    let role = binding.at("roleRef");
    let group = role.at("apiGroup");
    let kind = role.at("kind");
    if group.text() != GROUP {
        errors.push(text_unsupported(&group, &[GROUP]));
    }
    if !kinds.contains(&kind.text()) {
        errors.push(text_unsupported(&kind, kinds));
    }
    role.at("name").requires(names::path_segment, errors);
    let namespaced = kinds.contains(&"Role");
    binding.each("subjects").for_each(|subject| check_subject(&subject, namespaced, errors));
}

/// A service account without a namespace is one of the binding's, if that has one.
fn check_subject(subject: &At<'_, '_>, namespaced: bool, errors: &mut Errors) {
    let name = subject.at("name");
    let kind = subject.at("kind");
    let group = subject.at("apiGroup");
    name.require(errors);
    match kind.text() {
        "ServiceAccount" => {
            if !name.is_empty() {
                name.follows(names::dns1123_subdomain, errors);
            }
            if !group.is_empty() {
                errors.push(group.not_supported(&[""]));
            }
            if !namespaced {
                subject.at("namespace").require(errors);
            }
        }
        "User" | "Group" if group.text() != GROUP => {
            errors.push(text_unsupported(&group, &[GROUP]));
        }
        "User" | "Group" => {}
        _ => errors.push(text_unsupported(&kind, &["ServiceAccount", "User", "Group"])),
    }
}

/// An absent text counts as an empty one.
fn text_unsupported(part: &At<'_, '_>, supported: &[&str]) -> FieldError {
    FieldError::not_supported(part.path(), &Value::from(part.text()), supported)
}

/// A binding stays with its role: who may change subjects may not hand out another role.
pub(super) fn change(binding: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let role = binding.at("roleRef");
    if *role.value != old["roleRef"] {
        // Shown as the internal type, whose fields have other names.
        let [group, kind, name] = ["apiGroup", "kind", "name"].map(|field| &role.value[field]);
        let shown = json!({"APIGroup": group, "Kind": kind, "Name": name});
        errors.push(role.invalid_value(shown, "cannot change roleRef"));
    }
}

/// The role, and who has it.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::text("Role", role),
        age(),
        Column::text("Users", |binding, _| subjects(binding, "User")).wide(),
        Column::text("Groups", |binding, _| subjects(binding, "Group")).wide(),
        Column::text("ServiceAccounts", |binding, _| subjects(binding, "ServiceAccount")).wide(),
    ]
}

fn role(binding: &Value, _: Timestamp) -> Value {
    let role = &binding["roleRef"];
    format!("{}/{}", text(&role["kind"]), text(&role["name"])).into()
}

fn subjects(binding: &Value, kind: &str) -> Value {
    let subjects = items(&binding["subjects"]).iter().filter(|s| s["kind"] == kind);
    let name = |subject: &Value| {
        let [namespace, name] = ["namespace", "name"].map(|field| text(&subject[field]));
        if kind == "ServiceAccount" { format!("{namespace}/{name}") } else { name.to_owned() }
    };
    subjects.map(name).collect::<Vec<_>>().join(", ").into()
}
