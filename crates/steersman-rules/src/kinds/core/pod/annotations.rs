//! Annotations of pods that mean something, most of them replaced by fields long ago.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::context::each_container;
use super::scheduling;
use super::security::APPARMOR_MAX;
use crate::field::FieldError;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill, remove, text, within, within_existing};
use crate::rules::go_json::{self, Shape};

/// Marks the image of a static pod.
const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// What is told of an annotation without the field that replaced it.
const SECCOMP_FIELD: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
const APP_ARMOR_FIELD: &str = "deprecated since v1.30; use the \"appArmorProfile\" field instead";

/// Init containers were written as JSON once. Nodes of then would heed that instead of the fields.
const INIT_CONTAINERS: [&str; 4] = [
    "pod.alpha.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
];

/// Drops what a pod or a template says of init containers in annotations.
pub(super) fn drop_init_containers(pod: &mut Value) {
    within_existing(pod, "metadata", |metadata| {
        let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
        let Some(annotations) = annotations else { return };
        let dropped = INIT_CONTAINERS.iter().filter_map(|key| annotations.remove(*key)).count();
        if dropped > 0 && annotations.is_empty() {
            remove(metadata, "annotations");
        }
    });
}

/// The mistakes in the annotations of a pod or a template. `annotations` is where they lie.
pub(in crate::kinds) fn validate(annotations: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut Errors) {
    let mirror = annotations.entry(MIRROR);
    if mirror.is_set() && spec.at("nodeName").text().is_empty() {
        errors.push(mirror.invalid("must set spec.nodeName if mirror pod annotation is set"));
    }
    tolerations(annotations, errors);
    let cost = annotations.entry(DELETION_COST);
    if cost.is_set() && !is_cost(cost.text()) {
        errors.push(cost.invalid("must be a 32bit integer"));
    }
    let of_pod = annotations.named(SECCOMP_POD).with(&annotations.value[SECCOMP_POD]);
    if of_pod.is_set() {
        seccomp_profile(&of_pod, errors);
    }
    for (key, value) in annotations.entries().filter(|(key, _)| key.starts_with(SECCOMP_CONTAINER))
    {
        seccomp_profile(&annotations.named(key).with(value.value), errors);
    }
    for (key, value) in annotations.entries() {
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            app_armor(&value, container, spec, errors);
        }
    }
}

/// Tolerations were written as JSON once. Nobody reads them any more, but they must be sound.
fn tolerations(annotations: &At<'_, '_>, errors: &mut Errors) {
    let given = text(&annotations.value[TOLERATIONS]);
    if given.is_empty() {
        return;
    }
    match go_json::read(given, Shape::Objects("core.Toleration"), "[]core.Toleration") {
        Ok(list) => {
            let path = annotations.named(TOLERATIONS).path();
            scheduling::tolerations(&At::new(&list, &path), errors);
        }
        Err(why) => errors.push(annotations.invalid_value(TOLERATIONS, &why)),
    }
}

/// Says by field what annotations say of AppArmor, for nodes look at the field. What is wrong stays
/// an annotation, to be refused as such.
pub(super) fn copy_app_armor(pod: &mut Value) {
    let annotations = pod["metadata"]["annotations"].as_object();
    let profiles = annotations.into_iter().flatten().filter_map(|(key, value)| {
        let container = key.strip_prefix(APP_ARMOR)?.to_owned();
        Some((container, app_armor_profile(value.as_str()?)?))
    });
    let profiles: HashMap<String, Value> = profiles.collect();
    if profiles.is_empty() || pod["spec"]["os"]["name"] == "windows" {
        return;
    }
    let of_pod = pod["spec"]["securityContext"]["appArmorProfile"].clone();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        within(pod, "spec", |spec| {
            each(spec, list, |container| {
                let profile = profiles.get(text(&container["name"])).filter(|own| **own != of_pod);
                if let Some(profile) = profile {
                    within(container, "securityContext", |security| {
                        fill(security, "appArmorProfile", profile.clone());
                    });
                }
            });
        });
    }
}

/// The profile that an annotation names, if it is sound.
fn app_armor_profile(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        _ => {
            let name = annotation.strip_prefix("localhost/")?;
            let sound = !name.is_empty() && name.trim() == name && name.len() <= APPARMOR_MAX;
            sound.then(|| json!({"type": "Localhost", "localhostProfile": name}))
        }
    }
}

/// An integer without a plus sign or zeros before it.
fn is_cost(text: &str) -> bool {
    let begins = |c: char| matches!(c, '-' | '1'..='9');
    (text == "0" || text.starts_with(begins)) && text.parse::<i32>().is_ok()
}

fn seccomp_profile(profile: &At<'_, '_>, errors: &mut Errors) {
    match profile.text() {
        "runtime/default" | "docker/default" | "unconfined" => {}
        text => match text.strip_prefix("localhost/") {
            Some(path) if path.starts_with('/') => {
                errors.push(profile.invalid_value(path, "must be a relative path"));
            }
            Some(path) if path.split('/').any(|part| part == "..") => {
                errors.push(profile.invalid_value(path, "must not contain '..'"));
            }
            Some(_) => {}
            None => errors.push(profile.invalid("must be a valid seccomp profile")),
        },
    }
}

fn app_armor(profile: &At<'_, '_>, container: &str, spec: &At<'_, '_>, errors: &mut Errors) {
    let mut found = false;
    each_container(spec, |own| found |= own.at("name").text() == container);
    if !found {
        errors.push(profile.invalid_value(container, "container not found"));
    }
    let text = profile.text();
    let known = ["", "runtime/default", "unconfined"].contains(&text);
    if !known && !text.starts_with("localhost/") {
        errors.push(profile.invalid(&format!("invalid AppArmor profile name: {text:?}")));
    }
}

/// The warning about the annotation of a pod or a template without the field that replaced it.
pub(super) fn warn(pod: &At<'_, '_>, warnings: &mut Vec<String>) {
    let annotations = pod.at("metadata.annotations");
    let seccomp = annotations.entry(SECCOMP_POD);
    if seccomp.is_set() && pod.at("spec.securityContext.seccompProfile").is_absent() {
        warnings.push(format!("{}: {SECCOMP_FIELD}", seccomp.path()));
    }
}

/// The same of one of its containers. Here templates are warned of what they say of AppArmor.
pub(super) fn warn_of_container(
    pod: &At<'_, '_>,
    container: &At<'_, '_>,
    warnings: &mut Vec<String>,
) {
    let annotations = pod.at("metadata.annotations");
    if annotations.is_empty() {
        return;
    }
    let key = format!("{SECCOMP_CONTAINER}{}", container.at("name").text());
    let seccomp = annotations.entry(&key);
    if seccomp.is_set() && container.at("securityContext.seccompProfile").is_absent() {
        warnings.push(format!("{}: {SECCOMP_FIELD}", seccomp.path()));
    }
    if is_template(pod) {
        warn_of_profile(pod, container, warnings);
    }
}

/// The warnings about what a pod says of AppArmor, which are told before all others. It has been
/// copied to fields by now, so a field that agrees does not count.
pub(super) fn warn_of_app_armor(pod: &At<'_, '_>, warnings: &mut Vec<String>) {
    if !pod.at("metadata.annotations").is_empty() && pod.at("spec.os.name").text() != "windows" {
        let spec = pod.at("spec");
        each_container(&spec, |container| warn_of_profile(pod, container, warnings));
    }
}

fn warn_of_profile(pod: &At<'_, '_>, container: &At<'_, '_>, warnings: &mut Vec<String>) {
    let annotations = pod.at("metadata.annotations");
    let key = format!("{APP_ARMOR}{}", container.at("name").text());
    let app_armor = annotations.entry(&key);
    if app_armor.is_set() && lacks_app_armor(pod, container, app_armor.text()) {
        warnings.push(format!("{}: {APP_ARMOR_FIELD}", app_armor.path()));
    }
}

/// A template is part of another object.
fn is_template(pod: &At<'_, '_>) -> bool {
    !pod.path().is_empty()
}

/// Whether an annotation says what no field does.
fn lacks_app_armor(pod: &At<'_, '_>, container: &At<'_, '_>, annotation: &str) -> bool {
    let said = app_armor_profile(annotation);
    let own = container.at("securityContext.appArmorProfile");
    if own.is_set() {
        return !is_template(pod) && said.as_ref() == Some(own.value);
    }
    let of_pod = pod.at("spec.securityContext.appArmorProfile");
    of_pod.is_absent() || said.as_ref() != Some(of_pod.value)
}

/// Where an annotation and the field that replaced it are both given, they must agree.
pub(in crate::kinds) fn match_fields(annotations: &Value, spec: &At<'_, '_>, errors: &mut Errors) {
    if annotations.as_object().is_none_or(serde_json::Map::is_empty) {
        return;
    }
    let of_pod = spec.at("securityContext.seccompProfile");
    agree(&annotations[SECCOMP_POD], &of_pod, "seccomp", errors);
    each_container(spec, |container| {
        let profile = container.at("securityContext.seccompProfile");
        let key = format!("{SECCOMP_CONTAINER}{}", container.at("name").text());
        agree(&annotations[&key], &profile, "seccomp", errors);
    });
    if spec.at("os.name").text() == "windows" {
        return;
    }
    each_container(spec, |container| {
        let own = container.at("securityContext.appArmorProfile");
        let inherited = &spec.value["securityContext"]["appArmorProfile"];
        let profile = if own.is_set() { own } else { own.with(inherited) };
        let key = format!("{APP_ARMOR}{}", container.at("name").text());
        agree(&annotations[&key], &profile, "apparmor", errors);
    });
}

fn agree(annotation: &Value, profile: &At<'_, '_>, what: &str, errors: &mut Errors) {
    let Some(text) = annotation.as_str().filter(|_| profile.is_set()) else { return };
    let kind = match text {
        "unconfined" => "Unconfined",
        "runtime/default" => "RuntimeDefault",
        "docker/default" if what == "seccomp" => "RuntimeDefault",
        _ if text.starts_with("localhost/") => "Localhost",
        _ => "",
    };
    let own = profile.at("type").text();
    if own != kind && ["Unconfined", "RuntimeDefault", "Localhost"].contains(&own) {
        let why = format!("{what} type in annotation and field must match");
        errors.push(profile.at("type").forbidden(&why));
    } else if own == "Localhost"
        && text.strip_prefix("localhost/") != profile.at("localhostProfile").value.as_str()
    {
        let why = format!("{what} profile in annotation and field must match");
        errors.push(profile.at("localhostProfile").forbidden(&why));
    }
}

/// The mistakes in the annotations of a changed pod. Some are there from the start or never.
pub(super) fn update(old: &Value, pod: &At<'_, '_>, errors: &mut Errors) {
    let annotations = pod.at("metadata.annotations");
    let new = annotations.value;
    let at = |key: &str| format!("metadata.annotations[{key}]");
    let kept = |key: &str| key == MIRROR || key.starts_with(APP_ARMOR);
    let what =
        |key: &str| if key == MIRROR { "mirror pod annotation" } else { "AppArmor annotations" };
    for (key, value) in old.as_object().into_iter().flatten() {
        if kept(key) && new[key] != *value {
            let why = format!("may not remove or update {}", what(key));
            errors.push(FieldError::forbidden(at(key), &why));
        }
    }
    for (key, _) in new.as_object().into_iter().flatten() {
        if kept(key) && old[key].is_null() {
            errors.push(FieldError::forbidden(at(key), &format!("may not add {}", what(key))));
        }
    }
    validate(&annotations, &pod.at("spec"), errors);
}
