//! Mistakes in security contexts, and what a pod shares with its host.

use serde_json::{Value, json};

use super::{RULES, check, messages};

#[test]
fn security_contexts() {
    check(&[
        (
            "securityContext",
            json!({"runAsUser": -1}),
            &["spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and \
               2147483647, inclusive"],
        ),
        (
            "securityContext",
            json!({"supplementalGroups": [1, -2], "fsGroupChangePolicy": "Now"}),
            &[
                "spec.securityContext.supplementalGroups[1]: Invalid value: -2: must be between 0 \
               and 2147483647, inclusive",
                "spec.securityContext.fsGroupChangePolicy: Unsupported value: \"Now\": supported \
               values: \"Always\", \"OnRootMismatch\"",
            ],
        ),
        (
            "securityContext",
            json!({"seccompProfile": {"type": "Localhost"}}),
            &["spec.securityContext.seccompProfile.localhostProfile: Required value: must be set \
               when seccomp type is Localhost"],
        ),
        (
            "securityContext",
            json!({"seccompProfile": {"type": "RuntimeDefault", "localhostProfile": "a"}}),
            &["spec.securityContext.seccompProfile.localhostProfile: Invalid value: \
               {\"Type\":\"RuntimeDefault\",\"LocalhostProfile\":\"a\"}: can only be set when \
               seccomp type is Localhost"],
        ),
        ("securityContext", json!({"seLinuxChangePolicy": "Recursive"}), &[]),
        (
            "securityContext",
            json!({"seLinuxChangePolicy": "MountOption"}),
            &["spec.securityContext.seLinuxChangePolicy: Unsupported value: \"MountOption\": \
               supported values: \"Recursive\""],
        ),
        (
            "securityContext",
            json!({"appArmorProfile": {"type": "Strict"}}),
            &["spec.securityContext.appArmorProfile.type: Unsupported value: \"Strict\": \
               supported values: \"Localhost\", \"RuntimeDefault\", \"Unconfined\""],
        ),
        (
            "securityContext",
            json!({"sysctls": [
                {"name": "net.core.x", "value": "1"}, {"name": "Bad", "value": "1"},
                {"name": "net.core.x", "value": "1"},
            ]}),
            &[
                "spec.securityContext.sysctls[1].name: Invalid value: \"Bad\": must have at most \
               253 characters and match regex \
               ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
                "spec.securityContext.sysctls[2].name: Duplicate value: \"net.core.x\"",
            ],
        ),
    ]);
}

#[test]
fn security_contexts_of_containers() {
    check(&[
        (
            "containers/0/securityContext",
            json!({"allowPrivilegeEscalation": false, "privileged": true}),
            &["spec.containers[0].securityContext: Invalid value: \
               {\"Capabilities\":null,\"Privileged\":true,\"SELinuxOptions\":null,\
               \"WindowsOptions\":null,\"RunAsUser\":null,\"RunAsGroup\":null,\
               \"RunAsNonRoot\":null,\"ReadOnlyRootFilesystem\":null,\
               \"AllowPrivilegeEscalation\":false,\"ProcMount\":null,\"SeccompProfile\":null,\
               \"AppArmorProfile\":null}: cannot set `allowPrivilegeEscalation` to false and \
               `privileged` to true"],
        ),
        (
            "containers/0/securityContext",
            json!({"procMount": "Unmasked"}),
            &["spec.containers[0].securityContext.procMount: Invalid value: \"Unmasked\": \
               `hostUsers` must be false to use `Unmasked`"],
        ),
    ]);
}

#[test]
fn windows() {
    check(&[
        (
            "os",
            json!({"name": "beos"}),
            &["spec.os: Unsupported value: \"beos\": supported values: \"linux\", \"windows\""],
        ),
        ("os", json!({"name": ""}), &["spec.os.name: Required value"]),
        ("os", json!({"name": "linux"}), &[]),
        (
            "securityContext",
            json!({"windowsOptions": {"runAsUserName": "a\\b\\c"}}),
            &[
                "spec.securityContext.windowsOptions.runAsUserName: Invalid value: \"a\\\\b\\\\c\": \
               runAsUserName cannot contain more than one backslash",
            ],
        ),
        (
            "securityContext",
            json!({"windowsOptions": {"hostProcess": true}}),
            &["spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains \
               any hostProcess containers"],
        ),
    ]);
}

#[test]
fn a_pod_of_windows_has_no_users_of_linux() {
    let mut pod = super::rich();
    pod["spec"]["os"] = json!({"name": "windows"});
    pod["spec"]["securityContext"] = json!({"runAsUser": 1, "fsGroup": 1});
    pod["spec"]["hostPID"] = json!(true);
    pod["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    let errors = messages(&RULES.validate_create(&pod));
    assert_eq!(
        errors,
        [
            "spec.hostPID: Forbidden: cannot be set for a windows pod",
            "spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod",
            "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
            "spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a windows \
          pod"
        ]
    );
}

#[test]
fn what_is_shared_with_the_host() {
    let mut pod = super::rich();
    pod["spec"]["hostNetwork"] = json!(true);
    pod["spec"]["containers"][0]["ports"][0]["hostPort"] = json!(81);
    pod["spec"]["hostPID"] = json!(true);
    pod["spec"]["shareProcessNamespace"] = json!(true);
    pod["spec"]["hostUsers"] = json!(false);
    let errors = messages(&RULES.validate_create(&pod));
    assert_eq!(
        errors,
        [
            "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` \
          when `hostNetwork` is true",
            "spec.securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace \
          and HostPID cannot both be enabled",
            "spec.hostNetwork: Forbidden: when `hostUsers` is false",
            "spec.HostPID: Forbidden: when `hostUsers` is false"
        ]
    );
}

#[test]
fn annotations_that_mean_something() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "kubernetes.io/config.mirror",
            "x",
            "metadata.annotations[kubernetes.io/config.mirror]: Invalid value: \"x\": must set \
             spec.nodeName if mirror pod annotation is set",
        ),
        (
            "controller.kubernetes.io/pod-deletion-cost",
            "+1",
            "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: \
             \"+1\": must be a 32bit integer",
        ),
        (
            "container.apparmor.security.beta.kubernetes.io/x",
            "unconfined",
            "metadata.annotations[container.apparmor.security.beta.kubernetes.io/x]: Invalid \
             value: \"x\": container not found",
        ),
        (
            "seccomp.security.alpha.kubernetes.io/pod",
            "nope",
            "metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: \
             \"nope\": must be a valid seccomp profile",
        ),
        (
            "scheduler.alpha.kubernetes.io/tolerations",
            "zz",
            "metadata.annotations: Invalid value: \"scheduler.alpha.kubernetes.io/tolerations\": \
             invalid character 'z' looking for beginning of value",
        ),
        (
            "scheduler.alpha.kubernetes.io/tolerations",
            r#"[{"operator": "Exists", "value": "a"}]"#,
            "metadata.annotations.scheduler.alpha.kubernetes.io/tolerations[0].operator: Invalid \
             value: \"a\": value must be empty when `operator` is 'Exists'",
        ),
    ];
    for (key, value, message) in cases {
        let mut pod = super::rich();
        pod["metadata"]["annotations"] = json!({*key: *value});
        let errors = messages(&RULES.validate_create(&pod));
        assert_eq!(errors, [*message]);
    }
    for (cost, is_fine) in
        [("-05", true), ("-0", true), ("0", true), ("05", false), ("", false), ("-", false)]
    {
        let mut pod = super::rich();
        pod["metadata"]["annotations"] =
            json!({"controller.kubernetes.io/pod-deletion-cost": cost});
        assert_eq!(RULES.validate_create(&pod).is_empty(), is_fine, "{cost}");
    }
    // All at once they are told in the order of upstream, not of their names.
    let mut pod = super::rich();
    pod["metadata"]["annotations"] =
        cases.iter().take(5).map(|(key, value, _)| ((*key).to_owned(), json!(value))).collect();
    let errors = messages(&RULES.validate_create(&pod));
    assert_eq!(errors, [0, 4, 1, 3, 2].map(|i: usize| cases[i].2));
}

#[test]
fn what_annotations_say_of_app_armor_becomes_a_field() {
    let made = |annotation: &str, spec: Value| {
        let key = "container.apparmor.security.beta.kubernetes.io/web";
        let mut pod = json!({"metadata": {"annotations": {key: annotation}}, "spec": spec});
        RULES.prepare_create(&mut pod);
        pod["spec"]["containers"][0]["securityContext"]["appArmorProfile"].take()
    };
    let web = json!({"containers": [{"name": "web", "image": "nginx"}]});
    let mine = json!({"type": "Localhost", "localhostProfile": "mine"});
    assert_eq!(made("unconfined", web.clone()), json!({"type": "Unconfined"}));
    assert_eq!(made("runtime/default", web.clone()), json!({"type": "RuntimeDefault"}));
    assert_eq!(made("localhost/mine", web.clone()), mine);
    for wrong in ["", "localhost/", "localhost/ x", "nonsense"] {
        assert_eq!(made(wrong, web.clone()), json!(null), "{wrong:?}");
    }
    let mut spec = web.clone();
    spec["containers"][0]["securityContext"] = json!({"appArmorProfile": mine});
    assert_eq!(made("unconfined", spec), mine, "the field of a container comes first");
    let mut spec = web.clone();
    spec["securityContext"] = json!({"appArmorProfile": {"type": "Unconfined"}});
    assert_eq!(made("unconfined", spec), json!(null), "the pod says the same");
    let mut spec = web;
    spec["os"] = json!({"name": "windows"});
    assert_eq!(made("unconfined", spec), json!(null));
}
