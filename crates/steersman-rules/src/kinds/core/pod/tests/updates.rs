//! What of a pod may change.

use serde_json::{Value, json};

use super::{RULES, messages, put, rich};

fn changed(path: &str, value: Value) -> Vec<String> {
    changed_from(&rich(), path, value)
}

fn changed_from(old: &Value, path: &str, value: Value) -> Vec<String> {
    let mut new = old.clone();
    put(&mut new["spec"], path, value);
    messages(&RULES.validate_update(old, &new))
}

#[test]
fn images_deadlines_and_more_tolerations_may_change() {
    assert!(changed("containers/0/image", json!("nginx:2")).is_empty());
    assert!(changed("initContainers/0/image", json!("busybox:2")).is_empty());
    assert!(changed("activeDeadlineSeconds", json!(5)).is_empty());
    assert!(changed("tolerations/2", json!({"key": "a", "operator": "Exists"})).is_empty());
    assert!(changed("tolerations/0/tolerationSeconds", json!(5)).is_empty());
}

#[test]
fn anything_else_may_not_and_the_client_reads_what() {
    let start = "spec: Forbidden: pod updates may not change fields other than \
                 `spec.containers[*].image`,`spec.initContainers[*].image`,\
                 `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
                 tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it \
                 was previously negative)\n";
    for (path, value, difference) in [
        ("nodeName", json!("n1"), "\n- \"NodeName\": \"\",\n+ \"NodeName\": \"n1\",\n"),
        (
            "containers/0/env/0/value",
            json!("x"),
            "\n-     \"Value\": \"b\",\n+     \"Value\": \"x\",\n",
        ),
        ("priority", json!(7), "\n- \"Priority\": 0,\n+ \"Priority\": 7,\n"),
    ] {
        let told = changed(path, value);
        let [told] = told.as_slice() else { panic!("{path}: {told:?}") };
        assert!(told.starts_with(&format!("{start}@@ -")), "{path}: {told}");
        assert!(told.contains(difference), "{path}: {told}");
    }
    // What is empty was never there.
    assert!(changed("imagePullSecrets", json!([])).is_empty());
}

#[test]
fn resources_of_the_pod_as_a_whole_may_not_be_left_out() {
    let mut old = rich();
    old["spec"]["resources"] = json!({"requests": {"cpu": "1"}});
    let mut new = old.clone();
    new["spec"].as_object_mut().unwrap().remove("resources");
    RULES.prepare_update(&old, &mut new);
    RULES.fill_in(&mut new);
    let told = messages(&RULES.validate_update(&old, &new));
    assert!(told[0].starts_with("spec: Forbidden: pod updates may not change fields"), "{told:?}");
}

#[test]
fn mistakes_in_what_may_change_are_told() {
    assert_eq!(
        changed("tolerations", json!([])),
        ["spec.tolerations: Forbidden: existing toleration can not be modified except its \
          tolerationSeconds"]
    );
    assert_eq!(
        changed("schedulingGates", json!([{"name": "g"}])),
        ["spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new \
          scheduling gate 'g'"]
    );
    let added = json!([{"name": "i", "image": "a:1"}, {"name": "j", "image": "a:1"}]);
    assert!(changed("initContainers", added).contains(
        &"spec.initContainers: Forbidden: pod updates may not add or remove containers".to_owned()
    ));
    let mut limited = rich();
    limited["spec"]["activeDeadlineSeconds"] = json!(10);
    assert_eq!(
        changed_from(&limited, "activeDeadlineSeconds", json!(11)),
        ["spec.activeDeadlineSeconds: Invalid value: 11: must be less than or equal to previous \
          value"]
    );
    assert_eq!(
        changed_from(&limited, "activeDeadlineSeconds", Value::Null),
        ["spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive \
          integer to nil value"]
    );
}

#[test]
fn what_may_change_is_looked_at_twice() {
    let image = "spec.containers[0].image";
    let spaces =
        format!("{image}: Invalid value: \" a\": must not have leading or trailing whitespace");
    assert_eq!(changed("containers/0/image", json!(" a")), [spaces.as_str(), spaces.as_str()]);
    let required = format!("{image}: Required value");
    let none = changed("containers/0/image", json!(""));
    assert_eq!(none, [required.as_str(), required.as_str()]);
    let effect = "spec.tolerations[2].effect: Unsupported value: \"Go\": supported values: \
                  \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"";
    let toleration = json!({"key": "a", "effect": "Go"});
    assert_eq!(changed("tolerations/2", toleration), [effect, effect]);
    let mut old = rich();
    let cost = "controller.kubernetes.io/pod-deletion-cost";
    old["metadata"]["annotations"] = json!({"a": "b"});
    let mut new = old.clone();
    new["metadata"]["annotations"] = json!({cost: "x"});
    let told = messages(&RULES.validate_update(&old, &new));
    let why =
        format!("metadata.annotations[{cost}]: Invalid value: \"x\": must be a 32bit integer");
    assert_eq!(told, [why.as_str(), why.as_str()]);
}

#[test]
fn after_a_deadline_that_cannot_be_nothing_else_is_looked_at() {
    let mut limited = rich();
    limited["spec"]["activeDeadlineSeconds"] = json!(10);
    let later = |seconds: i64| {
        let mut new = limited.clone();
        new["spec"]["activeDeadlineSeconds"] = json!(seconds);
        new["spec"]["tolerations"] = json!([]);
        messages(&RULES.validate_update(&limited, &new))
    };
    let at = "spec.activeDeadlineSeconds: Invalid value:";
    assert_eq!(later(11), [format!("{at} 11: must be less than or equal to previous value")]);
    assert_eq!(
        later(-1),
        [
            format!("{at} -1: must be between 1 and 2147483647, inclusive"),
            format!("{at} -1: must be between 0 and 2147483647, inclusive"),
        ]
    );
}

#[test]
fn a_gated_pod_may_be_told_more_narrowly_where_to_run() {
    let mut gated = rich();
    gated["spec"]["schedulingGates"] = json!([{"name": "g"}]);
    gated["spec"]["nodeSelector"] = json!({"a": "b"});
    assert!(changed_from(&gated, "schedulingGates", json!([])).is_empty());
    assert!(changed_from(&gated, "nodeSelector/c", json!("d")).is_empty());
    let errors = changed_from(&gated, "nodeSelector", json!({}));
    assert_eq!(
        errors,
        ["spec.nodeSelector: Invalid value: {}: only additions to spec.nodeSelector are allowed \
          (no mutations or deletions)"]
    );
}
