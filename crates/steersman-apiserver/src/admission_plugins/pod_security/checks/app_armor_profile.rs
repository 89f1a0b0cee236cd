//! Nobody turns AppArmor off, neither by field nor by the annotation that there was before.

use std::collections::BTreeSet;

use serde_json::Value;

use super::subject::text;
use super::wording::{containers, plural, quoted};
use super::{Pod, Violation};

const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

pub(super) fn since_1_0(pod: Pod<'_>) -> Option<Violation> {
    let mut types = BTreeSet::new();
    let mut is_bad = |security: &Value| {
        let profile = &security["appArmorProfile"];
        let kind = text(&profile["type"]);
        let bad = !profile.is_null() && !["RuntimeDefault", "Localhost"].contains(&kind);
        if bad {
            types.insert(kind.to_owned());
        }
        bad
    };
    let mut setters = Vec::new();
    if is_bad(pod.security()) {
        setters.push("pod".to_owned());
    }
    let bad = pod.names_of(|container| is_bad(container.security()));
    if !bad.is_empty() {
        setters.push(containers(&bad));
    }
    let annotations = bad_annotations(pod);
    if !annotations.is_empty() {
        setters.push(plural(annotations.len(), "annotation", "annotations").to_owned());
    }
    if setters.is_empty() {
        return None;
    }
    let values: Vec<String> = types.into_iter().chain(annotations).collect();
    let reason = plural(values.len(), "forbidden AppArmor profile", "forbidden AppArmor profiles");
    let setters = setters.join(" and ");
    let values = quoted(&values);
    Some(Violation::new(
        reason,
        format!("{setters} must not set AppArmor profile type to {values}"),
    ))
}

/// The annotations that turn it off, as they are shown.
fn bad_annotations(pod: Pod<'_>) -> BTreeSet<String> {
    let is_bad = |key: &str, value: &str| {
        key.starts_with(ANNOTATION)
            && !value.is_empty()
            && value != "runtime/default"
            && !value.starts_with("localhost/")
    };
    let bad = pod.annotations().filter(|(key, value)| is_bad(key, value));
    bad.map(|(key, value)| format!("{key}={}", steersman_values::quoted(value))).collect()
}
