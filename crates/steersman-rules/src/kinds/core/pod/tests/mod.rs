//! A valid pod, what is changed in it, and what is said about it.

mod containers;
mod defaults;
mod disabled;
mod placement;
mod security;
mod status;
mod updates;
mod volumes;
mod warnings;

use serde_json::json;

use super::*;
use crate::field::messages;

/// Sets what lies at a path such as `containers.0.image`, making what is missing on the way.
fn put(object: &mut Value, path: &str, value: Value) {
    let (head, rest) = path.split_once('/').unwrap_or((path, ""));
    let child = match head.parse::<usize>() {
        Ok(i) => {
            let items = object.as_array_mut().expect("a list on the way");
            items.resize(items.len().max(i + 1), json!({}));
            &mut items[i]
        }
        Err(_) => &mut object[head],
    };
    if rest.is_empty() { *child = value } else { put(child, rest, value) }
}

/// What admission plug-ins give to every pod.
fn default_tolerations() -> Value {
    let toleration = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
    json!(["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].map(toleration))
}

/// A pod that has one of much, as admission leaves it, and no mistake.
fn rich() -> Value {
    prepared(json!({
        "restartPolicy": "Always", "priority": 0, "serviceAccountName": "default",
        "tolerations": default_tolerations(),
        "containers": [{
            "name": "c", "image": "nginx:1",
            "ports": [{"name": "http", "containerPort": 80}],
            "env": [{"name": "A", "value": "b"}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }],
        "initContainers": [{"name": "i", "image": "busybox:1"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }))
}

/// What is said about the rich pod with one value of its spec changed.
fn complaints(path: &str, value: &Value) -> Vec<String> {
    let mut pod = rich();
    put(&mut pod["spec"], path, value.clone());
    RULES.fill_in(&mut pod);
    messages(&RULES.validate_create(&pod))
}

/// Checks a table of changes and what is said about each.
fn check(cases: &[(&str, Value, &[&str])]) {
    for (path, value, expected) in cases {
        assert_eq!(complaints(path, value), *expected, "{path} = {value}");
    }
}

#[test]
fn the_rich_pod_has_no_mistake() {
    assert_eq!(messages(&RULES.validate_create(&rich())), Vec::<String>::new());
}

fn prepared(spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": "web"}});
    pod["spec"] = spec;
    RULES.fill_in(&mut pod);
    RULES.prepare_create(&mut pod);
    pod
}

fn minimal() -> Value {
    prepared(json!({"containers": [{"name": "c", "image": "nginx:1"}]}))
}

#[test]
fn a_minimal_pod_is_filled_in_as_kubernetes_does() {
    assert_eq!(
        minimal(),
        json!({
            "metadata": {"name": "web"},
            "spec": {
                "containers": [{
                    "name": "c", "image": "nginx:1", "imagePullPolicy": "IfNotPresent",
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File", "resources": {},
                }],
                "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
                "schedulerName": "default-scheduler", "securityContext": {},
                "terminationGracePeriodSeconds": 30, "enableServiceLinks": true,
            },
            "status": {"phase": "Pending", "qosClass": "BestEffort"},
        })
    );
    assert!(RULES.validate_create(&minimal()).is_empty());
}

#[test]
fn filling_in_twice_changes_nothing() {
    let once = minimal();
    let mut twice = once.clone();
    RULES.fill_in(&mut twice);
    assert_eq!(twice, once);
}

#[test]
fn probes_ports_volumes_and_requests_are_filled_in() {
    let pod = prepared(json!({
        "hostNetwork": true,
        "containers": [{
            "name": "c", "image": "nginx",
            "ports": [{"containerPort": 80}],
            "livenessProbe": {"httpGet": {"port": 80}},
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
        }],
        "volumes": [{"name": "a"}, {"name": "b", "configMap": {"name": "x"}}],
    }));
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(
        container["ports"][0],
        json!({"containerPort": 80, "hostPort": 80, "protocol": "TCP"})
    );
    assert_eq!(
        container["livenessProbe"],
        json!({
            "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
            "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
        })
    );
    assert_eq!(container["resources"]["requests"], json!({"cpu": "1", "memory": "1Gi"}));
    assert_eq!(pod["spec"]["volumes"][0]["emptyDir"], json!({}));
    assert_eq!(pod["spec"]["volumes"][1]["configMap"]["defaultMode"], 420);
    assert_eq!(pod["status"]["qosClass"], "Guaranteed");
}

#[test]
fn an_own_toleration_of_lost_nodes_is_respected() {
    let pod = prepared(json!({"containers": [], "tolerations": [{"operator": "Exists"}]}));
    assert_eq!(pod["spec"]["tolerations"], json!([{"operator": "Exists"}]));
}

#[test]
fn a_gated_pod_says_so() {
    let pod = prepared(json!({"containers": [], "schedulingGates": [{"name": "g"}]}));
    assert_eq!(pod["status"]["conditions"][0]["reason"], "SchedulingGated");
}

#[test]
fn mistakes_are_named_as_kubernetes_names_them() {
    let one = |extra: Value| {
        let mut container = json!({"name": "c", "image": "i"});
        container.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"containers": [container]})
    };
    let cases = [
        (json!({}), "spec.containers: Required value"),
        (json!({"containers": [{"image": "i"}]}), "spec.containers[0].name: Required value"),
        (json!({"containers": [{"name": "c"}]}), "spec.containers[0].image: Required value"),
        (
            json!({"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]}),
            "spec.containers[1].name: Duplicate value: \"c\"",
        ),
        (
            one(json!({"imagePullPolicy": "Sometimes"})),
            "spec.containers[0].imagePullPolicy: Unsupported value: \"Sometimes\": supported \
             values: \"Always\", \"IfNotPresent\", \"Never\"",
        ),
        (
            one(json!({"ports": [{"containerPort": 70000}]})),
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 \
             and 65535, inclusive",
        ),
        (
            one(json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]})),
            "spec.containers[0].volumeMounts[0].name: Not found: \"v\"",
        ),
        (
            one(json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}})),
            "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or \
             equal to cpu limit of 1",
        ),
        (
            one(json!({"livenessProbe": {"periodSeconds": 3}})),
            "spec.containers[0].livenessProbe: Required value: must specify a handler type",
        ),
    ];
    for (spec, message) in cases {
        let errors = RULES.validate_create(&prepared(spec.clone()));
        assert_eq!(messages(&errors), [message], "{spec}");
    }
    let mut pod = minimal();
    pod["spec"]["restartPolicy"] = json!("Maybe");
    assert_eq!(
        messages(&RULES.validate_create(&pod)),
        ["spec.restartPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", \
          \"OnFailure\", \"Never\""]
    );
}

#[test]
fn little_of_a_pod_may_change() {
    let change = |work: &dyn Fn(&mut Value)| {
        let mut old = minimal();
        old["spec"]["tolerations"] = default_tolerations();
        let mut new = old.clone();
        work(&mut new["spec"]);
        messages(&RULES.validate_update(&old, &new))
    };
    assert!(change(&|spec| spec["containers"][0]["image"] = json!("nginx:2")).is_empty());
    assert!(change(&|spec| spec["activeDeadlineSeconds"] = json!(5)).is_empty());
    let added = json!({"key": "a", "operator": "Exists"});
    let add = |spec: &mut Value| spec["tolerations"].as_array_mut().unwrap().push(added.clone());
    assert!(change(&add).is_empty());

    let errors = change(&|spec| spec["nodeName"] = json!("n1"));
    assert!(errors[0].starts_with("spec: Forbidden: pod updates may not change fields other than"));
    let errors = change(&|spec| spec["tolerations"] = json!([]));
    assert!(errors[0].starts_with("spec.tolerations: Forbidden: "), "{errors:?}");
    let errors = change(&|spec| spec["containers"] = json!([]));
    assert!(errors.contains(
        &"spec.containers: Forbidden: pod updates may not add or remove containers".to_owned()
    ));
}

#[test]
fn deletion_waits_only_for_a_pod_that_runs() {
    let pod = |node: &str, phase: &str| {
        json!({
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 30},
            "status": {"phase": phase},
        })
    };
    for (pod, requested, seconds) in [
        (pod("n1", "Running"), None, 30),
        (pod("n1", "Running"), Some(5), 5),
        (pod("n1", "Running"), Some(0), 0),
        (pod("n1", "Running"), Some(-1), 1),
        (pod("", "Pending"), None, 0),
        (pod("n1", "Succeeded"), Some(5), 0),
    ] {
        assert_eq!(RULES.grace_period(&pod, requested), seconds, "{pod} {requested:?}");
    }
}
