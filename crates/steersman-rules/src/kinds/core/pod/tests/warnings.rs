//! What is valid but hardly meant.

use serde_json::{Value, json};

use super::{RULES, put, rich};
use crate::kinds::for_kind;

fn warnings(path: &str, value: Value) -> Vec<String> {
    let mut pod = rich();
    put(&mut pod, path, value);
    RULES.warnings(&pod, None)
}

#[test]
fn a_plain_pod_is_not_warned_about() {
    assert_eq!(RULES.warnings(&rich(), None), Vec::<String>::new());
}

#[test]
fn what_is_old_doubled_or_cut_is_warned_about() {
    let cases = [
        (
            "metadata/annotations",
            json!({"scheduler.alpha.kubernetes.io/critical-pod": ""}),
            "metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in \
             v1.16+; use the \"priorityClassName\" field instead",
        ),
        (
            "spec/nodeSelector",
            json!({"beta.kubernetes.io/arch": "amd64"}),
            "spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use \
             \"kubernetes.io/arch\" instead",
        ),
        (
            "spec/containers/0/env/1",
            json!({"name": "A", "value": "c"}),
            "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped \
             when using apply",
        ),
        (
            "spec/containers/0/ports/1",
            json!({"containerPort": 80, "protocol": "TCP"}),
            "spec.containers[0].ports[1]: duplicate port definition with \
             spec.containers[0].ports[0]",
        ),
        (
            "spec/containers/0/resources",
            json!({"limits": {"memory": "1500m"}}),
            "spec.containers[0].resources.limits[memory]: fractional byte value \"1500m\" is \
             invalid, must be an integer",
        ),
        (
            "spec/terminationGracePeriodSeconds",
            json!(-1),
            "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and \
             will be treated as 1",
        ),
        (
            "spec/imagePullSecrets",
            json!([{"name": "s"}, {"name": "s"}]),
            "spec.imagePullSecrets[1].name: duplicate name \"s\"",
        ),
        (
            "spec/volumes/0",
            json!({"name": "v", "gitRepo": {"repository": "r"}}),
            "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
        ),
        (
            "spec/topologySpreadConstraints",
            json!([{"topologyKey": "zone"}]),
            "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in \
             matching no pod",
        ),
        (
            "metadata/name",
            json!("a.b"),
            "metadata.name: this is used in the Pod's hostname, which can result in surprising \
             behavior; a DNS label is recommended: [must not contain dots]",
        ),
    ];
    for (path, value, warning) in cases {
        assert_eq!(warnings(path, value.clone()), [warning], "{path} = {value}");
    }
    let extended = json!({"name": "A", "value": "$(A):c"});
    assert_eq!(warnings("spec/containers/0/env/1", extended), Vec::<String>::new());
}

#[test]
fn a_change_of_a_pod_is_not_warned_about_again() {
    let mut pod = rich();
    pod["metadata"]["name"] = json!("a.b");
    assert!(RULES.warnings(&pod, Some(&pod.clone())).is_empty());
}

#[test]
fn a_variable_that_hides_another_is_warned_about() {
    let hides =
        ["spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped \
                  when using apply"];
    let same = json!({"name": "A", "value": "$(A)"});
    assert_eq!(warnings("spec/containers/0/env/1", same), hides);
    let from = json!({"fieldRef": {"fieldPath": "spec.nodeName"}});
    let source = json!({"name": "A", "value": "$(A):c", "valueFrom": from});
    assert_eq!(warnings("spec/containers/0/env/1", source), hides);
}

#[test]
fn ports_that_cannot_all_be_meant_are_warned_about() {
    let at = "spec.containers[0].ports";
    assert_eq!(
        warnings(
            "spec/containers/0/ports",
            json!([{"name": "a", "containerPort": 80, "protocol": "TCP", "hostIP": "10.0.0.1"}])
        ),
        [format!(
            "{at}[0]: hostIP set without hostPort: {{Name:a HostPort:0 ContainerPort:80 Protocol:TCP \
             HostIP:10.0.0.1}}"
        )]
    );
    let mut pod = rich();
    let port = |number: i64| json!({"name": "http", "containerPort": number, "protocol": "TCP"});
    put(&mut pod, "spec/containers/1", json!({"name": "d", "ports": [port(81), port(82)]}));
    let first = "spec.containers[0].ports[0]";
    let told = |i: usize| {
        format!(
            "spec.containers[1].ports[{i}]: duplicate port name \"http\" with {first}, services and \
             probes that select ports by name will use {first}"
        )
    };
    assert_eq!(RULES.warnings(&pod, None), [told(0), told(1)]);
}

#[test]
fn volumes_with_parts_of_bytes_and_of_old_are_warned_about() {
    let claim = json!({"spec": {"resources": {"limits": {"storage": "1500m"}}}});
    for (volume, warning) in [
        (
            json!({"name": "v", "ephemeral": {"volumeClaimTemplate": claim}}),
            "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.limits[storage]: \
             fractional byte value \"1500m\" is invalid, must be an integer",
        ),
        (
            json!({"name": "v", "storageos": {}}),
            "spec.volumes[0].storageOS: deprecated in v1.22, non-functional in v1.25+",
        ),
    ] {
        assert_eq!(warnings("spec/volumes/0", volume), [warning]);
    }
    assert_eq!(
        warnings("spec/overhead", json!({"ephemeral-storage": "100m"})),
        [
            "spec.overhead[ephemeral-storage]: fractional byte value \"100m\" is invalid, must be an \
          integer"
        ]
    );
}

#[test]
fn files_of_a_volume_that_overlap_are_warned_about() {
    let file = |path: &str| json!({"key": "k", "path": path});
    let files = |paths: [&str; 2]| json!(paths.map(file));
    let cases: [(Value, &[&str]); 5] = [
        (json!({"configMap": {"name": "m", "items": files(["a", "ab"])}}), &[]),
        (
            json!({"configMap": {"name": "m", "items": files(["a", "a/b/"])}}),
            &["volume \"v\" (ConfigMap \"m\"): overlapping paths: \"a/b\" with \"a\""],
        ),
        (
            json!({"secret": {"secretName": "s", "items": files(["a/b", "a"])}}),
            &["volume \"v\" (Secret \"s\"): overlapping paths: \"a\" with \"a/b\""],
        ),
        (
            json!({"downwardAPI": {"items": files(["a", "a"])}}),
            &["volume \"v\" (DownwardAPI): overlapping paths: \"a\" with \"a\""],
        ),
        (
            json!({"projected": {"sources": [
                {},
                {"secret": {"name": "s", "items": [file("a")]}},
                {"serviceAccountToken": {"path": "a/token"}},
                {"clusterTrustBundle": {"signerName": "x/y", "path": "b"}},
                {"podCertificate": {"keyPath": "b/key"}},
            ]}}),
            &[
                "volume \"v\" (Projected) has no sources provided",
                "volume \"v\" (Projected): overlapping paths: \"a/token\" (ServiceAccountToken) with \
                 \"a\" (Secret \"s\")",
                "volume \"v\" (Projected): overlapping paths: \"b/key\" (PodCertificate key) with \
                 \"b\" (ClusterTrustBundle \"x/y\")",
            ],
        ),
    ];
    for (mut volume, expected) in cases {
        volume["name"] = json!("v");
        assert_eq!(warnings("spec/volumes/0", volume), expected);
    }
    let many = json!({"name": "v", "secret": {"secretName": "s", "items": vec![file("a"); 256]}});
    assert_eq!(warnings("spec/volumes/0", many).len(), 128, "and no more");
}

#[test]
fn addresses_and_labels_in_odd_forms_are_warned_about() {
    let form = "should be in RFC 5952 canonical format (\"fd00::1\")";
    assert_eq!(
        warnings("spec/dnsConfig", json!({"nameservers": ["FD00::1"]})),
        [format!("spec.dnsConfig.nameservers[0]: IPv6 address \"FD00::1\" {form}")]
    );
    assert_eq!(
        warnings("spec/hostAliases", json!([{"ip": "FD00::1"}])),
        [format!("spec.hostAliases[0].ip: IPv6 address \"FD00::1\" {form}")]
    );
    let term =
        json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "a b"]}]});
    let list = "preferredDuringSchedulingIgnoredDuringExecution";
    let told = warnings(
        &format!("spec/affinity/nodeAffinity/{list}"),
        json!([{"weight": 1, "preference": term}]),
    );
    let place =
        "[0].preference.matchExpressions[0].values[1]: a b is invalid, a valid label must be";
    assert!(told[0].starts_with(&format!("spec.affinity.nodeAffinity.{list}{place}")), "{told:?}");
    assert_eq!(told.len(), 1);
}

#[test]
fn annotations_are_warned_about_only_without_the_fields_that_replaced_them() {
    let seccomp = "container.seccomp.security.alpha.kubernetes.io/c";
    let armor = "container.apparmor.security.beta.kubernetes.io/c";
    let annotations = json!({
        seccomp: "runtime/default", armor: "runtime/default",
        "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
        "container.seccomp.security.alpha.kubernetes.io/nobody": "unconfined",
    });
    let mut pod = rich();
    pod["metadata"]["annotations"] = annotations;
    let at = "metadata.annotations";
    let expected = [
        format!("{at}[{armor}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"),
        format!(
            "{at}[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the \
             \"seccompProfile\" field instead"
        ),
        format!(
            "{at}[{seccomp}]: non-functional in v1.27+; use the \"seccompProfile\" field instead"
        ),
    ];
    assert_eq!(RULES.warnings(&pod, None), expected);
    let mut copied = pod.clone();
    RULES.prepare_create(&mut copied);
    assert_eq!(RULES.warnings(&copied, None), expected);
    let profile = json!({"type": "RuntimeDefault"});
    pod["spec"]["securityContext"] =
        json!({"seccompProfile": {"type": "Unconfined"}, "appArmorProfile": profile});
    pod["spec"]["containers"][0]["securityContext"] = json!({"seccompProfile": profile});
    assert_eq!(RULES.warnings(&pod, None), [""; 0]);

    let mut template = json!({"template": pod});
    template["template"]["spec"]["securityContext"] = json!({});
    template["template"]["metadata"]["annotations"] = json!({armor: "runtime/default"});
    let warned = |template: &Value| for_kind("", "PodTemplate").warnings(template, None).len();
    assert_eq!(warned(&template), 1);
    template["template"]["spec"]["containers"][0]["securityContext"] =
        json!({"appArmorProfile": profile});
    assert_eq!(warned(&template), 0);
}

#[test]
fn a_name_is_warned_about_first_and_amounts_before_variables() {
    let mut pod = rich();
    pod["metadata"]["name"] = json!("a.b");
    let container = &mut pod["spec"]["containers"][0];
    container["env"] = json!([{"name": "A"}, {"name": "A"}]);
    container["resources"] = json!({
        "limits": {"memory": "1500m", "ephemeral-storage": "1500m"}, "requests": {"memory": "1500m"},
    });
    let warned = RULES.warnings(&pod, None);
    let at = "spec.containers[0]";
    let beginnings = [
        "metadata.name: this is used in the Pod's hostname".to_owned(),
        format!("{at}.resources.limits[memory]: "),
        format!("{at}.resources.requests[memory]: "),
        format!("{at}.resources.limits[ephemeral-storage]: "),
        format!("{at}.env[1]: hides previous definition"),
    ];
    assert_eq!(warned.len(), beginnings.len(), "{warned:?}");
    for (warning, beginning) in warned.iter().zip(beginnings) {
        assert!(warning.starts_with(&beginning), "{warned:?}");
    }
}

#[test]
fn what_makes_pods_is_warned_of_its_name_first() {
    let template = json!({"spec": {"terminationGracePeriodSeconds": -1}});
    let controller = json!({"metadata": {"name": "a.b"}, "spec": {"template": template}});
    let warned = for_kind("", "ReplicationController").warnings(&controller, None);
    let [name, grace] = warned.as_slice() else { panic!("{warned:?}") };
    assert!(name.starts_with("metadata.name: this is used in Pod names and hostnames"), "{name}");
    assert!(grace.starts_with("spec.template.spec.terminationGracePeriodSeconds: must"), "{grace}");
}
