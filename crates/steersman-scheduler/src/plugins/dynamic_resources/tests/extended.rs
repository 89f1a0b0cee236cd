//! Extended resources that Pods get as devices.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim};
use serde_json::{Value, json};

use super::super::extended::{claim_of, is_in_memory, is_special_of, on_node};
use super::{DRIVER, device, many, slice};
use crate::config::Configuration;
use crate::framework::{
    Action, Before, ClassResources, ClusterEvent, Hint, NodeInfo, Object, Plugin, PodInfo, Resource,
};
use crate::plugins::Fit;
use crate::testing::{Objects, World, node, nowhere, object, on, pod};

const GPU: &str = "example.com/gpu";
const IMPLICIT: &str = "deviceclass.resource.kubernetes.io/gpu";

fn class(resource: Option<&str>) -> Arc<DeviceClass> {
    Arc::new(object(json!({
        "metadata": {"name": "gpu"}, "spec": {"extendedResourceName": resource},
    })))
}

fn wants(requests: &Value) -> Pod {
    let containers = json!([{"name": "c", "resources": {"requests": requests}}]);
    pod("p", &json!({"spec": {"containers": containers}}))
}

/// What a Pod claims on a node that has none of it, and how its containers get that.
fn claimed(pod: &Pod) -> (Vec<String>, Vec<String>) {
    let objects = Objects { device_classes: vec![class(Some(GPU))], ..Objects::default() };
    let (info, node) = (PodInfo::of(pod), NodeInfo::new(Arc::new(node("n", &json!({})))));
    let classes = ClassResources::of(&info.requests.asked, &objects);
    let claim = claim_of(pod, &objects);
    let found = on_node(pod, &info, &claim, &classes, &node).unwrap().unwrap();
    let requests = found.claim.spec.devices.unwrap().requests.unwrap();
    let requests = requests.iter().map(|request| {
        let exactly = request.exactly.as_ref().unwrap();
        format!("{} {} {}", request.name, exactly.device_class_name, exactly.count.unwrap())
    });
    let mappings = found
        .mappings
        .iter()
        .map(|it| format!("{} {} {}", it.container_name, it.resource_name, it.request_name));
    (requests.collect(), mappings.collect())
}

#[test]
fn containers_that_run_together_have_requests_of_their_own_and_others_use_them_before() {
    let container = |name: &str, count: &str| json!({"name": name, "resources": {"requests": {"cpu": "1", GPU: count}}});
    let mut stays = container("stays", "1");
    stays["restartPolicy"] = "Always".into();
    let spec = json!({
        "initContainers": [container("first", "2"), stays, container("second", "6")],
        "containers": [container("a", "2"), json!({"name": "none"}), container("b", "1")],
    });
    let (requests, mappings) = claimed(&pod("p", &json!({"spec": spec})));
    let expected = [
        "container-1-request-1 gpu 1",
        "container-2-request-1 gpu 3",
        "container-3-request-1 gpu 2",
        "container-5-request-1 gpu 1",
    ];
    assert_eq!(requests, expected);
    let expected = [
        "stays example.com/gpu container-1-request-1",
        "a example.com/gpu container-3-request-1",
        "b example.com/gpu container-5-request-1",
        "first example.com/gpu container-1-request-1",
        "first example.com/gpu container-3-request-1",
        "second example.com/gpu container-3-request-1",
        "second example.com/gpu container-5-request-1",
        "second example.com/gpu container-2-request-1",
    ];
    assert_eq!(mappings, expected);

    // Of those that run one after the other, the one that needs most says how much is claimed.
    let spec = json!({"initContainers": [container("x", "2"), container("y", "4")],
                      "containers": [{"name": "c"}]});
    let (requests, mappings) = claimed(&pod("p", &json!({"spec": spec})));
    assert_eq!(requests, ["container-1-request-1 gpu 4"]);
    let expected =
        ["x example.com/gpu container-1-request-1", "y example.com/gpu container-1-request-1"];
    assert_eq!(mappings, expected);

    let both = wants(&json!({GPU: "2", IMPLICIT: "1", "example.com/none": "0"}));
    let (requests, _) = claimed(&both);
    assert_eq!(requests, ["container-0-request-0 gpu 1", "container-0-request-1 gpu 2"]);
}

#[test]
fn the_claim_is_the_schedulers_own_for_that_pod() {
    let pod = wants(&json!({GPU: "1"}));
    let mut claim = claim_of(&pod, &Objects::default());
    assert!(is_in_memory(&claim) && is_special_of(&claim, "p") && !is_special_of(&claim, "q"));
    assert_eq!(claim.metadata.generate_name.as_deref(), Some("p-extended-resources-"));
    claim.metadata.name = Some("p-extended-resources-x".to_owned());
    let known = Arc::new(claim);
    let objects = Objects { resource_claims: vec![Arc::clone(&known)], ..Objects::default() };
    assert_eq!(claim_of(&pod, &objects), *known);
    let mut other = ResourceClaim::clone(&known);
    other.metadata.annotations = None;
    assert!(!is_special_of(&other, "p"));
}

/// A node `has` that has the resource itself, and a node `n` with two devices.
fn world(resource: Option<&str>) -> World {
    let allocatable = json!({"status": {"allocatable": {GPU: "1"}}});
    let mut world = World::of([node("has", &allocatable), node("n", &json!({}))]);
    world.objects.device_classes.push(class(resource));
    let devices = json!([device("a", "small", 0), device("b", "small", 0)]);
    world.objects.resource_slices = vec![slice("s", &devices, &json!({}))];
    world
}

#[test]
fn a_pod_gets_what_a_node_has_or_else_devices() {
    let gpus = |count: &str| wants(&json!({GPU: count}));
    let too_few = "0/2 nodes are available: 2 Insufficient example.com/gpu.";
    assert_eq!(world(None).place(&gpus("2")), nowhere(too_few), "it stands for no class");
    assert!(world(Some(GPU)).fits(&gpus("1")));
    assert_eq!(world(Some(GPU)).place(&gpus("2")), on("n"));
    let three =
        "0/2 nodes are available: 1 Insufficient example.com/gpu, 1 cannot allocate all claims.";
    assert_eq!(world(Some(GPU)).place(&gpus("3")), nowhere(three));
    assert!(world(None).fits(&wants(&json!({IMPLICIT: "2"}))));
    assert!(!world(None).fits(&wants(&json!({IMPLICIT: "3"}))));
    let none = wants(&json!({"deviceclass.resource.kubernetes.io/none": "1"}));
    assert!(!world(None).fits(&none));

    // What somebody else looks after does not go with devices, as in Kubernetes.
    let document = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [
            {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/other"]}}]}],
    });
    let mut world = world(Some(GPU));
    world.configuration = Configuration::parse(&document.to_string()).unwrap();
    let other = wants(&json!({GPU: "2", "example.com/other": "1"}));
    let refused = "0/2 nodes are available: 1 Insufficient example.com/gpu, 1 cannot fit resource.";
    assert_eq!(world.place(&other), nowhere(refused));
}

#[test]
fn nodes_that_have_devices_are_compared_by_these() {
    let offered = json!({"status": {"allocatable": {GPU: "2"}}});
    let plain = json!({});
    let mut world = World::of([node("a", &plain), node("b", &plain), node("has", &offered)]);
    let selector =
        json!({"cel": {"expression": format!("device.attributes['{DRIVER}'].board == 0")}});
    world.objects.device_classes.push(Arc::new(object(json!({
        "metadata": {"name": "gpu"},
        "spec": {"extendedResourceName": GPU, "selectors": [selector]},
    }))));
    let of = |node: &str, count: usize| {
        let mut devices = many("small", count);
        devices.push(device("other", "small", 1));
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
        slice(node, &json!(devices), &json!({"nodeName": node, "pool": pool}))
    };
    world.objects.resource_slices = vec![of("a", 4), of("b", 4)];
    let result =
        |device: &str| json!({"request": "r", "driver": DRIVER, "pool": "a", "device": device});
    let results = [result("small-1"), result("small-3"), result("other")];
    world.objects.resource_claims = vec![Arc::new(object(json!({
        "metadata": {"namespace": "default", "name": "c", "uid": "c"}, "spec": {},
        "status": {"allocation": {"devices": {"results": results}}},
    })))];
    let mut scores = |plugin: &str, args: &Value| {
        let only = json!({"disabled": [{"name": "*"}], "enabled": [{"name": plugin, "weight": 1}]});
        let document = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{
                "plugins": {"score": only}, "pluginConfig": [{"name": plugin, "args": args}],
            }],
        });
        world.configuration = Configuration::parse(&document.to_string()).unwrap();
        world.attempt(&wants(&json!({"cpu": "4", GPU: "1"})), |profile, mut cycle| {
            let Ok(found) = profile.feasible(&mut cycle, &mut 0) else { panic!("it fits") };
            profile.scores(&mut cycle, &found.nodes).unwrap()
        })
    };
    let resources = |names: &[&str]| -> Value {
        names.iter().map(|name| json!({"name": name, "weight": 1})).collect()
    };
    let strategy = json!({"type": "LeastAllocated", "resources": resources(&[GPU])});
    // Of four devices two are taken, or none; of two that a node has itself none is.
    assert_eq!(scores("NodeResourcesFit", &json!({"scoringStrategy": strategy})), [25, 75, 50]);
    let both = json!({"resources": resources(&["cpu", GPU])});
    // Without and with the Pod: 75 and 87, 100 and 87, 100 and 100.
    assert_eq!(scores("NodeResourcesBalancedAllocation", &both), [81, 68, 75]);
}

#[test]
fn verdicts_do_not_outlive_the_classes_that_they_depend_on() {
    let (mut world, two) = (world(None), wants(&json!({GPU: "2"})));
    let (profile, snapshot) = (world.profile(), world.snapshot());
    let fits = |world: &World| {
        world.attempt_in(&profile, &snapshot, &two, |profile, mut cycle| {
            profile.schedule(&mut cycle, &mut 0).is_ok()
        })
    };
    assert!(!fits(&world));
    world.objects.device_classes = vec![class(Some(GPU))];
    assert!(fits(&world));
    world.objects.device_classes.clear();
    assert!(!fits(&world));
}

#[test]
fn a_claim_of_an_earlier_attempt_is_in_the_way() {
    let mut world = world(Some(GPU));
    let pod = wants(&json!({GPU: "2"}));
    let mut old = claim_of(&pod, &Objects::default());
    old.metadata.name = Some("p-extended-resources-x".to_owned());
    world.objects.resource_claims.push(Arc::new(old));
    let refused = "0/2 nodes are available: 1 Insufficient example.com/gpu, 1 cannot schedule extended resource \
         claim.";
    assert_eq!(world.place(&pod), nowhere(refused));
}

#[test]
fn a_class_that_comes_to_stand_for_a_resource_lets_pods_be_tried_again() {
    let fit = Fit::default();
    let hint = |old: Option<&Arc<DeviceClass>>, new: &Arc<DeviceClass>, pod: &Pod| {
        let change = Before { old: old.cloned(), new: Some(Arc::clone(new)) };
        let action = if old.is_some() { Action::OTHER_UPDATE } else { Action::ADD };
        let object = Object::DeviceClass(change);
        fit.hint(pod, &ClusterEvent { resource: Resource::DeviceClass, action, object })
    };
    let (named, unnamed) = (class(Some(GPU)), class(None));
    let (gpu, implicit) = (wants(&json!({GPU: "1"})), wants(&json!({IMPLICIT: "1"})));
    assert_eq!(hint(None, &named, &gpu), Hint::Queue);
    assert_eq!(hint(None, &unnamed, &gpu), Hint::Skip);
    assert_eq!(hint(None, &unnamed, &implicit), Hint::Queue);
    assert_eq!(hint(Some(&unnamed), &named, &gpu), Hint::Queue);
    assert_eq!(hint(Some(&unnamed), &named, &implicit), Hint::Skip);
    assert_eq!(hint(Some(&named), &named, &gpu), Hint::Skip);
}
