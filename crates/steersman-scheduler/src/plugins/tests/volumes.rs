//! Volumes that only one Pod can use, that are somewhere, or are too many.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::config::{Configuration, assemble};
use crate::testing::{World, node, nowhere, object, on, pod};

fn using(name: &str, claim: &str) -> Pod {
    let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": claim}});
    pod(name, &json!({"spec": {"volumes": [volume]}}))
}

/// A claim that is bound to the volume of the same name.
fn add_bound(world: &mut World, name: &str, mode: &str, volume: &Value) {
    world.objects.claims.push(Arc::new(object(json!({
        "metadata": {"name": name, "namespace": "default", "annotations": {
            "pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"accessModes": [mode], "volumeName": name},
        "status": {"phase": "Bound"},
    }))));
    let mut body = json!({"metadata": {"name": name}, "spec": {}});
    for (key, value) in volume.as_object().unwrap() {
        body[key] = value.clone();
    }
    world.objects.volumes.push(Arc::new(object(body)));
}

#[test]
fn a_claim_for_one_pod_is_used_by_one() {
    let mut world = World::of([node("a", &json!({})), node("b", &json!({}))]);
    add_bound(&mut world, "data", "ReadWriteOncePod", &json!({}));
    assert!(world.fits(&using("p", "data")));
    world.put("a", &using("x", "data"));
    let message = "0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with \
                   ReadWriteOncePod access mode already in-use by another pod.";
    assert_eq!(world.place(&using("p", "data")), nowhere(message));
}

#[test]
fn a_disk_is_used_twice_only_if_both_read() {
    let disk = |name: &str, read_only: bool| {
        let source = json!({"pdName": "d", "readOnly": read_only});
        let volume = json!({"name": "v", "gcePersistentDisk": source});
        pod(name, &json!({"spec": {"volumes": [volume]}}))
    };
    for (there, wanted, fits) in [(true, true, true), (true, false, false), (false, true, false)] {
        let mut world = World::of([node("a", &json!({}))]);
        world.put("a", &disk("x", there));
        assert_eq!(world.fits(&disk("p", wanted)), fits, "{there} {wanted}");
    }
}

#[test]
fn a_volume_of_a_zone_is_used_there() {
    let zone = "topology.kubernetes.io/zone";
    let zoned =
        |name: &str, value: &str| node(name, &json!({"metadata": {"labels": {zone: value}}}));
    let mut world = World::of([zoned("a", "za"), zoned("b", "zb")]);
    let labels = json!({"name": "data", "labels": {zone: "zb__zc"}});
    add_bound(&mut world, "data", "ReadWriteOnce", &json!({"metadata": labels}));
    assert_eq!(world.place(&using("p", "data")), on("b"));
    let mut world = World::of([zoned("a", "za")]);
    add_bound(&mut world, "data", "ReadWriteOnce", &json!({"metadata": labels}));
    let message = "0/1 nodes are available: 1 node(s) had no available volume zone.";
    assert_eq!(world.place(&using("p", "data")), nowhere(message));
}

/// A node to which two volumes can be attached, and three volumes with claims.
fn attaching_two() -> World {
    let csi = |handle: &str| {
        let source = json!({"driver": "ebs", "volumeHandle": handle});
        json!({"spec": {"csi": source}})
    };
    let mut world = World::of([node("a", &json!({}))]);
    for name in ["one", "two", "three"] {
        add_bound(&mut world, name, "ReadWriteOnce", &csi(name));
    }
    let drivers = json!([{"name": "ebs", "nodeID": "a", "allocatable": {"count": 2}}]);
    let csi_node = json!({"metadata": {"name": "a"}, "spec": {"drivers": drivers}});
    world.objects.csi_nodes = vec![Arc::new(object(csi_node))];
    world
}

#[test]
fn a_volume_that_is_not_there_counts_by_the_class_of_its_claim() {
    let mut world = attaching_two();
    world.objects.classes =
        vec![Arc::new(object(json!({"metadata": {"name": "fast"}, "provisioner": "ebs"})))];
    world.objects.claims.push(Arc::new(object(json!({
        "metadata": {"name": "lost", "namespace": "default"},
        "spec": {"volumeName": "lost", "storageClassName": "fast"},
    }))));
    world.put("a", &using("x", "one")).put("a", &using("y", "lost"));
    let message = "0/1 nodes are available: 1 node(s) exceed max volume count.";
    assert_eq!(world.place(&using("p", "two")), nowhere(message));
}

#[test]
fn a_driver_attaches_only_so_many_volumes() {
    let mut world = attaching_two();
    world.put("a", &using("x", "one"));
    assert!(world.fits(&using("p", "two")));
    world.put("a", &using("y", "two"));
    assert!(world.fits(&using("p", "two"))); // it is attached already
    let message = "0/1 nodes are available: 1 node(s) exceed max volume count.";
    assert_eq!(world.place(&using("p", "three")), nowhere(message));
}

#[test]
fn a_claim_that_is_not_there_keeps_its_pod_from_every_node() {
    let world = World::of([node("a", &json!({}))]);
    let message = "0/1 nodes are available: persistentvolumeclaim \"data\" not found.";
    assert_eq!(world.place(&using("p", "data")), nowhere(message));
}

#[test]
fn who_lacks_a_claim_is_told_so_in_the_words_of_kubernetes() {
    let world = World::of([node("a", &json!({}))]);
    let told = world.help(&using("p", "data")).map(|_| ());
    let message = "0/1 nodes are available: persistentvolumeclaim \"data\" not found. not found";
    assert_eq!(told, Err(message.to_owned()));
}

#[test]
fn a_driver_is_asked_for_space_if_it_wants_to_be() {
    let mut world = World::of([node("a", &json!({})), node("b", &json!({}))]);
    world.objects.classes = vec![Arc::new(object(json!({
        "metadata": {"name": "fast"}, "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    })))];
    world.objects.claims = vec![Arc::new(object(json!({
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"],
                 "resources": {"requests": {"storage": "1Gi"}}},
    })))];
    assert!(world.fits(&using("p", "data")));
    let driver = |wants: bool| {
        let spec = json!({"storageCapacity": wants});
        vec![Arc::new(object(json!({"metadata": {"name": "disk.example.com"}, "spec": spec})))]
    };
    world.objects.csi_drivers = driver(true);
    let message = "0/2 nodes are available: 2 node(s) did not have enough free storage.";
    assert_eq!(world.place(&using("p", "data")), nowhere(message));
    world.objects.storage_capacities = vec![Arc::new(object(json!({
        "metadata": {"name": "b", "namespace": "default"}, "storageClassName": "fast",
        "capacity": "5Gi", "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": "b"}},
    })))];
    assert_eq!(world.place(&using("p", "data")), on("b"));
    world.objects.storage_capacities.clear();
    world.objects.csi_drivers = driver(false);
    assert!(world.fits(&using("p", "data")));
}

#[test]
fn two_profiles_do_not_choose_the_same_volume() {
    let mut world = World::of([node("a", &json!({}))]);
    world.objects.classes = vec![Arc::new(object(json!({
        "metadata": {"name": "hand"}, "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    })))];
    let spec = json!({"storageClassName": "hand", "accessModes": ["ReadWriteOnce"],
                      "resources": {"requests": {"storage": "1Gi"}}});
    for name in ["mine", "yours"] {
        let metadata = json!({"name": name, "namespace": "default", "uid": name});
        let claim = json!({"metadata": metadata, "spec": spec});
        world.objects.claims.push(Arc::new(object(claim)));
    }
    world.objects.volumes = vec![Arc::new(object(json!({
        "metadata": {"name": "v"},
        "spec": {"storageClassName": "hand", "capacity": {"storage": "1Gi"},
                 "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Available"},
    })))];
    let document = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "first"}, {"schedulerName": "second"}],
    });
    let configuration = Configuration::parse(&document.to_string()).unwrap();
    let assembled = assemble(&configuration, &[], &Arc::default()).unwrap();
    let choose = |profile: &str, pod: &Pod| {
        let profile = &assembled.profiles[profile];
        world.attempt_in(profile, &world.snapshot(), pod, |profile, mut cycle| {
            let node = profile.schedule(&mut cycle, &mut 0).ok()?;
            profile.reserve(&mut cycle, &node).ok()
        })
    };
    assert!(choose("first", &using("p", "mine")).is_some());
    assert!(choose("second", &using("q", "yours")).is_none());
}
