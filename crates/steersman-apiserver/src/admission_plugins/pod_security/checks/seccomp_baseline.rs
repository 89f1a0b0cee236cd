//! Nobody turns off the filter of system calls: first by annotation, since 1.19 by field.

use std::collections::BTreeSet;

use serde_json::Value;

use super::subject::text;
use super::wording::{plural, quoted, setters};
use super::{Pod, Violation};

const OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

pub(super) fn since_1_0(pod: Pod<'_>) -> Option<Violation> {
    let of_containers =
        pod.containers().map(|container| format!("{OF_CONTAINER}{}", container.name()));
    let keys = std::iter::once(OF_POD.to_owned()).chain(of_containers);
    let bad: BTreeSet<String> = keys
        .filter_map(|key| pod.annotation(&key).map(|value| (key, value)))
        .filter(|(_, value)| !is_sound_annotation(value))
        .map(|(key, value)| format!("{key}={}", steersman_values::quoted(value)))
        .collect();
    if bad.is_empty() {
        return None;
    }
    let word = plural(bad.len(), "annotation", "annotations");
    let bad: Vec<String> = bad.into_iter().collect();
    Some(Violation::new("seccompProfile", format!("forbidden {word} {}", bad.join(", "))))
}

pub(super) fn since_1_19(pod: Pod<'_>) -> Option<Violation> {
    let mut types = BTreeSet::new();
    let mut is_bad = |security: &Value| {
        let bad = profile(security).filter(|profile| !is_sound(profile));
        types.extend(bad.map(str::to_owned));
        bad.is_some()
    };
    let of_pod = is_bad(pod.security());
    let bad = pod.names_of(|container| is_bad(container.security()));
    let setters = setters(of_pod, &bad)?;
    let types = quoted(&types);
    let detail = format!("{setters} must not set securityContext.seccompProfile.type to {types}");
    Some(Violation::new("seccompProfile", detail))
}

/// The type of the profile that a security context sets.
pub(super) fn profile(security: &Value) -> Option<&str> {
    let profile = &security["seccompProfile"];
    (!profile.is_null()).then(|| text(&profile["type"]))
}

fn is_sound(profile: &str) -> bool {
    ["RuntimeDefault", "Localhost"].contains(&profile)
}

fn is_sound_annotation(value: &str) -> bool {
    ["runtime/default", "docker/default"].contains(&value) || value.starts_with("localhost/")
}
