use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Value, json};

use super::bind::{bound_claim, claim_status, in_phase, unbound_volume};
use super::claim::{ClaimStep, Surroundings, plan};
use super::reclaim::{Reclaim, migrated};
use super::volume::{VolumeStep, plan as plan_volume};

fn merge(base: &mut Value, changes: &Value) {
    match (base, changes) {
        (Value::Object(base), Value::Object(changes)) => {
            for (key, value) in changes {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, changes) => *base = changes.clone(),
    }
}

fn claim(changes: &Value) -> PersistentVolumeClaim {
    let mut claim = json!({
        "metadata": {"namespace": "default", "name": "data", "uid": "c"},
        "spec": {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Pending"},
    });
    merge(&mut claim, changes);
    serde_json::from_value(claim).unwrap()
}

fn volume(changes: &Value) -> Arc<PersistentVolume> {
    let mut volume = json!({
        "metadata": {"name": "v"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                 "persistentVolumeReclaimPolicy": "Retain"},
        "status": {"phase": "Available"},
    });
    merge(&mut volume, changes);
    Arc::new(serde_json::from_value(volume).unwrap())
}

fn class(name: &str, mode: &str, provisioner: &str, is_default: bool) -> Arc<StorageClass> {
    let annotations =
        json!({"storageclass.kubernetes.io/is-default-class": is_default.to_string()});
    let class = json!({
        "metadata": {"name": name, "annotations": annotations,
                     "creationTimestamp": "2030-01-01T00:00:00Z"},
        "provisioner": provisioner, "volumeBindingMode": mode,
    });
    Arc::new(serde_json::from_value(class).unwrap())
}

/// What happens to a claim, in a line.
fn planned(
    claim: &Value,
    volumes: &[Value],
    classes: &[Arc<StorageClass>],
    pods: &[&str],
) -> String {
    let volumes: Vec<_> = volumes.iter().map(volume).collect();
    let pods = || -> Vec<String> { pods.iter().map(|&pod| pod.to_owned()).collect() };
    let around = Surroundings { volumes: &volumes, classes, waiting_pods: &pods };
    match plan(&self::claim(claim), &around) {
        ClaimStep::Bind(volume) => format!("bind {}", volume.metadata.name.as_deref().unwrap()),
        ClaimStep::AssignClass(class) => format!("class {class}"),
        ClaimStep::Provision { provisioner } => format!("provision {provisioner}"),
        ClaimStep::Pending(None) => "pending".to_owned(),
        ClaimStep::Pending(Some(note)) => format!("pending {}: {}", note.reason, note.text),
        ClaimStep::CannotProvision(note) => format!("cannot {}: {}", note.reason, note.text),
        ClaimStep::Lost(note) => format!("lost {}: {}", note.reason, note.text),
        ClaimStep::Misbound(note) => format!("misbound {}: {}", note.reason, note.text),
    }
}

fn of_class(name: &str) -> Value {
    json!({"spec": {"storageClassName": name}})
}

#[test]
fn a_claim_that_names_no_volume_gets_the_best_or_asks_for_one() {
    let classes = [
        class("now", "Immediate", "example.com/disk", false),
        class("later", "WaitForFirstConsumer", "example.com/disk", false),
        class("hand", "Immediate", "kubernetes.io/no-provisioner", false),
        class("moved", "Immediate", "kubernetes.io/gce-pd", false),
    ];
    let selected = json!({"volume.kubernetes.io/selected-node": "n"});
    let mut chosen = of_class("later");
    chosen["metadata"] = json!({"annotations": selected});
    for (claim, volumes, pods, expected) in [
        (json!({}), vec![json!({})], vec![], "bind v"),
        (
            json!({}),
            vec![],
            vec![],
            "pending FailedBinding: no persistent volumes available for this claim and no storage \
             class is set",
        ),
        (of_class("now"), vec![json!({})], vec![], "provision example.com/disk"),
        (of_class("now"), vec![of_class("now")], vec![], "bind v"),
        (of_class("moved"), vec![], vec![], "provision pd.csi.storage.gke.io"),
        (
            of_class("hand"),
            vec![],
            vec![],
            "cannot ProvisioningFailed: no volume plugin matched name: kubernetes.io/no-provisioner",
        ),
        (
            of_class("none"),
            vec![],
            vec![],
            "cannot ProvisioningFailed: storageclass.storage.k8s.io \"none\" not found",
        ),
        (
            of_class("later"),
            vec![of_class("later")],
            vec![],
            "pending WaitForFirstConsumer: waiting for first consumer to be created before binding",
        ),
        (
            of_class("later"),
            vec![],
            vec!["web"],
            "pending WaitForPodScheduled: waiting for pod web to be scheduled",
        ),
        (
            of_class("later"),
            vec![],
            vec!["a", "b"],
            "pending WaitForPodScheduled: waiting for pods a,b to be scheduled",
        ),
        (chosen, vec![], vec![], "provision example.com/disk"),
    ] {
        assert_eq!(planned(&claim, &volumes, &classes, &pods), expected, "{claim} {volumes:?}");
    }
}

#[test]
fn a_claim_without_a_class_gets_the_default_later() {
    let classes = [
        class("b", "Immediate", "example.com/disk", true),
        class("a", "Immediate", "example.com/disk", true),
        class("c", "Immediate", "example.com/disk", false),
    ];
    assert_eq!(planned(&json!({}), &[], &classes, &[]), "class a");
    assert_eq!(planned(&json!({}), &[json!({})], &classes, &[]), "bind v");
    assert!(planned(&of_class(""), &[], &classes, &[]).starts_with("pending FailedBinding"));
}

#[test]
fn a_claim_that_names_a_volume_gets_that_or_waits() {
    let names = json!({"spec": {"volumeName": "v"}});
    let reserved =
        |name: &str| json!({"spec": {"claimRef": {"namespace": "default", "name": name}}});
    let mut ours = names.clone();
    ours["metadata"] = json!({"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}});
    let small = json!({"spec": {"capacity": {"storage": "1Mi"}}});
    let taken = "FailedBinding: volume \"v\" already bound to a different claim.";
    for (claim, volumes, expected) in [
        (&names, vec![], "pending".to_owned()),
        (&names, vec![json!({})], "bind v".to_owned()),
        (&names, vec![reserved("data")], "bind v".to_owned()),
        (&names, vec![reserved("other")], format!("pending {taken}")),
        (&ours, vec![reserved("other")], format!("misbound {taken}")),
        (
            &names,
            vec![small],
            "pending VolumeMismatch: Cannot bind to requested volume \"v\": requested PV is too small"
                .to_owned(),
        ),
    ] {
        assert_eq!(planned(claim, &volumes, &[], &[]), expected, "{volumes:?}");
    }
}

#[test]
fn a_claim_that_was_bound_stays_so_or_is_lost() {
    let done = json!({"annotations": {"pv.kubernetes.io/bind-completed": "yes"}});
    let bound = json!({"metadata": done, "spec": {"volumeName": "v"}});
    let by = |uid: &str| json!({"spec": {"claimRef": {"namespace": "default", "name": "data", "uid": uid}}});
    for (claim, volumes, expected) in [
        (
            &json!({"metadata": done}),
            vec![],
            "lost ClaimLost: Bound claim has lost reference to PersistentVolume. Data on the volume \
             is lost!",
        ),
        (
            &bound,
            vec![],
            "lost ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!",
        ),
        (&bound, vec![json!({})], "bind v"),
        (&bound, vec![by("c")], "bind v"),
        (
            &bound,
            vec![by("d")],
            "lost ClaimMisbound: Two claims are bound to the same volume, this one is bound \
             incorrectly",
        ),
    ] {
        assert_eq!(planned(claim, &volumes, &[], &[]), expected, "{claim} {volumes:?}");
    }
}

#[test]
fn a_volume_follows_its_claim() {
    let of = |uid: &str| json!({"claimRef": {"namespace": "default", "name": "data", "uid": uid}});
    let made = |policy: &str| {
        let mut spec = of("c");
        spec["persistentVolumeReclaimPolicy"] = policy.into();
        json!({"metadata": {"annotations": {"pv.kubernetes.io/provisioned-by": "example.com/disk"}},
               "spec": spec})
    };
    let names = |name: &str| Some(json!({"spec": {"volumeName": name}}));
    let block = json!({"spec": {"volumeMode": "Block", "claimRef": of("c")["claimRef"]}});
    for (volume, claim, expected) in [
        (json!({}), None, VolumeStep::Phase("Available")),
        (json!({"spec": of("")}), names(""), VolumeStep::Phase("Available")),
        (json!({"spec": of("c")}), names(""), VolumeStep::Settled),
        (block, names(""), VolumeStep::Mismatch),
        (json!({"spec": of("c")}), names("v"), VolumeStep::Phase("Bound")),
        (json!({"spec": of("c")}), names("w"), VolumeStep::Unbind),
        (made("Delete"), names("w"), VolumeStep::Release(Reclaim::Leave)),
        (made("Retain"), names("w"), VolumeStep::Unbind),
        (json!({"spec": of("c")}), None, VolumeStep::Release(Reclaim::Leave)),
        (json!({"spec": of("old")}), names("v"), VolumeStep::Release(Reclaim::Leave)),
    ] {
        let claim = claim.map(|changes| self::claim(&changes));
        assert_eq!(plan_volume(&self::volume(&volume), claim.as_ref()), expected, "{volume}");
    }
}

#[test]
fn a_volume_is_reclaimed_as_its_policy_says() {
    let fails = |reason, why: &str| Reclaim::Fail(reason, why.to_owned());
    for (policy, source, expected) in [
        ("Retain", json!({"nfs": {"server": "s", "path": "/"}}), Reclaim::Leave),
        ("Recycle", json!({"nfs": {"server": "s", "path": "/"}}), Reclaim::Recycle),
        (
            "Recycle",
            json!({"local": {"path": "/mnt"}}),
            fails("VolumeFailedRecycle", "No recycler plugin found for the volume!"),
        ),
        ("Delete", json!({"csi": {"driver": "d", "volumeHandle": "h"}}), Reclaim::Leave),
        ("Delete", json!({"hostPath": {"path": "/tmp/x"}}), Reclaim::Delete),
        (
            "Delete",
            json!({"hostPath": {"path": "/srv"}}),
            fails(
                "VolumeFailedDelete",
                "host_path deleter only supports /tmp/.+ but received provided /srv",
            ),
        ),
        (
            "Delete",
            json!({"local": {"path": "/mnt"}}),
            fails(
                "VolumeFailedDelete",
                "error getting deleter volume plugin for volume \"v\": no deletable volume plugin \
                 matched",
            ),
        ),
    ] {
        let mut changes = json!({"spec": {"persistentVolumeReclaimPolicy": policy, "claimRef": {
            "namespace": "default", "name": "data", "uid": "c"}}});
        merge(&mut changes["spec"], &source);
        let step = plan_volume(&volume(&changes), None);
        assert_eq!(step, VolumeStep::Release(expected), "{policy} {source}");
    }
}

#[test]
fn a_volume_whose_provisioner_has_moved_is_left_to_the_driver_that_took_over() {
    let by = |provisioner: &str| {
        let annotations = json!({"pv.kubernetes.io/provisioned-by": provisioner});
        volume(&json!({
            "metadata": {"annotations": annotations},
            "spec": {"persistentVolumeReclaimPolicy": "Delete", "claimRef": {
                "namespace": "default", "name": "data", "uid": "c"}},
        }))
    };
    let old = by("kubernetes.io/aws-ebs");
    let moved = migrated(&old).unwrap();
    let annotations = moved.metadata.annotations.clone().unwrap();
    assert_eq!(annotations["pv.kubernetes.io/migrated-to"], "ebs.csi.aws.com");
    assert_eq!(migrated(&moved), None);
    assert_eq!(plan_volume(&moved, None), VolumeStep::Release(Reclaim::Leave));
    assert_eq!(migrated(&by("example.com/nfs")), None);
    let mut back = moved;
    let annotations = back.metadata.annotations.as_mut().unwrap();
    annotations.insert("pv.kubernetes.io/provisioned-by".into(), "example.com/nfs".into());
    assert_eq!(migrated(&back).unwrap(), *by("example.com/nfs"));
}

#[test]
fn what_is_bound_says_so_on_both_sides() {
    let volume = volume(&json!({}));
    let bound = bound_claim(&claim(&json!({})), &volume).unwrap();
    let annotations = bound.metadata.annotations.clone().unwrap();
    assert_eq!(annotations.len(), 2, "completed, and by the controller");
    assert_eq!(bound.spec.as_ref().unwrap().volume_name.as_deref(), Some("v"));
    assert_eq!(bound_claim(&bound, &volume), None);
    let named = bound_claim(&claim(&json!({"spec": {"volumeName": "v"}})), &volume).unwrap();
    assert_eq!(named.metadata.annotations.unwrap().len(), 1, "the user has named it");
    let status = claim_status(&claim(&json!({})), "Bound", Some(&volume)).unwrap();
    assert_eq!(status.capacity.clone().unwrap()["storage"].0, "1Gi");
    assert_eq!(status.access_modes.clone().unwrap(), ["ReadWriteOnce"]);
    let bound = PersistentVolumeClaim { status: Some(status), ..claim(&json!({})) };
    assert_eq!(claim_status(&bound, "Bound", Some(&volume)), None);
    let lost = claim_status(&bound, "Lost", None).unwrap();
    assert_eq!((lost.capacity, lost.access_modes), (None, None));
}

#[test]
fn a_volume_is_unbound_and_what_a_user_reserved_stays_reserved() {
    let of = json!({"claimRef": {"namespace": "default", "name": "data", "uid": "c"}});
    let by = json!({"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}});
    let unbound = unbound_volume(&volume(&json!({"metadata": by, "spec": of})));
    assert_eq!(unbound, *volume(&json!({})));
    let reserved = unbound_volume(&volume(&json!({"spec": of}))).spec.unwrap().claim_ref.unwrap();
    assert_eq!((reserved.name.as_deref(), reserved.uid), (Some("data"), None));
    assert_eq!(in_phase(&unbound, "Available", ""), None);
    let failed = in_phase(&unbound, "Failed", "why").unwrap().status.unwrap();
    assert_eq!((failed.phase.as_deref(), failed.message.as_deref()), (Some("Failed"), Some("why")));
}
