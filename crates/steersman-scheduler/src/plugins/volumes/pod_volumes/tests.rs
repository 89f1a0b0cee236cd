use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSIStorageCapacity, StorageClass};
use serde_json::{Value, json};

use super::{PodVolumes, Storage, Written};

/// What there is.
#[derive(Default)]
struct World {
    claims: Vec<Arc<PersistentVolumeClaim>>,
    classes: Vec<Arc<StorageClass>>,
    volumes: Vec<Arc<PersistentVolume>>,
    capacities: Option<Vec<Arc<CSIStorageCapacity>>>,
}

impl Storage for World {
    fn claim(&self, name: &str) -> Option<Arc<PersistentVolumeClaim>> {
        self.claims.iter().find(|it| it.metadata.name.as_deref() == Some(name)).cloned()
    }
    fn class(&self, name: &str) -> Option<Arc<StorageClass>> {
        self.classes.iter().find(|it| it.metadata.name.as_deref() == Some(name)).cloned()
    }
    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>> {
        self.volumes.iter().find(|it| it.metadata.name.as_deref() == Some(name)).cloned()
    }
    fn volumes(&self) -> Vec<Arc<PersistentVolume>> {
        self.volumes.clone()
    }
    fn capacities(&self, _: &str) -> Option<Vec<Arc<CSIStorageCapacity>>> {
        self.capacities.clone()
    }
}

fn world() -> World {
    let class = |name: &str, mode: &str, provisioner: &str, zone: Option<&str>| {
        let zones = zone
            .map(|zone| json!([{"matchLabelExpressions": [{"key": "zone", "values": [zone]}]}]));
        let class = json!({"metadata": {"name": name}, "provisioner": provisioner,
                           "volumeBindingMode": mode, "allowedTopologies": zones});
        Arc::new(serde_json::from_value(class).unwrap())
    };
    let delayed = "WaitForFirstConsumer";
    World {
        classes: vec![
            class("now", "Immediate", "example.com/disk", None),
            class("later", delayed, "example.com/disk", None),
            class("zone-a", delayed, "example.com/disk", Some("a")),
            class("hand", delayed, "kubernetes.io/no-provisioner", None),
        ],
        ..World::default()
    }
}

fn claim(class: &str, meta: &Value, volume: &str) -> Arc<PersistentVolumeClaim> {
    let mut metadata = json!({"namespace": "default", "name": "data", "uid": "c"});
    for (key, value) in meta.as_object().into_iter().flatten() {
        metadata[key] = value.clone();
    }
    let claim = json!({"metadata": metadata, "spec": {
        "storageClassName": class, "volumeName": volume, "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    Arc::new(serde_json::from_value(claim).unwrap())
}

fn bound() -> Value {
    json!({"annotations": {"pv.kubernetes.io/bind-completed": "yes"}})
}

fn selected(node: &str) -> Value {
    json!({"annotations": {"volume.kubernetes.io/selected-node": node}})
}

/// A volume that can be used in a zone.
fn volume(class: &str, zone: &str, claimant: Option<&str>) -> Arc<PersistentVolume> {
    let here = json!({"key": "zone", "operator": "In", "values": [zone]});
    let claimant = claimant.map(|uid| json!({"namespace": "default", "name": "data", "uid": uid}));
    let volume = json!({
        "metadata": {"name": "v"},
        "spec": {"storageClassName": class, "capacity": {"storage": "1Gi"}, "claimRef": claimant,
                 "accessModes": ["ReadWriteOnce"],
                 "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}},
        "status": {"phase": "Available"},
    });
    Arc::new(serde_json::from_value(volume).unwrap())
}

fn pod() -> Pod {
    let volumes = json!([{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]);
    let pod = json!({"metadata": {"namespace": "default", "name": "web"},
                     "spec": {"containers": [], "volumes": volumes}});
    serde_json::from_value(pod).unwrap()
}

fn node(name: &str, zone: &str) -> Node {
    let node = json!({"metadata": {"name": name, "labels": {"zone": zone}}});
    serde_json::from_value(node).unwrap()
}

#[test]
fn a_claim_can_keep_its_pod_from_every_node() {
    let table = [
        (None, "persistentvolumeclaim \"data\" not found"),
        (Some(claim("now", &json!({}), "")), "pod has unbound immediate PersistentVolumeClaims"),
        (Some(claim("later", &json!({}), "v")), "pod has unbound immediate PersistentVolumeClaims"),
        (Some(claim("", &json!({}), "")), "pod has unbound immediate PersistentVolumeClaims"),
        (
            Some(claim("now", &json!({"deletionTimestamp": "2030-01-01T00:00:00Z"}), "")),
            "persistentvolumeclaim \"data\" is being deleted",
        ),
    ];
    for (claim, why) in table {
        let world = World { claims: claim.into_iter().collect(), ..world() };
        assert_eq!(PodVolumes::of(&pod(), &world).unwrap_err(), why);
    }
    let plain: Pod = serde_json::from_value(json!({"spec": {"containers": []}})).unwrap();
    assert!(PodVolumes::of(&plain, &world()).unwrap().is_none());
}

#[test]
fn a_node_must_be_where_the_volumes_are_or_can_be() {
    let conflict = "node(s) didn't match PersistentVolume's node affinity";
    let nothing = "node(s) didn't find available persistent volumes to bind";
    let gone = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
    for (claim, volume, expected) in [
        (claim("now", &bound(), "v"), Some(volume("now", "a", Some("c"))), Ok((0, 0))),
        (claim("now", &bound(), "v"), Some(volume("now", "b", Some("c"))), Err(conflict)),
        (claim("now", &bound(), "v"), None, Err(gone)),
        (claim("later", &json!({}), ""), Some(volume("later", "a", None)), Ok((1, 0))),
        (claim("later", &json!({}), ""), Some(volume("later", "b", None)), Ok((0, 1))),
        (claim("later", &selected("n"), ""), None, Ok((0, 1))),
        (claim("later", &selected("m"), ""), None, Err(nothing)),
        (claim("zone-a", &json!({}), ""), None, Ok((0, 1))),
        (claim("hand", &json!({}), ""), None, Err(nothing)),
        (claim("hand", &json!({}), ""), Some(volume("hand", "a", None)), Ok((1, 0))),
    ] {
        let world = World {
            claims: vec![Arc::clone(&claim)],
            volumes: volume.into_iter().collect(),
            ..world()
        };
        let volumes = PodVolumes::of(&pod(), &world).unwrap().unwrap();
        let found = volumes.on(&node("n", "a"));
        let found = found.map(|choice| (choice.bindings.len(), choice.provisions.len()));
        assert_eq!(found, expected.map_err(|why| vec![why.into()]), "{claim:?}");
    }
    let world = World { claims: vec![claim("zone-a", &json!({}), "")], ..world() };
    let volumes = PodVolumes::of(&pod(), &world).unwrap().unwrap();
    assert_eq!(volumes.on(&node("n", "b")).unwrap_err(), [nothing]);
}

/// The same object at another version.
fn at<K: Clone + kube::ResourceExt>(version: u64, object: &Arc<K>) -> Arc<K> {
    let mut object = K::clone(object);
    object.meta_mut().resource_version = Some(version.to_string());
    Arc::new(object)
}

#[test]
fn a_pod_waits_until_its_volume_is_made_for_its_node() {
    let mut both = bound();
    both["annotations"]["volume.kubernetes.io/selected-node"] = "n".into();
    let wanted = at(9, &claim("later", &selected("n"), ""));
    let written = Written { provisions: vec![wanted], ..Written::default() };
    let of_us = |zone: &str| Some(volume("later", zone, Some("c")));
    let missing = "failed to check provisioning pvc: could not find v1.PersistentVolumeClaim \"default/data\"";
    let failed = "provisioning failed for PVC \"data\"";
    let away = "pv \"v\" node affinity doesn't match node \"n\": no matching NodeSelectorTerms";
    for (claim, volume, expected) in [
        (Some(at(8, &claim("later", &json!({}), ""))), None, Ok(false)), // a cache that is behind
        (Some(at(9, &claim("later", &selected("n"), ""))), None, Ok(false)),
        (Some(at(10, &claim("later", &both, "v"))), None, Ok(false)),
        (Some(at(10, &claim("later", &selected("n"), "v"))), of_us("a"), Ok(false)),
        (Some(at(10, &claim("later", &both, "v"))), of_us("a"), Ok(true)),
        (Some(at(10, &claim("later", &both, "v"))), of_us("b"), Err(away)),
        (Some(at(10, &claim("later", &selected("m"), ""))), None, Err(failed)),
        (Some(at(10, &claim("later", &json!({}), ""))), None, Err(failed)),
        (None, None, Err(missing)),
    ] {
        let case = format!("{claim:?} {volume:?}");
        let world = World {
            claims: claim.into_iter().collect(),
            volumes: volume.into_iter().collect(),
            ..world()
        };
        let found = written.is_done(&node("n", "a"), &world);
        assert_eq!(found, expected.map_err(str::to_owned), "{case}");
    }
}

#[test]
fn a_pod_waits_until_its_claim_has_the_volume_that_was_reserved() {
    let unbound = claim("hand", &json!({}), "");
    let reserved = at(9, &volume("hand", "a", Some("c")));
    let bindings = vec![(reserved, Arc::clone(&unbound))];
    let written = Written { bindings, ..Written::default() };
    let gone = "failed to check binding: could not find v1.PersistentVolume \"v\"";
    let away = "pv \"v\" node affinity doesn't match node \"n\": no matching NodeSelectorTerms";
    for (claim, volume, expected) in [
        (&unbound, Some(at(8, &volume("hand", "a", None))), Ok(false)), // a cache that is behind
        (&unbound, Some(at(9, &volume("hand", "a", Some("c")))), Ok(false)),
        (&claim("hand", &bound(), "v"), Some(at(9, &volume("hand", "a", Some("c")))), Ok(true)),
        (&unbound, Some(at(10, &volume("hand", "b", Some("c")))), Err(away)),
        (
            &unbound,
            Some(at(10, &volume("hand", "a", None))),
            Err("ClaimRef got reset for pv \"v\""),
        ),
        (&unbound, None, Err(gone)),
    ] {
        let case = format!("{claim:?} {volume:?}");
        let claims = vec![Arc::clone(claim)];
        let world = World { claims, volumes: volume.into_iter().collect(), ..world() };
        let found = written.is_done(&node("n", "a"), &world);
        assert_eq!(found, expected.map_err(str::to_owned), "{case}");
    }
}

#[test]
fn a_volume_is_made_only_where_its_driver_has_enough_space() {
    let space = |class: &str, zone: &str, change: Value| {
        let mut capacity = json!({
            "metadata": {"name": "s"}, "storageClassName": class, "capacity": "2Gi",
            "nodeTopology": {"matchLabels": {"zone": zone}},
        });
        for (key, value) in change.as_object().into_iter().flatten() {
            capacity[key] = value.clone();
        }
        Some(vec![Arc::new(serde_json::from_value(capacity).unwrap())])
    };
    let none = "node(s) did not have enough free storage";
    for (capacities, expected) in [
        (None, Ok(1)), // nobody wants to be asked
        (Some(Vec::new()), Err(none)),
        (space("later", "a", json!({})), Ok(1)),
        (space("later", "b", json!({})), Err(none)),
        (space("zone-a", "a", json!({})), Err(none)),
        (space("later", "a", json!({"capacity": "1Mi"})), Err(none)),
        (space("later", "a", json!({"capacity": null})), Err(none)),
        (space("later", "a", json!({"maximumVolumeSize": "1Mi"})), Err(none)),
        (space("later", "a", json!({"capacity": "1Mi", "maximumVolumeSize": "1Gi"})), Ok(1)),
        (space("later", "a", json!({"nodeTopology": null})), Err(none)),
        (space("later", "a", json!({"nodeTopology": {}})), Ok(1)),
    ] {
        let claims = vec![claim("later", &json!({}), "")];
        let world = World { claims, capacities: capacities.clone(), ..world() };
        let volumes = PodVolumes::of(&pod(), &world).unwrap().unwrap();
        let found = volumes.on(&node("n", "a")).map(|choice| choice.provisions.len());
        assert_eq!(found, expected.map_err(|why| vec![why.into()]), "{capacities:?}");
    }
}
