//! Tables of Pods, and what is found wrong with them. All start from a Pod with nothing wrong.

mod baseline;
mod decisions;
mod labels;
mod restricted;

use serde_json::{Value, json};

use super::evaluate::evaluate;
use super::policy::{Level, LevelVersion, Version};
use super::subject::Pod;

/// What is found wrong with a Pod at levels such as `baseline:v1.22`; nothing, if that is empty.
type Row<'a> = (Value, &'a [(&'a str, &'a str)]);

/// A container with nothing wrong, but for some fields.
fn container(name: &str, fields: Value) -> Value {
    let sound = json!({
        "name": name, "image": "nginx",
        "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        },
    });
    merged(sound, fields)
}

/// A container with nothing wrong, but for its security context.
fn secured(name: &str, security: Value) -> Value {
    container(name, under("securityContext", security))
}

/// A Pod of one container with nothing wrong, but for some fields.
fn pod(fields: Value) -> Value {
    let sound = json!({
        "metadata": {"name": "p"},
        "spec": {
            "securityContext": {
                "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container("c", json!({}))],
        },
    });
    merged(sound, fields)
}

fn spec(fields: Value) -> Value {
    pod(under("spec", fields))
}

fn with_containers(containers: Value) -> Value {
    spec(under("containers", containers))
}

/// A Pod of one container `c` with this security context.
fn with_security(security: Value) -> Value {
    with_containers(json!([secured("c", security)]))
}

/// A Pod with this in its own security context.
fn with_pod_security(security: Value) -> Value {
    spec(under("securityContext", security))
}

fn under(field: &str, value: Value) -> Value {
    Value::Object([(field.to_owned(), value)].into_iter().collect())
}

/// Merges as a merge patch does.
fn merged(mut into: Value, from: Value) -> Value {
    match (into.as_object_mut(), from) {
        (Some(fields), Value::Object(from)) => {
            for (key, value) in from {
                let old = fields.remove(&key).unwrap_or_default();
                let new = if old.is_object() { merged(old, value) } else { value };
                if !new.is_null() {
                    fields.insert(key, new);
                }
            }
            into
        }
        (_, from) => from,
    }
}

/// Reads `restricted:v1.30`.
fn level(text: &str) -> LevelVersion {
    let (level, version) = text.split_once(':').unwrap();
    let level = Level::parse(level).unwrap();
    LevelVersion { level, version: Version::parse(version).unwrap() }
}

#[track_caller]
fn judged(rows: &[Row<'_>]) {
    for (object, expected) in rows {
        for (at, expected) in *expected {
            let found = evaluate(level(at), Pod::of(object)).details();
            assert_eq!(found, *expected, "{at} {object}");
        }
        for at in ["privileged:latest", "privileged:v1.0"] {
            assert!(evaluate(level(at), Pod::of(object)).is_empty(), "{at} {object}");
        }
    }
}

#[test]
fn a_sound_pod_passes_every_level_of_every_version() {
    for minor in (0..=40).map(|minor| format!("v1.{minor}")).chain(["latest".to_owned()]) {
        for at in ["privileged", "baseline", "restricted"] {
            let at = format!("{at}:{minor}");
            assert_eq!(evaluate(level(&at), Pod::of(&pod(json!({})))).details(), "", "{at}");
        }
    }
}

#[test]
fn every_kind_of_container_is_looked_at() {
    let bad = json!({"privileged": true, "allowPrivilegeEscalation": null});
    let object = spec(json!({
        "initContainers": [secured("i", bad.clone())],
        "containers": [secured("c", bad.clone()), container("sound", json!({}))],
        "ephemeralContainers": [secured("e", bad)],
    }));
    judged(&[(
        object,
        &[(
            "restricted:latest",
            "privileged (containers \"i\", \"c\", \"e\" must not set \
             securityContext.privileged=true), allowPrivilegeEscalation != false (containers \
             \"i\", \"c\", \"e\" must set securityContext.allowPrivilegeEscalation=false)",
        )],
    )]);
}

#[test]
fn complaints_come_in_order_those_of_baseline_first() {
    let object = json!({
        "metadata": {
            "name": "p",
            "annotations": {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"},
        },
        "spec": {
            "hostNetwork": true,
            "securityContext": {
                "sysctls": [{"name": "a", "value": "1"}], "windowsOptions": {"hostProcess": true},
            },
            "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
            "containers": [{
                "name": "c", "ports": [{"containerPort": 80, "hostPort": 80}],
                "livenessProbe": {"httpGet": {"host": "h", "port": 80}},
                "securityContext": {
                    "privileged": true, "procMount": "Unmasked", "runAsUser": 0,
                    "capabilities": {"add": ["ALL"]}, "seLinuxOptions": {"user": "u"},
                    "seccompProfile": {"type": "Unconfined"},
                },
            }],
        },
    });
    let reasons = |at| evaluate(level(at), Pod::of(&object)).reasons();
    assert_eq!(
        reasons("baseline:latest"),
        "forbidden AppArmor profile, non-default capabilities, host namespaces, hostPath volumes, \
         hostPort, probe or lifecycle host, privileged, procMount, seLinuxOptions, \
         seccompProfile, forbidden sysctls, hostProcess"
    );
    assert_eq!(
        reasons("restricted:latest"),
        "forbidden AppArmor profile, host namespaces, hostPort, probe or lifecycle host, \
         privileged, seLinuxOptions, forbidden sysctls, hostProcess, allowPrivilegeEscalation != \
         false, unrestricted capabilities, procMount, restricted volume types, runAsNonRoot != \
         true, runAsUser=0, seccompProfile"
    );
    assert_eq!(
        reasons("restricted:v1.7"),
        "forbidden AppArmor profile, non-default capabilities, host namespaces, hostPort, \
         privileged, procMount, seLinuxOptions, forbidden sysctls, hostProcess, restricted volume \
         types, runAsNonRoot != true"
    );
    assert_eq!(reasons("restricted:v1.99"), reasons("restricted:latest"));
}
