use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};
use steersman::clock;

use super::plan::{Step, asks, is_over, plan};
use super::resize_plan::{self, Step as Resize};
use super::{PROVISIONER, standard_class};

fn claim(node: Option<&str>) -> PersistentVolumeClaim {
    let mut annotations = json!({"volume.kubernetes.io/storage-provisioner": PROVISIONER});
    if let Some(node) = node {
        annotations["volume.kubernetes.io/selected-node"] = node.into();
    }
    let claim = json!({
        "metadata": {"namespace": "default", "name": "data", "uid": "u", "annotations": annotations},
        "spec": {"storageClassName": "standard", "accessModes": ["ReadWriteOnce"],
                 "resources": {"requests": {"storage": "1Gi"}}},
    });
    serde_json::from_value(claim).unwrap()
}

fn node(name: &str) -> Option<Node> {
    let labels = json!({"kubernetes.io/hostname": format!("host-of-{name}")});
    let node = json!({"metadata": {"name": name, "labels": labels}});
    (name == "n").then(|| serde_json::from_value(node).unwrap())
}

#[test]
fn a_claim_gets_a_directory_of_the_node_that_was_chosen() {
    let class = standard_class();
    assert!(asks(&claim(None)));
    assert_eq!(plan(&claim(None), Some(&class), node), Step::Wait);
    let Step::Create(volume) = plan(&claim(Some("n")), Some(&class), node) else { panic!() };
    let volume: Value = serde_json::to_value(volume).unwrap();
    assert_eq!(volume["metadata"]["name"], "pvc-u");
    let spec = &volume["spec"];
    assert_eq!(spec["hostPath"]["path"], "/var/lib/steersman/local-path/pvc-u_default_data");
    assert_eq!(spec["claimRef"]["uid"], "u");
    assert_eq!(spec["persistentVolumeReclaimPolicy"], "Delete");
    let terms = &spec["nodeAffinity"]["required"]["nodeSelectorTerms"];
    assert_eq!(terms[0]["matchExpressions"][0]["values"], json!(["host-of-n"]));
    let gone = "failed to get target node: node \"gone\" not found";
    assert_eq!(plan(&claim(Some("gone")), Some(&class), node), Step::Reschedule(gone.to_owned()));
    let now = StorageClass { volume_binding_mode: Some("Immediate".into()), ..class };
    let Step::Create(volume) = plan(&claim(None), Some(&now), node) else { panic!() };
    assert_eq!(volume.spec.unwrap().node_affinity, None, "it can be used everywhere");
}

#[test]
fn what_cannot_be_provisioned_is_told_why() {
    let mut selecting = claim(Some("n"));
    selecting.spec.as_mut().unwrap().selector = Some(LabelSelector::default());
    let why = "failed to provision volume with StorageClass \"standard\": claim.Spec.Selector is not \
               supported";
    assert_eq!(plan(&selecting, Some(&standard_class()), node), Step::Fail(why.to_owned()));
    let why = "storageclass.storage.k8s.io \"standard\" not found";
    assert_eq!(plan(&claim(None), None, node), Step::Fail(why.to_owned()));
}

#[test]
fn only_own_volumes_that_are_released_are_deleted() {
    for (by, phase, policy, over) in [
        (PROVISIONER, "Released", "Delete", true),
        (PROVISIONER, "Failed", "Delete", true),
        (PROVISIONER, "Bound", "Delete", false),
        (PROVISIONER, "Released", "Retain", false),
        ("example.com/disk", "Released", "Delete", false),
    ] {
        let volume = json!({
            "metadata": {"annotations": {"pv.kubernetes.io/provisioned-by": by}},
            "spec": {"persistentVolumeReclaimPolicy": policy},
            "status": {"phase": phase},
        });
        assert_eq!(
            is_over(&serde_json::from_value(volume).unwrap()),
            over,
            "{by} {phase} {policy}"
        );
    }
}

#[test]
fn a_volume_grows_before_its_file_system_does() {
    let volume = |storage: &str| -> PersistentVolume {
        let by = json!({"pv.kubernetes.io/provisioned-by": PROVISIONER});
        let spec = json!({"capacity": {"storage": storage}, "claimRef": {"uid": "u"}});
        serde_json::from_value(json!({"metadata": {"annotations": by}, "spec": spec})).unwrap()
    };
    let mut claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {"uid": "u"},
        "spec": {"volumeName": "v", "resources": {"requests": {"storage": "2Gi"}}},
        "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}},
    }))
    .unwrap();
    let now = clock::now_time();
    let next = |claim: &PersistentVolumeClaim, storage: &str, used: bool| {
        resize_plan::plan(claim, &volume(storage), used, now.clone())
    };
    let conditions = |claim: &PersistentVolumeClaim| -> Vec<String> {
        let status = claim.status.clone().unwrap();
        status.conditions.into_iter().flatten().map(|condition| condition.type_).collect()
    };
    let Resize::Begin(status) = next(&claim, "1Gi", true) else { panic!() };
    claim.status = Some(*status);
    assert_eq!(conditions(&claim), ["Resizing"]);
    let Resize::Grow(larger) = next(&claim, "1Gi", true) else { panic!() };
    assert_eq!(larger.spec.unwrap().capacity.unwrap()["storage"].0, "2Gi");
    let Resize::Await(status) = next(&claim, "2Gi", true) else { panic!() };
    claim.status = Some(*status);
    assert_eq!(conditions(&claim), ["FileSystemResizePending"]);
    assert_eq!(next(&claim, "2Gi", false), Resize::Settled, "nobody uses it");
    let Resize::Finish(status) = next(&claim, "2Gi", true) else { panic!() };
    assert_eq!(status.capacity.clone().unwrap()["storage"].0, "2Gi");
    assert_eq!(
        (status.allocated_resource_statuses.clone(), status.conditions.clone()),
        (None, None)
    );
    claim.status = Some(*status);
    assert_eq!(next(&claim, "2Gi", true), Resize::Settled);
}
