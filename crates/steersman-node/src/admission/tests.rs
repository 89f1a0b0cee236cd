//! Which Pods machines refuse, and how they say it.

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};
use steersman_scheduler::framework::PodRequests;

use super::pods::check;
use super::{Standing, sysctls};
use crate::families::IpFamilies;
use crate::registration::Machine;
use crate::rejection::Rejection;
use crate::standing::without_devices;

fn machine() -> Machine {
    let capacity = [("cpu", "2"), ("memory", "1Gi"), ("pods", "110")];
    let capacity = capacity.map(|(name, amount)| (name.to_owned(), amount.to_owned()));
    Machine::simulated("node-0".into(), 0, capacity.into(), IpFamilies::default())
}

fn pod(metadata: &Value, spec: Value) -> Pod {
    let mut spec = spec;
    spec["containers"] = json!([]);
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

/// Reason and message of a refusal.
fn said(answer: Result<(), Rejection>) -> (String, String) {
    let refused = answer.unwrap_err();
    (refused.reason().into_owned(), refused.to_string())
}

#[test]
fn another_operating_system_is_refused() {
    let windows = json!({"labels": {"kubernetes.io/os": "windows"}});
    let (reason, message) = said(check(&pod(&windows, json!({})), &machine()));
    assert_eq!(reason, "PodOSSelectorNodeLabelDoesNotMatch");
    let text = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label";
    assert_eq!(message, text);
    let windows = json!({"os": {"name": "windows"}});
    let (reason, message) = said(check(&pod(&json!({}), windows), &machine()));
    assert_eq!(reason, "PodOSNotSupported");
    assert_eq!(message, "Failed to admit pod as the OS field doesn't match node OS");
    let linux = json!({"os": {"name": "linux"}});
    let labels = json!({"labels": {"kubernetes.io/os": "linux"}});
    assert_eq!(check(&pod(&labels, linux), &machine()), Ok(()));
}

#[test]
fn groups_of_the_image_can_be_left_out_only_where_the_runtime_can() {
    let strict = json!({"securityContext": {"supplementalGroupsPolicy": "Strict"}});
    let strict = pod(&json!({}), strict);
    assert_eq!(check(&strict, &machine()), Ok(()), "a simulated runtime can do it");
    let (_, health) = tokio::sync::watch::channel(crate::registration::Health::default());
    let real = Machine { health: Some(health), ..machine() };
    let (reason, message) = said(check(&strict, &real));
    assert_eq!(reason, "SupplementalGroupsPolicyNotSupported");
    assert_eq!(message, "SupplementalGroupsPolicy=Strict is not supported in this node");
}

#[test]
fn only_parameters_of_the_kernel_that_concern_nobody_else_are_set() {
    let of = |name: &str, spec: Value, kernel| {
        let mut spec = spec;
        spec["securityContext"] = json!({"sysctls": [{"name": name, "value": "1"}]});
        sysctls::check(&pod(&json!({}), spec).spec.unwrap(), kernel)
    };
    let (reason, message) = said(of("kernel.msgmax", json!({}), None));
    assert_eq!(reason, "SysctlForbidden");
    assert_eq!(message, "forbidden sysctl: \"kernel.msgmax\" not allowlisted");
    assert_eq!(of("net.ipv4.tcp_syncookies", json!({}), None), Ok(()));
    assert_eq!(of("net/ipv4/tcp_syncookies", json!({}), None), Ok(()));
    let (_, message) = said(of("net/ipv4/tcp_syncookies", json!({"hostNetwork": true}), None));
    let text = "forbidden sysctl: \"net.ipv4.tcp_syncookies\" not allowed with host Net enabled";
    assert_eq!(message, text);
    let (_, message) = said(of("kernel.shm_rmid_forced", json!({"hostIPC": true}), None));
    let text = "forbidden sysctl: \"kernel.shm_rmid_forced\" not allowed with host IPC enabled";
    assert_eq!(message, text);
    assert_eq!(of("net.ipv4.tcp_rmem", json!({}), Some((6, 1))), Ok(()));
    let (_, message) = said(of("net.ipv4.tcp_rmem", json!({}), Some((4, 14))));
    assert!(message.ends_with("not allowlisted"), "{message}");
}

#[test]
fn labels_and_taints_of_a_node_keep_pods_away() {
    let taint = |effect: &str| json!({"key": "broken", "effect": effect});
    let node = |taint: Value| -> Standing {
        let node = json!({
            "metadata": {"name": "node-0", "labels": {"disk": "ssd"}},
            "spec": {"taints": [taint]},
        });
        let node: Node = serde_json::from_value(node).unwrap();
        Standing::of(&node, machine().real_amounts())
    };
    let fast = pod(&json!({}), json!({"nodeSelector": {"disk": "ssd"}}));
    assert_eq!(node(taint("NoExecute")).is_wanted(&fast), Ok(()));
    let other = pod(&json!({}), json!({"nodeSelector": {"x": "y"}}));
    let (reason, message) = said(node(taint("NoExecute")).is_wanted(&other));
    assert_eq!(reason, "NodeAffinity");
    let text = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
    assert_eq!(message, text);
    let (reason, message) = said(node(taint("NoExecute")).is_tolerated(&fast));
    assert_eq!(reason, "TaintToleration");
    let text = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate";
    assert_eq!(message, text);
    assert_eq!(node(taint("NoSchedule")).is_tolerated(&fast), Ok(()));
    let tolerations = json!([{"key": "broken", "operator": "Exists"}]);
    let tolerant = pod(&json!({}), json!({"tolerations": tolerations}));
    assert_eq!(node(taint("NoExecute")).is_tolerated(&tolerant), Ok(()));
    let file = json!({"annotations": {"kubernetes.io/config.source": "file"}});
    assert_eq!(node(taint("NoExecute")).is_tolerated(&pod(&file, json!({}))), Ok(()));
}

#[test]
fn a_machine_that_lies_gives_no_more_than_it_has() {
    let mut machine = machine();
    machine.shape.claims = [("cpu".to_owned(), "64".to_owned())].into();
    let node = machine.node(&steersman::clock::now_time());
    let standing = Standing::of(&node, machine.real_amounts());
    let asked = |cpu: &str| {
        let amounts = json!({"cpu": cpu, "memory": "1Mi"});
        let amounts = serde_json::from_value(amounts).unwrap();
        steersman_scheduler::framework::Resources::of(Some(&amounts))
    };
    let nothing = Default::default();
    assert_eq!(standing.limits.check(&asked("2"), &nothing), Ok(()));
    let (reason, _) = said(standing.limits.check(&asked("3"), &nothing));
    assert_eq!(reason, "OutOfcpu");
}

#[test]
fn what_containers_get_as_devices_their_node_need_not_have() {
    let machine = machine();
    let node = machine.node(&steersman::clock::now_time());
    let standing = Standing::of(&node, machine.real_amounts());
    let gpu = "deviceclass.resource.kubernetes.io/gpu";
    let resources = json!({"requests": {"cpu": "1", gpu: "1"}});
    let containers = json!([{"name": "c", "resources": resources}]);
    let mapping = json!({"containerName": "c", "resourceName": gpu, "requestName": "r"});
    let told = json!({"resourceClaimName": "x", "requestMappings": [mapping]});
    let asked = |status: Value| {
        let pod = json!({"metadata": {}, "spec": {"containers": containers}, "status": status});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        PodRequests::of(&without_devices(&pod)).asked
    };
    let nothing = Default::default();
    let with = asked(json!({"extendedResourceClaimStatus": told}));
    assert_eq!((with.get("cpu"), standing.limits.check(&with, &nothing)), (1000, Ok(())));
    let (reason, _) = said(standing.limits.check(&asked(json!({})), &nothing));
    assert_eq!(reason, format!("OutOf{gpu}"));
}

#[test]
fn what_this_kubelet_does_not_say_it_can_do_is_refused() {
    let rules = json!([{"action": "RestartAllContainers",
        "exitCodes": {"operator": "In", "values": [42]}}]);
    let init = json!([{"name": "a", "image": "a", "restartPolicyRules": rules}]);
    let pod = pod(&json!({}), json!({"initContainers": init}));
    assert_eq!(check(&pod, &machine()), Ok(()));
    let older = Machine { features: Vec::new(), ..machine() };
    let (reason, message) = said(check(&pod, &older));
    assert_eq!(reason, "PodFeatureUnsupported");
    let missing = "RestartAllContainersOnContainerExits";
    assert_eq!(message, format!("Pod requires node features that are not available: {missing}"));
}
