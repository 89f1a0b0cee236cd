//! Where volumes appear in a container: as directories, or as raw devices.

use std::collections::HashSet;

use serde_json::Value;

use super::context::Pod;
use super::paths::{descending, no_backsteps};
use crate::rules::at::{At, Errors};

/// The mistakes in `volumeMounts`.
pub(super) fn validate(container: &At<'_, '_>, pod: &Pod<'_>, errors: &mut Errors) {
    let list = container.at("volumeMounts");
    let devices = container.at("volumeDevices");
    let of = |key: &str| texts(devices.list(), key);
    let taken_names = of("name");
    let taken_paths = of("devicePath");
    let mut seen = HashSet::new();
    for mount in list.items() {
        let name = mount.at("name");
        let path = mount.at("mountPath");
        if name.text().is_empty() {
            errors.push(name.required(""));
        }
        if !pod.volumes.contains_key(name.text()) {
            errors.push(name.not_found());
        }
        if path.text().is_empty() {
            errors.push(path.required(""));
        }
        if !seen.insert(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        if taken_names.contains(name.text()) {
            errors.push(name.invalid("must not already exist in volumeDevices"));
        }
        if taken_paths.contains(path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeDevices"));
        }
        // As upstream does, complaints below name the list, not its item.
        let in_list = |key| list.named(key).with(&mount.value[key]);
        sub_paths(&mount, in_list, errors);
        propagation(container, &in_list("mountPropagation"), errors);
        recursive_read_only(&mount, &in_list("recursiveReadOnly"), errors);
    }
}

/// What the items of a list have in a field.
fn texts<'v>(items: &'v [Value], key: &str) -> HashSet<&'v str> {
    items.iter().filter_map(|item| item[key].as_str()).collect()
}

fn sub_paths<'v: 'q, 'q>(
    mount: &At<'v, '_>,
    in_list: impl Fn(&'static str) -> At<'v, 'q>,
    errors: &mut Errors,
) {
    let path = mount.at("subPath");
    let expression = mount.at("subPathExpr");
    if !path.text().is_empty() {
        descending(&in_list("subPath"), errors);
    }
    if !expression.text().is_empty() {
        if !path.text().is_empty() {
            let why = "subPathExpr and subPath are mutually exclusive";
            errors.push(expression.invalid(why));
        }
        descending(&in_list("subPathExpr"), errors);
    }
}

fn propagation(container: &At<'_, '_>, mode: &At<'_, '_>, errors: &mut Errors) {
    mode.one_of(&["Bidirectional", "HostToContainer", "None"], errors);
    if mode.text() == "Bidirectional" && !container.at("securityContext.privileged").is_true() {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(mode.forbidden(why));
    }
}

fn recursive_read_only(mount: &At<'_, '_>, mode: &At<'_, '_>, errors: &mut Errors) {
    match mode.text() {
        "Enabled" | "IfPossible" => {
            if !mount.at("readOnly").is_true() {
                errors.push(mode.forbidden("may only be specified when readOnly is true"));
            }
            if !["", "None"].contains(&mount.at("mountPropagation").text()) {
                let why = "may only be specified when mountPropagation is None or not specified";
                errors.push(mode.forbidden(why));
            }
        }
        _ => mode.one_of(&["Disabled", "Enabled", "IfPossible"], errors),
    }
}

/// The mistakes in `volumeDevices`.
pub(super) fn devices(container: &At<'_, '_>, pod: &Pod<'_>, errors: &mut Errors) {
    let list = container.at("volumeDevices");
    let mounts = container.at("volumeMounts");
    let of = |key: &str| texts(mounts.list(), key);
    let taken_names = of("name");
    let taken_paths = of("mountPath");
    let mut names = HashSet::new();
    let mut paths = HashSet::new();
    for device in list.items() {
        let name = device.at("name");
        let path = device.at("devicePath");
        if name.text().is_empty() {
            errors.push(name.required(""));
        }
        if names.contains(name.text()) {
            errors.push(name.invalid("must be unique"));
        }
        match pod.volumes.get(name.text()) {
            None => errors.push(name.not_found()),
            Some(volume)
                if volume["persistentVolumeClaim"].is_null() && volume["ephemeral"].is_null() =>
            {
                let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral \
                           for block mode";
                errors.push(name.invalid(why));
            }
            Some(_) => {}
        }
        if path.text().is_empty() {
            errors.push(path.required(""));
        }
        if paths.contains(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        let mut steps = Errors::default();
        no_backsteps(&path, &mut steps);
        if steps.is_empty() {
            paths.insert(path.text());
        } else {
            errors.push(path.invalid("can not contain backsteps ('..')"));
        }
        if taken_names.contains(name.text()) {
            errors.push(name.invalid("must not already exist in volumeMounts"));
        }
        if taken_paths.contains(path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeMounts"));
        }
        if !name.text().is_empty() {
            names.insert(name.text());
        }
    }
}
