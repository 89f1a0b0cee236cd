//! What Pods use.

use serde_json::{Value, json};

use super::usage;
use crate::quota::Evaluator;

/// A container with these requests and limits.
fn container(requests: &Value, limits: &Value) -> Value {
    json!({"name": "c", "resources": {"requests": requests, "limits": limits}})
}

fn cpu(amount: &str) -> Value {
    container(&json!({"cpu": amount}), &json!({"cpu": amount}))
}

/// What of cpu a Pod with this spec asks for and may use.
fn cpu_of(pod: &Value) -> [Value; 2] {
    let used = usage(&Evaluator::Pods, pod);
    assert_eq!(used["cpu"], used["requests.cpu"]);
    [used["requests.cpu"].clone(), used["limits.cpu"].clone()]
}

#[test]
fn requests_and_limits_count_under_all_their_names() {
    let requests = json!({
        "cpu": "500m", "memory": "1Gi", "ephemeral-storage": "1G", "hugepages-2Mi": "4Mi",
        "nvidia.com/gpu": "2", "deviceclass.resource.kubernetes.io/nic": "1",
        "kubernetes.io/other": "7",
    });
    let limits = json!({"cpu": "1", "memory": "2Gi", "ephemeral-storage": "2G"});
    let pod = json!({"spec": {"containers": [container(&requests, &limits)]}});
    let expected = json!({
        "count/pods": "1", "pods": "1",
        "cpu": "500m", "requests.cpu": "500m", "limits.cpu": "1",
        "memory": "1Gi", "requests.memory": "1Gi", "limits.memory": "2Gi",
        "ephemeral-storage": "1G", "requests.ephemeral-storage": "1G",
        "limits.ephemeral-storage": "2G",
        "hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi",
        "requests.nvidia.com/gpu": "2",
        "requests.deviceclass.resource.kubernetes.io/nic": "1",
    });
    assert_eq!(usage(&Evaluator::Pods, &pod), expected);
}

#[test]
fn containers_init_containers_and_the_pod_itself_add_up() {
    let beside = |amount: &str| {
        let mut sidecar = cpu(amount);
        sidecar["restartPolicy"] = json!("Always");
        sidecar
    };
    let whole = |amount: &str| json!({"requests": {"cpu": amount}, "limits": {"cpu": amount}});
    let table = [
        (json!({"containers": [cpu("1"), cpu("250m")]}), "1250m"),
        (json!({"containers": [cpu("1")], "initContainers": [cpu("2"), cpu("3")]}), "3"),
        (json!({"containers": [cpu("4")], "initContainers": [cpu("2"), cpu("3")]}), "4"),
        (json!({"containers": [cpu("1")], "initContainers": [beside("2")]}), "3"),
        // The second init container runs beside the first, and before the container.
        (json!({"containers": [cpu("1")], "initContainers": [beside("2"), cpu("5")]}), "7"),
        (json!({"containers": [cpu("1")], "initContainers": [cpu("5"), beside("2")]}), "5"),
        (json!({"containers": [cpu("1")], "resources": whole("4")}), "4"),
        (json!({"containers": [cpu("1")], "overhead": {"cpu": "100m"}}), "1100m"),
        (json!({"containers": [cpu("1")], "resources": whole("4"), "overhead": {"cpu": "1"}}), "5"),
    ];
    for (spec, expected) in table {
        assert_eq!(cpu_of(&json!({"spec": spec})), [expected, expected], "{spec}");
    }
}

#[test]
fn overhead_is_a_request_but_no_limit_where_there_is_none() {
    let pod = json!({"spec": {"containers": [{"name": "c"}], "overhead": {"cpu": "1"}}});
    assert_eq!(cpu_of(&pod), [json!("1"), Value::Null]);
}

#[test]
fn a_container_that_is_resized_counts_as_the_most_it_has_or_wants() {
    let pod = |status: Value, conditions: Value| {
        let mut status = status;
        status["name"] = json!("c");
        json!({
            "spec": {"containers": [cpu("2")]},
            "status": {"containerStatuses": [status], "conditions": conditions},
        })
    };
    let has = |amount: &str| {
        json!({"resources": {
        "requests": {"cpu": amount}, "limits": {"cpu": amount}}})
    };
    let mut allocated = has("1");
    allocated["allocatedResources"] = json!({"cpu": "5"});
    let infeasible = json!([{"type": "PodResizePending", "reason": "Infeasible"}]);
    let deferred = json!([{"type": "PodResizePending", "reason": "Deferred"}]);
    let table = [
        (pod(json!({}), json!([])), ["2", "2"]),
        (pod(has("3"), json!([])), ["3", "3"]),
        (pod(has("1"), json!([])), ["2", "2"]),
        (pod(allocated.clone(), json!([])), ["5", "2"]),
        (pod(has("1"), deferred), ["2", "2"]),
        (pod(has("1"), infeasible.clone()), ["1", "1"]),
        (pod(allocated, infeasible), ["5", "1"]),
    ];
    for (pod, expected) in table {
        assert_eq!(cpu_of(&pod), expected, "{pod}");
    }
}

#[test]
fn a_pod_whose_work_is_over_is_only_counted() {
    let ended = json!({"count/pods": "1"});
    let pod = |status: Value, deleted: &[(&str, Value)]| {
        let mut pod = json!({"metadata": {}, "spec": {"containers": [cpu("1")]}, "status": status});
        for (field, value) in deleted {
            pod["metadata"][*field] = value.clone();
        }
        pod
    };
    let deleted =
        |at: &str| [("deletionTimestamp", json!(at)), ("deletionGracePeriodSeconds", json!(30))];
    let table = [
        (pod(json!({"phase": "Running"}), &[]), false),
        (pod(json!({"phase": "Succeeded"}), &[]), true),
        (pod(json!({"phase": "Failed"}), &[]), true),
        // It is twelve o'clock.
        (pod(json!({"phase": "Running"}), &deleted("2026-01-01T11:59:30Z")), false),
        (pod(json!({"phase": "Running"}), &deleted("2026-01-01T11:59:29Z")), true),
    ];
    for (pod, is_over) in table {
        let used = usage(&Evaluator::Pods, &pod);
        assert_eq!(used == ended, is_over, "{pod}");
    }
}

#[test]
fn what_a_quota_counts_every_container_must_say() {
    let missing = |names: &[&str], spec: Value| {
        Evaluator::Pods.missing(names, &json!({"spec": spec})).unwrap_or_default()
    };
    let named = |name: &str, resources: Value| json!({"name": name, "resources": resources});
    let nothing = json!({});
    let all = &["cpu", "limits.cpu", "limits.memory", "pods", "requests.nvidia.com/gpu"];
    let says = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "1"}});
    let two = json!({
        "containers": [named("b", nothing.clone()), named("a", json!({"limits": {"cpu": "1"}}))],
        "initContainers": [named("i", nothing.clone())],
    });
    assert_eq!(
        missing(all, two.clone()),
        "must specify cpu for: a,b,i; limits.cpu for: b,i; limits.memory for: a,b,i"
    );
    assert_eq!(missing(&["pods", "requests.ephemeral-storage"], two.clone()), "");
    assert_eq!(missing(all, json!({"containers": [named("a", says)]})), "");
    let mut whole = two;
    whole["resources"] = json!({"requests": {"memory": "1"}});
    assert_eq!(missing(all, whole), "");
}
