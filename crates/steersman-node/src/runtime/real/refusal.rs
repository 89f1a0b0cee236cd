//! What this node cannot do for a Pod, and says so instead of leaving it out.

use std::path::Path;
use std::sync::LazyLock;

use k8s_openapi::api::core::v1::{AppArmorProfile, Container, Pod, PodSpec};

use crate::rejection::Rejection;

/// Whether this machine enforces profiles of AppArmor. That changes only when it is started anew.
static ARMOURED: LazyLock<bool> = LazyLock::new(|| {
    let enabled = std::fs::read("/sys/module/apparmor/parameters/enabled");
    Path::new("/sys/kernel/security/apparmor").exists()
        && enabled.is_ok_and(|text| text.starts_with(b"Y"))
});

/// Why a Pod cannot run here, if so.
pub(super) fn refuses(pod: &Pod) -> Option<Rejection> {
    let spec = pod.spec.as_ref()?;
    let all = || spec.init_containers.iter().flatten().chain(&spec.containers);
    of_pod(spec)
        .or_else(|| all().find_map(of_container))
        .map(|what| Rejection::Unsupported(format!("this node does not support {what}")))
        .or_else(|| unarmoured(pod, || *ARMOURED))
}

/// Refuses a Pod that asks for a profile of AppArmor where there is no such thing. One that runs is
/// left alone.
fn unarmoured(pod: &Pod, armoured: impl Fn() -> bool) -> Option<Rejection> {
    let spec = pod.spec.as_ref()?;
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let asks = |profile: Option<&AppArmorProfile>| {
        profile.is_some_and(|profile| profile.type_ != "Unconfined")
    };
    let whole = spec.security_context.as_ref();
    let all = spec.init_containers.iter().flatten().chain(&spec.containers);
    let own = |container: &Container| {
        let context = container.security_context.as_ref();
        asks(context.and_then(|context| context.app_armor_profile.as_ref()))
    };
    let asked =
        asks(whole.and_then(|whole| whole.app_armor_profile.as_ref())) || all.into_iter().any(own);
    let refused = matches!(phase, None | Some("Pending")) && asked && !armoured();
    refused.then(|| Rejection::AppArmor("AppArmor is not enabled on the host".into()))
}

fn of_pod(spec: &PodSpec) -> Option<String> {
    let has = |present: bool, what: &str| present.then(|| what.to_owned());
    has(spec.host_users == Some(false), "user namespaces (hostUsers: false)").or_else(|| {
        let claims = spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty());
        has(claims, "resource claims")
    })
}

fn of_container(container: &Container) -> Option<String> {
    let name = &container.name;
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
            let why = of(spec).unwrap().to_string();
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn profiles_that_nothing_enforces_are_refused_until_a_pod_runs() {
        let of = |spec: &Value, phase: &str, armoured| {
            let pod = json!({"spec": spec, "status": {"phase": phase}});
            unarmoured(&serde_json::from_value(pod).unwrap(), || armoured)
        };
        let profile = |type_: &str| json!({"appArmorProfile": {"type": type_}});
        let whole = json!({"securityContext": profile("RuntimeDefault"), "containers": []});
        let container = json!({"name": "c", "securityContext": profile("RuntimeDefault")});
        let one = json!({"containers": [container]});
        for spec in [&whole, &one] {
            let refused = of(spec, "Pending", false).unwrap();
            assert_eq!(refused.reason(), "AppArmor");
            let message = "Cannot enforce AppArmor: AppArmor is not enabled on the host";
            assert_eq!(refused.to_string(), message);
            assert_eq!(of(spec, "Running", false), None);
            assert_eq!(of(spec, "Pending", true), None);
        }
        let none = json!({"securityContext": profile("Unconfined"), "containers": []});
        assert_eq!(of(&none, "Pending", false), None);
    }
}
