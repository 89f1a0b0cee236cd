//! What is valid but hardly meant.

use serde_json::{Value, json};

use super::{RULES, put, rich};

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
