//! The checks that hold at the level `restricted` only.

use serde_json::{Value, json};

use super::{container, judged, secured, spec, with_containers, with_pod_security, with_security};

#[test]
fn privileges_do_not_escalate() {
    let one = "allowPrivilegeEscalation != false (container \"c\" must set \
               securityContext.allowPrivilegeEscalation=false)";
    let escalating = json!([secured("c", json!({"allowPrivilegeEscalation": true}))]);
    judged(&[
        (
            with_containers(escalating.clone()),
            &[
                ("baseline:latest", ""),
                ("restricted:v1.7", ""),
                ("restricted:v1.8", one),
                ("restricted:latest", one),
            ],
        ),
        (with_security(json!({"allowPrivilegeEscalation": null})), &[("restricted:latest", one)]),
        (
            spec(json!({"os": {"name": "windows"}, "containers": escalating})),
            &[("restricted:v1.24", one), ("restricted:v1.25", ""), ("restricted:latest", "")],
        ),
        (
            spec(json!({"os": {"name": "linux"}, "containers": escalating})),
            &[("restricted:latest", one)],
        ),
        (
            with_containers(json!([
                secured("a", json!({"allowPrivilegeEscalation": null})),
                container("b", json!({})),
                secured("c", json!({"allowPrivilegeEscalation": true})),
            ])),
            &[(
                "restricted:latest",
                "allowPrivilegeEscalation != false (containers \"a\", \"c\" must set \
                 securityContext.allowPrivilegeEscalation=false)",
            )],
        ),
    ]);
}

#[test]
fn capabilities_are_dropped() {
    let keeping = "unrestricted capabilities (container \"c\" must set \
                   securityContext.capabilities.drop=[\"ALL\"])";
    let kept = json!([secured("c", json!({"capabilities": null}))]);
    judged(&[
        (
            with_containers(kept.clone()),
            &[
                ("baseline:latest", ""),
                ("restricted:v1.21", ""),
                ("restricted:v1.22", keeping),
                ("restricted:latest", keeping),
            ],
        ),
        (
            spec(json!({"os": {"name": "windows"}, "containers": kept})),
            &[("restricted:v1.24", keeping), ("restricted:v1.25", ""), ("restricted:latest", "")],
        ),
        (
            with_security(json!({"capabilities": {"drop": ["NET_RAW"]}})),
            &[("restricted:latest", keeping)],
        ),
        (
            with_containers(json!([
                secured("a", json!({"capabilities": {"drop": null, "add": ["SYS_ADMIN"]}})),
                secured("b", json!({"capabilities": {"add": ["CHOWN", "NET_BIND_SERVICE"]}})),
                secured("c", json!({"capabilities": {"drop": ["KILL"]}})),
            ])),
            &[(
                "restricted:latest",
                "unrestricted capabilities (containers \"a\", \"c\" must set \
                 securityContext.capabilities.drop=[\"ALL\"]; containers \"a\", \"b\" must not \
                 include \"CHOWN\", \"SYS_ADMIN\" in securityContext.capabilities.add)",
            )],
        ),
        (
            with_security(json!({"capabilities": {"add": ["NET_BIND_SERVICE"]}})),
            &[("restricted:latest", "")],
        ),
    ]);
}

#[test]
fn volumes_are_of_few_types() {
    let volumes = |types: &[&str]| {
        let volume = |kind: &&str| json!({"name": format!("v-{kind}"), *kind: {}});
        spec(json!({"volumes": types.iter().map(volume).collect::<Vec<Value>>()}))
    };
    let host = "restricted volume types (volume \"v-hostPath\" uses restricted volume type \
                \"hostPath\")";
    let allowed = "configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim \
                   projected secret";
    let allowed: Vec<&str> = allowed.split_whitespace().collect();
    let others = "hostPath gcePersistentDisk awsElasticBlockStore gitRepo nfs iscsi glusterfs rbd \
                  flexVolume cinder cephfs flocker fc azureFile vsphereVolume quobyte azureDisk \
                  photonPersistentDisk portworxVolume scaleIO storageos";
    for kind in others.split_whitespace() {
        let refused = format!(
            "restricted volume types (volume \"v-{kind}\" uses restricted volume type \"{kind}\")"
        );
        judged(&[(volumes(&[kind]), &[("restricted:latest", &refused)])]);
    }
    judged(&[
        (volumes(&["hostPath"]), &[("restricted:v1.0", host), ("restricted:latest", host)]),
        (
            volumes(&allowed),
            &[("baseline:latest", ""), ("restricted:v1.0", ""), ("restricted:latest", "")],
        ),
        (
            volumes(&["nfs", "rbd", "glusterfs"]),
            &[
                ("baseline:latest", ""),
                (
                    "restricted:latest",
                    "restricted volume types (volumes \"v-nfs\", \"v-rbd\", \"v-glusterfs\" use \
                 restricted volume types \"glusterfs\", \"nfs\", \"rbd\")",
                ),
            ],
        ),
        (
            spec(json!({"volumes": [{"name": "a", "novel": {}}, {"name": "b"}]})),
            &[(
                "restricted:latest",
                "restricted volume types (volumes \"a\", \"b\" use restricted volume type \
                 \"unknown\")",
            )],
        ),
    ]);
}

#[test]
fn containers_do_not_run_as_root() {
    let is = |is: bool| json!({"runAsNonRoot": is});
    let unset = json!({"securityContext": {"runAsNonRoot": null}});
    let silent = "runAsNonRoot != true (pod or container \"c\" must set \
                  securityContext.runAsNonRoot=true)";
    judged(&[
        (
            spec(unset.clone()),
            &[("baseline:latest", ""), ("restricted:v1.0", silent), ("restricted:latest", silent)],
        ),
        (
            spec(super::merged(unset.clone(), json!({"hostUsers": false}))),
            &[("restricted:v1.34", silent), ("restricted:v1.35", ""), ("restricted:latest", "")],
        ),
        (
            spec(super::merged(unset, json!({"containers": [secured("c", is(true))]}))),
            &[("restricted:latest", "")],
        ),
        (
            with_pod_security(is(false)),
            &[(
                "restricted:latest",
                "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
            )],
        ),
        (
            spec(json!({
                "securityContext": is(false),
                "containers": [secured("a", is(false)), secured("b", is(false))],
            })),
            &[(
                "restricted:latest",
                "runAsNonRoot != true (pod and containers \"a\", \"b\" must not set \
                 securityContext.runAsNonRoot=false)",
            )],
        ),
        (
            with_security(is(false)),
            &[(
                "restricted:latest",
                "runAsNonRoot != true (container \"c\" must not set \
                 securityContext.runAsNonRoot=false)",
            )],
        ),
    ]);
}

#[test]
fn nobody_asks_for_root() {
    let user = |id: i64| json!({"runAsUser": id});
    let one = "runAsUser=0 (pod must not set runAsUser=0)";
    judged(&[
        (
            with_pod_security(user(0)),
            &[
                ("baseline:latest", ""),
                ("restricted:v1.22", ""),
                ("restricted:v1.23", one),
                ("restricted:latest", one),
            ],
        ),
        (
            spec(json!({"hostUsers": false, "securityContext": user(0)})),
            &[("restricted:v1.34", one), ("restricted:v1.35", "")],
        ),
        (
            spec(json!({
                "securityContext": user(0),
                "containers": [secured("a", user(0)), secured("b", user(0))],
            })),
            &[(
                "restricted:latest",
                "runAsUser=0 (pod and containers \"a\", \"b\" must not set runAsUser=0)",
            )],
        ),
        (with_security(user(1000)), &[("restricted:latest", "")]),
    ]);
}

#[test]
fn system_calls_are_filtered() {
    let unset = json!({"securityContext": {"seccompProfile": null}});
    let silent = "seccompProfile (pod or container \"c\" must set \
                  securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")";
    let profile = json!({"seccompProfile": {"type": "Localhost"}});
    judged(&[
        (
            spec(unset.clone()),
            &[
                ("baseline:latest", ""),
                ("restricted:v1.18", ""),
                ("restricted:v1.19", silent),
                ("restricted:latest", silent),
            ],
        ),
        (
            spec(super::merged(unset.clone(), json!({"os": {"name": "windows"}}))),
            &[("restricted:v1.24", silent), ("restricted:v1.25", ""), ("restricted:latest", "")],
        ),
        (
            spec(super::merged(unset.clone(), json!({"containers": [secured("c", profile)]}))),
            &[("restricted:latest", "")],
        ),
        (
            spec(super::merged(
                unset,
                json!({"containers": [
                    container("a", json!({})), container("b", json!({})),
                ]}),
            )),
            &[(
                "restricted:latest",
                "seccompProfile (pod or containers \"a\", \"b\" must set \
                 securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
            )],
        ),
    ]);
}
