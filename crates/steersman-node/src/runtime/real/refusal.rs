//! What this node cannot do for a Pod, and says so instead of leaving it out.

use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod, PodSpec};

/// Why a Pod cannot run here, if so.
pub(super) fn refuses(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let all = || spec.init_containers.iter().flatten().chain(&spec.containers);
    of_pod(spec)
        .or_else(|| all().find_map(of_container))
        .map(|what| format!("this node does not support {what}"))
}

fn of_pod(spec: &PodSpec) -> Option<String> {
    let has = |present: bool, what: &str| present.then(|| what.to_owned());
    let context = spec.security_context.as_ref();
    let policy = context.and_then(|context| context.supplemental_groups_policy.as_deref());
    has(spec.host_users == Some(false), "user namespaces (hostUsers: false)")
        .or_else(|| has(policy == Some("Strict"), "supplementalGroupsPolicy: Strict"))
        .or_else(|| {
            let claims = spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty());
            has(claims, "resource claims")
        })
        .or_else(|| {
            let windows = spec.os.as_ref().is_some_and(|os| os.name != "linux");
            has(windows, "other operating systems than Linux")
        })
}

fn of_container(container: &Container) -> Option<String> {
    let name = &container.name;
    let hooks = container.lifecycle.as_ref();
    let hooks = hooks.map(|hooks| [&hooks.post_start, &hooks.pre_stop]);
    if hooks.into_iter().flatten().flatten().any(is_https) {
        return Some(format!("hooks over HTTPS (container {name})"));
    }
    let signal = container.lifecycle.as_ref().and_then(|hooks| hooks.stop_signal.as_ref());
    if signal.is_some() {
        return Some(format!("stop signals of a container's own (container {name})"));
    }
    if container.volume_devices.as_ref().is_some_and(|devices| !devices.is_empty()) {
        return Some(format!("block devices (container {name})"));
    }
    let limits = container.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    let mut limits = limits.into_iter().flatten().map(|(name, _)| name.as_str());
    let known = ["cpu", "memory", "ephemeral-storage"];
    let other = limits.find(|resource| !known.contains(resource))?;
    Some(format!("the resource {other} (container {name})"))
}

fn is_https(hook: &LifecycleHandler) -> bool {
    let get = hook.http_get.as_ref();
    get.is_some_and(|get| get.scheme.as_deref() == Some("HTTPS"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_cannot_be_done_is_said() {
        let of = |spec: Value| {
            let pod = json!({"spec": spec});
            refuses(&serde_json::from_value(pod).unwrap())
        };
        let plain = json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]});
        assert_eq!(of(plain), None);
        for (spec, part) in [
            (json!({"hostUsers": false, "containers": []}), "user namespaces"),
            (
                json!({"containers": [{"name": "c", "resources": {"limits": {"gpu/x": "1"}}}]}),
                "the resource gpu/x (container c)",
            ),
            (
                json!({"containers": [{"name": "c", "volumeDevices": [{"name": "d", "devicePath": "/d"}]}]}),
                "block devices",
            ),
        ] {
            let why = of(spec).unwrap();
            assert!(why.contains(part), "{why}");
        }
    }
}
