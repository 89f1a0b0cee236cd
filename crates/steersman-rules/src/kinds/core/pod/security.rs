//! Security contexts: of the pod, and of each container.

use std::collections::HashSet;

use super::context::Pod;
use super::paths::descending;
use super::{host, windows};
use crate::rules::at::{At, Errors};

const ID_MAX: i64 = i32::MAX as i64;
const PROFILES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
const SYSCTL_MAX: usize = 253;
pub(super) const APPARMOR_MAX: usize = 4095;

/// The mistakes in the security context of a pod.
pub(super) fn of_pod(at: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut Errors) {
    for id in ["fsGroup", "runAsUser", "runAsGroup"] {
        at.at(id).within(0..=ID_MAX, errors);
    }
    for group in at.each("supplementalGroups") {
        group.within(0..=ID_MAX, errors);
    }
    host::process_namespace(spec, errors);
    sysctls(&at.at("sysctls"), spec, errors);
    at.at("fsGroupChangePolicy").one_of(&["Always", "OnRootMismatch"], errors);
    seccomp(&at.at("seccompProfile"), errors);
    windows::options(&at.at("windowsOptions"), errors);
    app_armor(&at.at("appArmorProfile"), errors);
    at.at("supplementalGroupsPolicy").one_of(&["Merge", "Strict"], errors);
    // The other one, `MountOption`, takes a feature that is off (`SELinuxMount`).
    at.at("seLinuxChangePolicy").one_of(&["Recursive"], errors);
}

/// The mistakes in the security context of a container.
pub(super) fn of_container(at: &At<'_, '_>, pod: &Pod<'_>, errors: &mut Errors) {
    if at.is_empty() {
        return;
    }
    at.at("runAsUser").within(0..=ID_MAX, errors);
    at.at("runAsGroup").within(0..=ID_MAX, errors);
    let mount = at.at("procMount");
    mount.one_of(&["Default", "Unmasked"], errors);
    if pod.host_users && mount.text() == "Unmasked" {
        errors.push(mount.invalid("`hostUsers` must be false to use `Unmasked`"));
    }
    seccomp(&at.at("seccompProfile"), errors);
    if at.at("allowPrivilegeEscalation").value == &serde_json::Value::Bool(false) {
        escalation(at, errors);
    }
    windows::options(&at.at("windowsOptions"), errors);
    app_armor(&at.at("appArmorProfile"), errors);
}

/// What cannot be had without escalation.
fn escalation(at: &At<'_, '_>, errors: &mut Errors) {
    if at.at("privileged").is_true() {
        let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.push(at.invalid_as("SecurityContext", why));
    }
    let added = at.at("capabilities.add");
    for _ in added.list().iter().filter(|capability| **capability == "CAP_SYS_ADMIN") {
        let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
                   CAP_SYS_ADMIN";
        errors.push(at.invalid_as("SecurityContext", why));
    }
}

fn seccomp(at: &At<'_, '_>, errors: &mut Errors) {
    if at.is_absent() {
        return;
    }
    let kind = at.at("type");
    let local = at.at("localhostProfile");
    if kind.text().is_empty() {
        errors.push(kind.required("type is required when seccompProfile is set"));
    } else {
        kind.one_of(PROFILES, errors);
    }
    match (kind.text() == "Localhost", local.is_set()) {
        (true, true) => descending(&local, errors),
        (true, false) => {
            errors.push(local.required("must be set when seccomp type is Localhost"));
        }
        (false, true) => {
            let why = "can only be set when seccomp type is Localhost";
            errors.push(local.with(at.value).invalid_as("SeccompProfile", why));
        }
        (false, false) => {}
    }
}

fn app_armor(at: &At<'_, '_>, errors: &mut Errors) {
    if at.is_absent() {
        return;
    }
    let kind = at.at("type");
    let local = at.at("localhostProfile");
    match kind.text() {
        "Localhost" => {
            if local.is_set() && local.text().trim() != local.text() {
                errors.push(local.invalid("must not be padded with whitespace"));
            } else if local.text().is_empty() {
                errors.push(local.required("must be set when AppArmor type is Localhost"));
            }
            if local.text().len() > APPARMOR_MAX {
                errors.push(local.too_long(APPARMOR_MAX));
            }
        }
        "RuntimeDefault" | "Unconfined" if local.is_set() => {
            errors.push(local.invalid("can only be set when AppArmor type is Localhost"));
        }
        "" => errors.push(kind.required("type is required when appArmorProfile is set")),
        _ => kind.one_of(PROFILES, errors),
    }
}

fn sysctls(list: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut Errors) {
    const PATTERN: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
    let mut seen = HashSet::new();
    for sysctl in list.items() {
        let name = sysctl.at("name");
        if name.text().is_empty() {
            errors.push(name.required(""));
        } else if !is_sysctl(name.text()) {
            let why =
                format!("must have at most {SYSCTL_MAX} characters and match regex {PATTERN}");
            errors.push(name.invalid(&why));
        } else if !seen.insert(name.text()) {
            errors.push(name.duplicate());
        }
        // The names of the kernel may be written with slashes, too.
        let dotted = name.text().replace('/', ".");
        let ipc = ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|p| dotted.starts_with(p))
            || dotted == "kernel.sem";
        if spec.at("hostNetwork").is_true() && dotted.starts_with("net.") {
            errors.push(name.invalid("may not be specified when 'hostNetwork' is true"));
        } else if spec.at("hostIPC").is_true() && ipc {
            errors.push(name.invalid("may not be specified when 'hostIPC' is true"));
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= SYSCTL_MAX
        && name
            .split(['.', '/'])
            .all(|part| part.starts_with(edge) && part.ends_with(edge) && part.chars().all(inner))
}
