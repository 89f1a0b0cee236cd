//! Claims and volumes: bound, provisioned, used, expanded, and given back.

use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{StorageClass, VolumeAttachment, VolumeAttributesClass};
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::{ListOptions, Result};
use steersman_testkit::{Cluster, Restarts};

use crate::events::told;
use crate::objects::{all, all_become, counted, is_ready, object, pod};
use crate::restarts::{built_in, small};

/// A claim of 1Gi, of this class.
fn claim(name: &str, class: &str, spec: &Value) -> PersistentVolumeClaim {
    let mut claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
                 "resources": {"requests": {"storage": "1Gi"}}},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        claim["spec"][key] = value.clone();
    }
    object(claim)
}

/// A volume without a class that somebody made by hand.
fn volume(name: &str, storage: &str, spec: &Value) -> PersistentVolume {
    let mut volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": storage},
                 "persistentVolumeReclaimPolicy": "Retain",
                 "nfs": {"server": "192.0.2.1", "path": "/srv"}},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        volume["spec"][key] = value.clone();
    }
    object(volume)
}

/// A Pod that uses a claim.
fn user(name: &str, claim: &str) -> Pod {
    let source = json!({"claimName": claim});
    pod(name, &json!({"volumes": [{"name": "data", "persistentVolumeClaim": source}]}))
}

fn immediate() -> StorageClass {
    let mut class = steersman_controllers::standard_class();
    class.metadata.name = Some("now".into());
    class.metadata.annotations = None;
    class.volume_binding_mode = Some("Immediate".into());
    class
}

fn phase(claim: &PersistentVolumeClaim) -> &str {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    phase(claim) == "Bound"
}

/// The volume that a claim names.
fn names(claim: &PersistentVolumeClaim) -> String {
    claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).unwrap_or_default()
}

fn capacity(claim: &PersistentVolumeClaim) -> Option<String> {
    let capacity = claim.status.as_ref()?.capacity.as_ref()?;
    capacity.get("storage").map(|storage| storage.0.clone())
}

fn in_phase(wanted: &'static str) -> impl Fn(&PersistentVolume) -> bool {
    move |volume| volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(wanted)
}

fn more(storage: &str) -> Patch<Value> {
    Patch::Merge(json!({"spec": {"resources": {"requests": {"storage": storage}}}}))
}

async fn delete_claim(cluster: &Cluster, name: &str) -> Result<()> {
    cluster.client().delete::<PersistentVolumeClaim>(name, &DeleteParams::default()).await.map(drop)
}

async fn volumes(cluster: &Cluster) -> Result<Vec<PersistentVolume>> {
    cluster.client().list(&ListOptions::default()).await
}

#[steersman::test]
async fn claims_get_the_volumes_that_suit_them_or_are_reserved_for_them(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client();
    for (name, storage) in [("large", "10Gi"), ("medium", "2Gi"), ("small", "1Mi")] {
        client.create(&volume(name, storage, &json!({}))).await?;
        cluster.eventually(name, in_phase("Available")).await?;
    }
    client.create(&claim("data", "", &json!({}))).await?;
    cluster.eventually("data", is_bound).await?;
    let data: PersistentVolumeClaim = client.get("data").await?.unwrap();
    assert_eq!((names(&data), capacity(&data)), ("medium".into(), Some("2Gi".into())));
    let annotations = data.metadata.annotations.unwrap();
    assert_eq!(annotations["pv.kubernetes.io/bind-completed"], "yes");
    assert_eq!(annotations["pv.kubernetes.io/bound-by-controller"], "yes");
    cluster.eventually("medium", in_phase("Bound")).await?;
    let count = |name: &str, labels: &str| format!("pv_collector_{name}_count{{{labels}}}");
    let labels = "namespace=\"default\",storage_class=\"\",volume_attributes_class=\"\"";
    assert_eq!(counted(&cluster, &count("bound_pvc", labels)).await?, Some(1.0));
    let free = count("unbound_pv", "storage_class=\"\"");
    assert_eq!(counted(&cluster, &free).await?, Some(2.0));
    // A claim that names its volume, and one that is named by it.
    client.create(&claim("named", "", &json!({"volumeName": "large"}))).await?;
    cluster.eventually("named", is_bound).await?;
    let reserved = json!({"claimRef": {"namespace": "default", "name": "later"}});
    client.create(&volume("reserved", "1Gi", &reserved)).await?;
    cluster.eventually("reserved", in_phase("Available")).await?;
    client.create(&claim("later", "", &json!({}))).await?;
    cluster.eventually("later", |claim| is_bound(claim) && names(claim) == "reserved").await?;
    // What nobody has is waited for.
    client.create(&claim("waits", "", &json!({}))).await?;
    client.create(&claim("too-much", "", &json!({"volumeName": "small"}))).await?;
    let said = told(&cluster, "PersistentVolumeClaim").await?;
    let by = "persistentvolume-controller";
    let none = "no persistent volumes available for this claim and no storage class is set";
    let small = "Cannot bind to requested volume \"small\": requested PV is too small";
    assert!(said.contains(&format!("{by} Normal FailedBinding: {none}")), "{said:?}");
    assert!(said.contains(&format!("{by} Warning VolumeMismatch: {small}")), "{said:?}");
    // Retained, a volume is released and nobody else's; one that is lost takes its claim along.
    delete_claim(&cluster, "data").await?;
    cluster.eventually("medium", in_phase("Released")).await?;
    let waits: PersistentVolumeClaim = client.get("waits").await?.unwrap();
    assert_eq!(phase(&waits), "Pending");
    client.delete::<PersistentVolume>("large", &DeleteParams::default()).await?;
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    client.patch::<PersistentVolume, _>("large", &none).await?;
    cluster.eventually("named", |claim| phase(claim) == "Lost").await
}

#[steersman::test]
async fn a_claim_of_the_default_class_is_bound_where_its_first_pod_goes(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client();
    let mut data = claim("data", "", &json!({}));
    data.spec.as_mut().unwrap().storage_class_name = None;
    let data = client.create(&data).await?;
    let class = data.spec.as_ref().unwrap().storage_class_name.as_deref();
    assert_eq!(class, Some("standard"), "it is the default");
    let by = "persistentvolume-controller Normal";
    let waits = "waiting for first consumer to be created before binding";
    let told_of = told(&cluster, "PersistentVolumeClaim").await?;
    assert_eq!(told_of, [format!("{by} WaitForFirstConsumer: {waits}")]);
    client.create(&user("web", "data")).await?;
    cluster.eventually("web", is_ready).await?;
    let web: Pod = client.get("web").await?.unwrap();
    let node = web.spec.unwrap().node_name.unwrap();
    let data: PersistentVolumeClaim = client.get("data").await?.unwrap();
    assert!(is_bound(&data));
    let annotations = data.metadata.annotations.clone().unwrap();
    assert_eq!(annotations["volume.kubernetes.io/selected-node"], node);
    let provisioner = "volume.kubernetes.io/storage-provisioner";
    assert_eq!(annotations[provisioner], steersman_controllers::LOCAL_PATH_PROVISIONER);
    let uid = data.metadata.uid.clone().unwrap();
    let name = format!("pvc-{uid}");
    let made: PersistentVolume = client.get(name.as_str()).await?.unwrap();
    let spec = serde_json::to_value(made.spec.unwrap())?;
    let terms = &spec["nodeAffinity"]["required"]["nodeSelectorTerms"];
    assert_eq!(terms[0]["matchExpressions"][0]["values"], json!([node]));
    let told_of = told(&cluster, "PersistentVolumeClaim").await?;
    let local = "steersman.dev/local-path Normal";
    let provisioned =
        format!("{local} ProvisioningSucceeded: Successfully provisioned volume {name}");
    assert!(told_of.contains(&provisioned), "{told_of:?}");
    let external =
        format!("{by} ExternalProvisioning: Waiting for a volume to be created either by");
    assert!(told_of.iter().any(|line| line.starts_with(&external)), "{told_of:?}");
    // Another Pod with the same claim can only go there.
    let mut second = user("second", "data");
    let elsewhere =
        json!({"kubernetes.io/hostname": if node == "node-0" { "node-1" } else { "node-0" }});
    second.spec.as_mut().unwrap().node_selector = Some(object(elsewhere));
    client.create(&second).await?;
    let conflict = "default-scheduler Warning FailedScheduling: 0/3 nodes are available: 1 node(s) \
                    didn't match PersistentVolume's node affinity, 2 node(s) didn't match Pod's node \
                    affinity/selector. no new claims to deallocate, preemption: 0/3 nodes are \
                    available: 3 Preemption is not helpful for scheduling.";
    let told_of = told(&cluster, "Pod").await?;
    assert!(told_of.contains(&conflict.to_owned()), "{told_of:?}");
    // A claim in use goes after its Pod, and its volume after it.
    delete_claim(&cluster, "data").await?;
    cluster.advance(Duration::from_secs(60)).await;
    let data: PersistentVolumeClaim = client.get("data").await?.unwrap();
    assert!(data.metadata.deletion_timestamp.is_some());
    client.delete::<Pod>("second", &DeleteParams::default()).await?;
    client.delete::<Pod>("web", &DeleteParams::default()).await?;
    cluster.gone::<PersistentVolumeClaim>("data").await?;
    cluster.gone::<PersistentVolume>(name.as_str()).await
}

#[steersman::test]
async fn a_pod_waits_for_claims_that_are_bound_at_once(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    // While a node arrives, nobody is told that none will do.
    cluster.advance(Duration::from_secs(10)).await;
    client.create(&user("web", "data")).await?;
    let by = "default-scheduler Warning FailedScheduling: 0/3 nodes are available:";
    // So it is in Kubernetes: who makes room for devices was not asked before.
    let missing = format!("{by} persistentvolumeclaim \"data\" not found. not found");
    assert_eq!(told(&cluster, "Pod").await?, [missing]);
    client.create(&claim("data", "now", &json!({}))).await?;
    let unbound = format!("{by} pod has unbound immediate PersistentVolumeClaims. not found");
    cluster.advance(Duration::from_secs(5)).await;
    assert!(told(&cluster, "Pod").await?.contains(&unbound));
    let said = told(&cluster, "PersistentVolumeClaim").await?;
    let nothing = "persistentvolume-controller Warning ProvisioningFailed: \
                   storageclass.storage.k8s.io \"now\" not found";
    assert_eq!(said, [nothing]);
    client.create(&immediate()).await?;
    cluster.eventually("data", is_bound).await?;
    cluster.eventually("web", is_ready).await?;
    let made = volumes(&cluster).await?.remove(0);
    assert_eq!(made.spec.unwrap().node_affinity, None);
    Ok(())
}

#[steersman::test]
async fn claims_that_wait_are_told_why_for_as_long_as_they_do(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    let mut elsewhere = immediate();
    elsewhere.metadata.name = Some("elsewhere".into());
    elsewhere.provisioner = "example.com/disk".into();
    client.create(&elsewhere).await?;
    for (name, class) in [("a", ""), ("b", "unknown"), ("c", "elsewhere")] {
        client.create(&claim(name, class, &json!({}))).await?;
    }
    cluster.advance(Duration::from_secs(2 * 3600)).await; // Events are gone after an hour
    let said = told(&cluster, "PersistentVolumeClaim").await?;
    for (reason, start) in [
        ("Normal FailedBinding", "no persistent volumes available for this claim"),
        ("Warning ProvisioningFailed", "storageclass.storage.k8s.io \"unknown\" not found"),
        ("Normal ExternalProvisioning", "Waiting for a volume to be created"),
    ] {
        let line = format!("persistentvolume-controller {reason}: {start}");
        assert!(said.iter().any(|said| said.starts_with(&line)), "{line}: {said:?}");
    }
    Ok(())
}

#[steersman::test]
async fn the_claims_of_a_stateful_set_are_bound_grow_and_go_as_its_policy_says(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client();
    let set = |name: &str, policy: &str| -> StatefulSet {
        let claims = json!([{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
        object(json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "replicas": 2, "serviceName": name, "volumeClaimTemplates": claims,
                "selector": {"matchLabels": {"app": name}},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy},
                "template": {"metadata": {"labels": {"app": name}},
                             "spec": {"containers": [{"name": "main", "image": "nginx"}]}},
            },
        }))
    };
    for (name, policy) in [("keep", "Retain"), ("drop", "Delete")] {
        client.create(&set(name, policy)).await?;
        cluster.eventually(format!("{name}-1").as_str(), is_ready).await?;
    }
    let claims: Vec<PersistentVolumeClaim> = all(&cluster).await?;
    assert!(claims.len() == 4 && claims.iter().all(is_bound));
    // While a Pod uses it, a volume and what is on it grow.
    client.patch::<PersistentVolumeClaim, _>("data-keep-0", &more("3Gi")).await?;
    let grown = |claim: &PersistentVolumeClaim| {
        let status = claim.status.as_ref().unwrap();
        capacity(claim).as_deref() == Some("3Gi") && status.conditions.is_none()
    };
    cluster.eventually("data-keep-0", grown).await?;
    let kept: PersistentVolumeClaim = client.get("data-keep-0").await?.unwrap();
    let larger: PersistentVolume = client.get(names(&kept).as_str()).await?.unwrap();
    assert_eq!(larger.spec.unwrap().capacity.unwrap()["storage"].0, "3Gi");
    for name in ["keep", "drop"] {
        client.delete::<StatefulSet>(name, &DeleteParams::default()).await?;
    }
    let left = |claims: &[PersistentVolumeClaim]| claims.len() == 2;
    let left = all_become(&cluster, left).await?;
    assert!(left.iter().all(|claim| is_bound(claim) && !names(claim).is_empty()));
    all_become(&cluster, |pods: &[Pod]| pods.is_empty()).await?;
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(volumes(&cluster).await?.len(), 2, "volumes go with their claims");
    // Without a Pod, the file system waits.
    client.patch::<PersistentVolumeClaim, _>("data-keep-1", &more("2Gi")).await?;
    let waits = |claim: &PersistentVolumeClaim| {
        let conditions = claim.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|it| it.type_ == "FileSystemResizePending"))
    };
    cluster.eventually("data-keep-1", waits).await?;
    let said = told(&cluster, "PersistentVolumeClaim").await?;
    for line in [
        "volume_expand Normal ExternalExpanding: waiting for an external controller to expand this PVC",
        "external-resizer-steersman.dev/local-path Normal FileSystemResizeRequired: Require file \
         system resize of volume on node",
    ] {
        assert!(said.contains(&line.to_owned()), "{said:?}");
    }
    Ok(())
}

#[steersman::test]
async fn an_ephemeral_volume_has_a_claim_that_goes_with_its_pod(cluster: Cluster) -> Result<()> {
    let spec = json!({"accessModes": ["ReadWriteOnce"],
                      "resources": {"requests": {"storage": "1Gi"}}});
    let source = json!({"volumeClaimTemplate": {"spec": spec}});
    let web = pod("web", &json!({"volumes": [{"name": "scratch", "ephemeral": source}]}));
    cluster.client().create(&web).await?;
    cluster.eventually("web", is_ready).await?;
    cluster.eventually("web-scratch", is_bound).await?;
    cluster.client().delete::<Pod>("web", &DeleteParams::default()).await?;
    cluster.gone::<PersistentVolumeClaim>("web-scratch").await?;
    cluster.advance(Duration::from_secs(10)).await;
    assert!(volumes(&cluster).await?.is_empty());
    Ok(())
}

#[steersman::test]
async fn a_class_of_volume_attributes_goes_when_nobody_names_it(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    let gold: VolumeAttributesClass = object(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass",
        "metadata": {"name": "gold"}, "driverName": "example.com", "parameters": {"iops": "100"},
    }));
    client.create(&gold).await?;
    client.create(&claim("data", "", &json!({"volumeAttributesClassName": "gold"}))).await?;
    client.delete::<VolumeAttributesClass>("gold", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(10)).await;
    let gold: VolumeAttributesClass = client.get("gold").await?.unwrap();
    assert!(gold.metadata.deletion_timestamp.is_some());
    delete_claim(&cluster, "data").await?;
    cluster.gone::<VolumeAttributesClass>("gold").await
}

#[steersman::test(nodes = 1)]
async fn a_volume_of_a_driver_is_attached_while_a_pod_uses_it(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    let source = json!({"driver": "example.com", "volumeHandle": "disk-1"});
    client.create(&volume("disk", "1Gi", &json!({"nfs": null, "csi": source}))).await?;
    client.create(&claim("data", "", &json!({}))).await?;
    client.create(&user("web", "data")).await?;
    cluster.eventually("web", is_ready).await?;
    let attached = |node: &Node| -> Vec<String> {
        let volumes = node.status.clone().unwrap_or_default().volumes_attached;
        volumes.into_iter().flatten().map(|volume| volume.name).collect()
    };
    let name = "kubernetes.io/csi/example.com^disk-1";
    cluster.eventually("node-0", |node: &Node| attached(node) == [name]).await?;
    let attachments: Vec<VolumeAttachment> = client.list(&ListOptions::default()).await?;
    assert_eq!(attachments.len(), 1);
    let spec = &attachments[0].spec;
    assert_eq!((spec.attacher.as_str(), spec.node_name.as_str()), ("example.com", "node-0"));
    let line = "attachdetach-controller Normal SuccessfulAttachVolume: AttachVolume.Attach succeeded \
                for volume \"disk\" ";
    assert!(told(&cluster, "Pod").await?.contains(&line.to_owned()));
    let plugin = "kubernetes.io/csi:example.com";
    let in_use = format!(
        "storage_count_attachable_volumes_in_use{{node=\"node-0\",volume_plugin=\"{plugin}\"}}"
    );
    let total = |state: &str| {
        format!(
            "attachdetach_controller_total_volumes{{plugin_name=\"{plugin}\",state=\"{state}_state_of_world\"}}"
        )
    };
    for metric in [&in_use, &total("desired"), &total("actual")] {
        assert_eq!(counted(&cluster, metric).await?, Some(1.0), "{metric}");
    }
    client.delete::<Pod>("web", &DeleteParams::default()).await?;
    cluster.eventually("node-0", |node: &Node| attached(node).is_empty()).await?;
    assert_eq!(counted(&cluster, &in_use).await?, None);
    assert_eq!(counted(&cluster, &total("actual")).await?, Some(0.0));
    let attachments: Vec<VolumeAttachment> = client.list(&ListOptions::default()).await?;
    assert_eq!(attachments.len(), 0);
    Ok(())
}

/// A claim that is bound to what is there, used, deleted while it is, and given back.
async fn is_bound_used_and_given_back(cluster: &Cluster) -> Result<()> {
    let client = cluster.client();
    client.create(&volume("disk", "1Gi", &json!({}))).await?;
    client.create(&claim("data", "", &json!({}))).await?;
    cluster.eventually("data", is_bound).await?;
    cluster.eventually("disk", in_phase("Bound")).await?;
    client.create(&user("web", "data")).await?;
    cluster.eventually("web", is_ready).await?;
    delete_claim(cluster, "data").await?;
    cluster.advance(Duration::from_secs(5)).await;
    assert!(client.get::<PersistentVolumeClaim>("data").await?.is_some(), "it is in use");
    client.delete::<Pod>("web", &DeleteParams::default()).await?;
    cluster.gone::<PersistentVolumeClaim>("data").await?;
    cluster.eventually("disk", in_phase("Released")).await?;
    client.delete::<PersistentVolume>("disk", &DeleteParams::default()).await?;
    cluster.gone::<PersistentVolume>("disk").await
}

#[test]
fn a_claim_is_bound_once_whenever_its_controller_is_restarted() {
    let volumes = built_in("persistentvolume-reclaim-controller");
    let binder = Restarts::of(built_in("persistentvolume-binder-controller")).beside(volumes);
    binder.settings(small()).events(4).check(is_bound_used_and_given_back);
}

#[test]
fn a_claim_in_use_is_kept_whenever_its_controller_is_restarted() {
    let claims = Restarts::of(built_in("persistentvolumeclaim-protection-controller"));
    claims.settings(small()).events(2).check(is_bound_used_and_given_back);
}

#[test]
fn a_bound_volume_is_kept_whenever_its_controller_is_restarted() {
    let volumes = Restarts::of(built_in("persistentvolume-protection-controller"));
    volumes.settings(small()).events(2).check(async |cluster| {
        let client = cluster.client();
        client.create(&volume("disk", "1Gi", &json!({}))).await?;
        client.create(&claim("data", "", &json!({}))).await?;
        cluster.eventually("data", is_bound).await?;
        cluster.eventually("disk", in_phase("Bound")).await?;
        client.delete::<PersistentVolume>("disk", &DeleteParams::default()).await?;
        cluster.advance(Duration::from_secs(5)).await;
        assert!(client.get::<PersistentVolume>("disk").await?.is_some(), "it is bound");
        delete_claim(cluster, "data").await?;
        cluster.gone::<PersistentVolume>("disk").await
    });
}

/// Creates a volume of a driver, which only one node can have.
async fn disk(cluster: &Cluster) -> Result<()> {
    let source = json!({"driver": "example.com", "volumeHandle": "disk-1"});
    let disk = volume("disk", "1Gi", &json!({"nfs": null, "csi": source}));
    cluster.client().create(&disk).await.map(drop)
}

/// A Pod on a node that uses the claim `data`.
fn user_on(node: &str, name: &str) -> Pod {
    let mut pod = user(name, "data");
    pod.spec.as_mut().unwrap().node_name = Some(node.to_owned());
    pod
}

/// The nodes to which something is attached.
async fn attached_to(cluster: &Cluster) -> Result<Vec<String>> {
    let all: Vec<VolumeAttachment> = cluster.client().list(&ListOptions::default()).await?;
    Ok(all.into_iter().map(|attachment| attachment.spec.node_name).collect())
}

#[steersman::test(nodes = 2)]
async fn a_volume_for_one_node_waits_until_the_other_has_given_it_back(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client();
    disk(&cluster).await?;
    client.create(&claim("data", "", &json!({}))).await?;
    client.create(&user_on("node-0", "first")).await?;
    cluster.eventually("first", is_ready).await?;
    // Simulated Pods do not wait for their volumes, and the claim may have been bound a moment later.
    cluster.advance(Duration::from_secs(2)).await;
    assert_eq!(attached_to(&cluster).await?, ["node-0"]);
    client.create(&user_on("node-1", "second")).await?;
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(attached_to(&cluster).await?, ["node-0"]);
    let line = "attachdetach-controller Warning FailedAttachVolume: Waiting for detach for volume \
                \"disk\" Volume is already used by pod(s) first";
    let told = told(&cluster, "Pod").await?;
    assert_eq!(told.iter().filter(|it| *it == line).count(), 1, "{told:?}");
    client.delete::<Pod>("first", &DeleteParams::default()).await?;
    cluster.gone::<Pod>("first").await?;
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(attached_to(&cluster).await?, ["node-1"]);
    Ok(())
}

#[steersman::test(nodes = 2)]
async fn a_volume_for_one_node_is_taken_from_a_node_that_is_gone(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    disk(&cluster).await?;
    client.create(&claim("data", "", &json!({}))).await?;
    // A node that only seems to be one: nobody makes it anew when it is deleted.
    let lost: Node = object(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "lost"},
    }));
    client.create(&lost).await?;
    client.create(&user_on("lost", "first")).await?;
    cluster.advance(Duration::from_secs(10)).await;
    client.create(&user_on("node-1", "second")).await?;
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(attached_to(&cluster).await?, ["lost"]);
    client.delete::<Node>("lost", &DeleteParams::default()).await?;
    cluster.gone::<Pod>("first").await?;
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(attached_to(&cluster).await?, ["node-1"]);
    Ok(())
}

#[steersman::test(nodes = 2)]
async fn a_volume_that_a_node_has_mounted_stays_attached_to_it(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    disk(&cluster).await?;
    client.create(&claim("data", "", &json!({}))).await?;
    let lost = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "lost"}});
    client.create::<Node>(&object(lost)).await?;
    client.create(&user_on("lost", "first")).await?;
    cluster.advance(Duration::from_secs(10)).await;
    let mounted = ["kubernetes.io/csi/example.com^disk-1"];
    let says = Patch::Merge(json!({"status": {"volumesInUse": mounted}}));
    client.patch_status::<Node, _>("lost", &says).await?;
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    client.delete::<Pod>("first", &now).await?;
    client.create(&user_on("node-1", "second")).await?;
    cluster.advance(Duration::from_secs(5 * 60)).await;
    assert_eq!(attached_to(&cluster).await?, ["lost"], "it may still be written to");
    let lost: Node = client.get("lost").await?.unwrap();
    let attached = lost.status.unwrap_or_default().volumes_attached.unwrap_or_default();
    assert_eq!(attached.len(), 1);
    cluster.advance(Duration::from_secs(2 * 60)).await;
    assert_eq!(attached_to(&cluster).await?, ["node-1"], "but not for ever");
    let forced = "attach_detach_controller_attachdetach_controller_forced_detaches";
    let forced = format!("{forced}{{reason=\"timeout\"}}");
    assert_eq!(counted(&cluster, &forced).await?, Some(1.0));
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn what_has_no_volume_is_never_attached(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    let attachment: VolumeAttachment = object(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
        "metadata": {"name": "own"},
        "spec": {"attacher": "example.com", "nodeName": "node-0",
            "source": {"persistentVolumeName": "disk"}},
    }));
    client.create(&attachment).await?;
    let attached = |it: &VolumeAttachment| it.status.as_ref().is_some_and(|it| it.attached);
    cluster.advance(Duration::from_secs(10)).await;
    assert!(!attached(&client.get("own").await?.unwrap()));
    disk(&cluster).await?;
    cluster.eventually("own", attached).await
}
