//! Which containers are started again when they have ended.

use k8s_openapi::api::core::v1::{Container, PodSpec};

/// Whether an init container accompanies the main ones instead of ending before them.
pub(crate) fn accompanies(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// Whether a container that exited with this code is started again: by its own rules, its own
/// policy or that of its Pod.
pub(crate) fn restarts(container: &Container, spec: &PodSpec, code: i32) -> bool {
    let rule = container.restart_policy.as_ref().and_then(|_| ruled(container, code));
    if matches!(rule, Some("Restart" | "RestartAllContainers")) {
        return true;
    }
    let policy = container.restart_policy.as_ref().or(spec.restart_policy.as_ref());
    match policy.map(String::as_str) {
        Some("Never") => false,
        Some("OnFailure") => code != 0,
        _ => true,
    }
}

/// Whether all containers of a Pod are started anew because this one exited with this code.
pub(crate) fn restarts_all(container: &Container, code: i32) -> bool {
    ruled(container, code) == Some("RestartAllContainers")
}

/// What the first rule says that is about this code.
fn ruled(container: &Container, code: i32) -> Option<&str> {
    let mut rules = container.restart_policy_rules.iter().flatten();
    let matching = rules.find(|rule| {
        rule.exit_codes.as_ref().is_some_and(|codes| {
            let listed = codes.values.iter().flatten().any(|value| *value == code);
            if codes.operator == "NotIn" { !listed } else { listed }
        })
    });
    matching.map(|rule| rule.action.as_str())
}
