//! The checks that hold from the level `baseline` on.

use serde_json::json;

use super::{
    container, judged, pod, secured, spec, with_containers, with_pod_security, with_security,
};

#[test]
fn app_armor_stays_on() {
    let key =
        |container: &str| format!("container.apparmor.security.beta.kubernetes.io/{container}");
    let annotated = |value: &str| pod(json!({"metadata": {"annotations": {key("c"): value}}}));
    let profile = |kind: &str| json!({"appArmorProfile": {"type": kind}});
    let unconfined = "forbidden AppArmor profile (container \"c\" must not set AppArmor profile \
                      type to \"Unconfined\")";
    let by_annotation = "forbidden AppArmor profile (annotation must not set AppArmor profile \
                         type to \"container.apparmor.security.beta.kubernetes.io/c=\"unconfined\"\")";
    judged(&[
        (
            with_security(profile("Unconfined")),
            &[("baseline:v1.0", unconfined), ("restricted:latest", unconfined)],
        ),
        (
            with_pod_security(profile("Unconfined")),
            &[(
                "baseline:latest",
                "forbidden AppArmor profile (pod must not set AppArmor profile type to \
                 \"Unconfined\")",
            )],
        ),
        (
            pod(json!({
                "metadata": {"annotations": {key("a"): "unconfined", key("b"): "of\nmine"}},
                "spec": {
                    "securityContext": profile("Unconfined"),
                    "containers": [secured("a", profile("Strict")), secured("b", profile(""))],
                },
            })),
            &[(
                "baseline:latest",
                "forbidden AppArmor profiles (pod and containers \"a\", \"b\" and annotations \
                 must not set AppArmor profile type to \"\", \"Strict\", \"Unconfined\", \
                 \"container.apparmor.security.beta.kubernetes.io/a=\"unconfined\"\", \
                 \"container.apparmor.security.beta.kubernetes.io/b=\"of\\nmine\"\")",
            )],
        ),
        (
            annotated("unconfined"),
            &[("baseline:latest", by_annotation), ("restricted:v1.0", by_annotation)],
        ),
        (with_security(profile("RuntimeDefault")), &[("restricted:latest", "")]),
        (with_pod_security(profile("Localhost")), &[("restricted:latest", "")]),
        (annotated(""), &[("restricted:latest", "")]),
        (annotated("runtime/default"), &[("restricted:latest", "")]),
        (annotated("localhost/mine"), &[("restricted:latest", "")]),
    ]);
}

#[test]
fn capabilities_beyond_the_default_ones_are_not_added() {
    let adds = |names: &[&str]| json!({"capabilities": {"add": names}});
    let default = "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE \
                   SETFCAP SETGID SETPCAP SETUID SYS_CHROOT";
    let default: Vec<&str> = default.split_whitespace().collect();
    let one = "non-default capabilities (container \"c\" must not include \"NET_RAW\" in \
               securityContext.capabilities.add)";
    judged(&[
        (with_security(adds(&default)), &[("baseline:v1.0", ""), ("baseline:latest", "")]),
        (
            with_security(adds(&["CHOWN", "NET_RAW"])),
            &[("baseline:v1.0", one), ("baseline:latest", one), ("restricted:v1.21", one)],
        ),
        (
            with_containers(json!([
                secured("a", adds(&["SYS_ADMIN", "NET_ADMIN"])),
                secured("b", adds(&["chown"])),
            ])),
            &[(
                "baseline:latest",
                "non-default capabilities (containers \"a\", \"b\" must not include \
                 \"NET_ADMIN\", \"SYS_ADMIN\", \"chown\" in securityContext.capabilities.add)",
            )],
        ),
    ]);
}

#[test]
fn namespaces_of_the_host_are_not_shared() {
    judged(&[
        (
            spec(json!({"hostNetwork": true})),
            &[
                ("baseline:v1.0", "host namespaces (hostNetwork=true)"),
                ("restricted:latest", "host namespaces (hostNetwork=true)"),
            ],
        ),
        (
            spec(json!({"hostIPC": true, "hostPID": true, "hostNetwork": true})),
            &[(
                "baseline:latest",
                "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
            )],
        ),
        (
            spec(json!({"hostIPC": false, "hostPID": false, "hostNetwork": false})),
            &[("restricted:latest", "")],
        ),
    ]);
}

#[test]
fn files_of_the_host_are_not_mounted() {
    let host = |name: &str| json!({"name": name, "hostPath": {"path": "/"}});
    judged(&[
        (
            spec(json!({"volumes": [host("a")]})),
            &[
                ("baseline:v1.0", "hostPath volumes (volume \"a\")"),
                ("baseline:latest", "hostPath volumes (volume \"a\")"),
            ],
        ),
        (
            spec(json!({"volumes": [host("a"), {"name": "x", "emptyDir": {}}, host("b")]})),
            &[("baseline:latest", "hostPath volumes (volumes \"a\", \"b\")")],
        ),
        (
            spec(json!({"volumes": [{"name": "x", "nfs": {"server": "s", "path": "/"}}]})),
            &[("baseline:latest", "")],
        ),
    ]);
}

#[test]
fn ports_of_the_host_are_not_taken() {
    let port = |host: i64| json!({"containerPort": 80, "hostPort": host});
    let one = "hostPort (container \"c\" uses hostPort 8080)";
    judged(&[
        (
            with_containers(json!([container("c", json!({"ports": [port(8080), port(0)]}))])),
            &[("baseline:v1.0", one), ("baseline:latest", one), ("restricted:latest", one)],
        ),
        (
            with_containers(json!([
                container("a", json!({"ports": [port(9), port(10)]})),
                container("b", json!({"ports": [port(9)]})),
            ])),
            &[("baseline:latest", "hostPort (containers \"a\", \"b\" use hostPorts 10, 9)")],
        ),
        (
            with_containers(json!([container("c", json!({"ports": [{"containerPort": 80}]}))])),
            &[("restricted:latest", "")],
        ),
    ]);
}

#[test]
fn probes_and_handlers_name_no_host() {
    let get = |host: &str| json!({"httpGet": {"host": host, "port": 80}});
    let tcp = |host: &str| json!({"tcpSocket": {"host": host, "port": 80}});
    let one = "probe or lifecycle host (container \"c\" uses probe or lifecycle host \"h\")";
    judged(&[
        (
            with_containers(json!([container("c", json!({"livenessProbe": get("h")}))])),
            &[
                ("baseline:v1.33", ""),
                ("baseline:v1.34", one),
                ("baseline:latest", one),
                ("restricted:v1.33", ""),
                ("restricted:latest", one),
            ],
        ),
        (
            with_containers(json!([
                container("b", json!({"lifecycle": {"postStart": get("z"), "preStop": tcp("y")}})),
                container("a", json!({"readinessProbe": tcp("x"), "startupProbe": get("z")})),
            ])),
            &[(
                "baseline:latest",
                "probe or lifecycle host (containers \"a\", \"b\" use probe or lifecycle hosts \
                 \"x\", \"y\", \"z\")",
            )],
        ),
        (
            with_containers(json!([container(
                "c",
                json!({
                    "livenessProbe": get(""), "readinessProbe": {"exec": {"command": ["true"]}},
                    "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
                })
            )])),
            &[("restricted:latest", "")],
        ),
    ]);
}

#[test]
fn containers_are_not_privileged() {
    let one = "privileged (container \"c\" must not set securityContext.privileged=true)";
    judged(&[
        (
            with_security(json!({"privileged": true})),
            &[("baseline:v1.0", one), ("baseline:latest", one), ("restricted:latest", one)],
        ),
        (with_security(json!({"privileged": false})), &[("restricted:latest", "")]),
    ]);
}

#[test]
fn proc_stays_masked_but_for_user_namespaces_at_baseline() {
    let one = "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")";
    let unmasked = json!([secured("c", json!({"procMount": "Unmasked"}))]);
    judged(&[
        (
            with_containers(unmasked.clone()),
            &[
                ("baseline:v1.0", one),
                ("baseline:latest", one),
                ("restricted:v1.0", one),
                ("restricted:v1.35", one),
            ],
        ),
        (
            spec(json!({"hostUsers": false, "containers": unmasked})),
            &[
                ("baseline:v1.34", one),
                ("baseline:v1.35", ""),
                ("baseline:latest", ""),
                ("restricted:v1.34", one),
                ("restricted:latest", one),
            ],
        ),
        (spec(json!({"hostUsers": true, "containers": unmasked})), &[("baseline:latest", one)]),
        (
            with_containers(json!([
                secured("a", json!({"procMount": "Unmasked"})),
                secured("b", json!({"procMount": "Other"})),
            ])),
            &[(
                "baseline:latest",
                "procMount (containers \"a\", \"b\" must not set securityContext.procMount to \
                 \"Other\", \"Unmasked\")",
            )],
        ),
        (with_security(json!({"procMount": "Default"})), &[("restricted:latest", "")]),
    ]);
}

#[test]
fn se_linux_labels_are_those_of_containers() {
    let options = |options: serde_json::Value| json!({"seLinuxOptions": options});
    let engine = "seLinuxOptions (container \"c\" set forbidden securityContext.seLinuxOptions: \
                  type \"container_engine_t\")";
    let user = "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: user may not be \
                set)";
    judged(&[
        (
            with_security(options(json!({"type": "container_engine_t"}))),
            &[
                ("baseline:v1.30", engine),
                ("restricted:v1.30", engine),
                ("baseline:v1.31", ""),
                ("restricted:latest", ""),
            ],
        ),
        (
            with_pod_security(options(json!({"user": "u"}))),
            &[("baseline:v1.0", user), ("restricted:latest", user)],
        ),
        (
            spec(json!({
                "securityContext": options(json!({"type": "x"})),
                "containers": [
                    secured("a", options(json!({"type": "y", "role": "r"}))),
                    secured("b", options(json!({"user": "u"}))),
                ],
            })),
            &[(
                "baseline:latest",
                "seLinuxOptions (pod and containers \"a\", \"b\" set forbidden \
                 securityContext.seLinuxOptions: types \"x\", \"y\"; user may not be set; role \
                 may not be set)",
            )],
        ),
        (
            with_security(options(json!({"type": "container_kvm_t", "level": "s0", "user": ""}))),
            &[("baseline:v1.0", ""), ("restricted:latest", "")],
        ),
        (with_pod_security(options(json!({}))), &[("restricted:latest", "")]),
    ]);
}

#[test]
fn the_filter_of_system_calls_stays_on() {
    let profile = |kind: &str| json!({"seccompProfile": {"type": kind}});
    let one = "seccompProfile (container \"c\" must not set securityContext.seccompProfile.type \
               to \"Unconfined\")";
    judged(&[
        (
            with_security(profile("Unconfined")),
            &[
                ("baseline:v1.18", ""),
                ("baseline:v1.19", one),
                ("baseline:latest", one),
                ("restricted:v1.18", ""),
                ("restricted:v1.19", one),
                ("restricted:latest", one),
            ],
        ),
        (
            spec(json!({
                "securityContext": profile("Unconfined"),
                "containers": [secured("a", profile("None")), secured("b", profile("None"))],
            })),
            &[(
                "baseline:latest",
                "seccompProfile (pod and containers \"a\", \"b\" must not set \
                 securityContext.seccompProfile.type to \"None\", \"Unconfined\")",
            )],
        ),
        (
            with_security(profile("Localhost")),
            &[("baseline:latest", ""), ("restricted:latest", "")],
        ),
        (with_pod_security(json!({"seccompProfile": null})), &[("baseline:latest", "")]),
    ]);
}

#[test]
fn the_filter_of_system_calls_was_an_annotation() {
    let annotated = |annotations| pod(json!({"metadata": {"annotations": annotations}}));
    let one = "seccompProfile (forbidden annotation \
               seccomp.security.alpha.kubernetes.io/pod=\"unconfined\")";
    judged(&[
        (
            annotated(json!({"seccomp.security.alpha.kubernetes.io/pod": "unconfined"})),
            &[
                ("baseline:v1.0", one),
                ("baseline:v1.18", one),
                ("restricted:v1.18", one),
                ("baseline:v1.19", ""),
                ("restricted:latest", ""),
            ],
        ),
        (
            annotated(json!({
                "seccomp.security.alpha.kubernetes.io/pod": "",
                "container.seccomp.security.alpha.kubernetes.io/c": "mine",
                "container.seccomp.security.alpha.kubernetes.io/other": "unconfined",
            })),
            &[(
                "baseline:v1.18",
                "seccompProfile (forbidden annotations \
                 container.seccomp.security.alpha.kubernetes.io/c=\"mine\", \
                 seccomp.security.alpha.kubernetes.io/pod=\"\")",
            )],
        ),
        (
            annotated(json!({
                "seccomp.security.alpha.kubernetes.io/pod": "docker/default",
                "container.seccomp.security.alpha.kubernetes.io/c": "localhost/mine",
            })),
            &[("baseline:v1.0", "")],
        ),
    ]);
}

#[test]
fn kernel_parameters_concern_the_pod_alone() {
    let sysctls = |names: &[&str]| {
        let sysctls: Vec<_> =
            names.iter().map(|name| json!({"name": name, "value": "1"})).collect();
        with_pod_security(json!({"sysctls": sysctls}))
    };
    let of = |name: &str| format!("forbidden sysctls ({name})");
    let one = of("kernel.msgmax");
    let (ports, time, memory) = (
        of("net.ipv4.ip_local_reserved_ports"),
        of("net.ipv4.tcp_keepalive_time"),
        of("net.ipv4.tcp_rmem"),
    );
    judged(&[
        (
            sysctls(&["kernel.shm_rmid_forced", "kernel.msgmax"]),
            &[("baseline:v1.0", &*one), ("baseline:latest", &one), ("restricted:latest", &one)],
        ),
        (
            sysctls(&["kernel.msgmax", "a", "kernel.msgmax"]),
            &[("baseline:latest", "forbidden sysctls (kernel.msgmax, a, kernel.msgmax)")],
        ),
        (
            sysctls(&["net.ipv4.ip_local_reserved_ports"]),
            &[("baseline:v1.26", &*ports), ("baseline:v1.27", ""), ("restricted:latest", "")],
        ),
        (
            sysctls(&["net.ipv4.tcp_keepalive_time"]),
            &[("baseline:v1.28", &*time), ("baseline:v1.29", ""), ("restricted:latest", "")],
        ),
        (
            sysctls(&["net.ipv4.tcp_rmem"]),
            &[("baseline:v1.31", &*memory), ("baseline:v1.32", ""), ("restricted:latest", "")],
        ),
    ]);
}

#[test]
fn windows_has_no_processes_of_the_host() {
    let options = |is: bool| json!({"windowsOptions": {"hostProcess": is}});
    let one = "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)";
    judged(&[
        (
            with_pod_security(options(true)),
            &[("baseline:v1.0", one), ("baseline:latest", one), ("restricted:latest", one)],
        ),
        (
            spec(json!({
                "securityContext": options(true),
                "containers": [secured("a", options(true)), secured("b", options(true))],
            })),
            &[(
                "baseline:latest",
                "hostProcess (pod and containers \"a\", \"b\" must not set \
                 securityContext.windowsOptions.hostProcess=true)",
            )],
        ),
        (with_security(options(false)), &[("restricted:latest", "")]),
    ]);
}
