//! Claims for devices: made from templates, kept while they are used, and taken away with a device that
//! is broken.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{
    DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::{Result, clock};
use steersman_testkit::{Cluster, Restarts};

use crate::events::told;
use crate::objects::{all, all_become, counted, is_ready, object, pod};
use crate::restarts::{built_in, small};

const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

fn requests() -> Value {
    json!({"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}})
}

fn template(name: &str) -> ResourceClaimTemplate {
    object(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"spec": requests()},
    }))
}

pub(crate) fn claim(name: &str) -> ResourceClaim {
    object(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"}, "spec": requests(),
    }))
}

/// A Pod with these claims.
pub(crate) fn user(name: &str, claims: &Value) -> Pod {
    pod(name, &json!({"resourceClaims": claims}))
}

fn from_template() -> Value {
    json!([{"name": "gpu", "resourceClaimTemplateName": "one"}])
}

pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// What the status of a Pod calls its claims.
fn names(pod: &Pod) -> Vec<String> {
    let statuses = pod.status.as_ref().and_then(|it| it.resource_claim_statuses.clone());
    statuses.into_iter().flatten().filter_map(|it| it.resource_claim_name).collect()
}

fn users(claim: &ResourceClaim) -> usize {
    claim.status.as_ref().and_then(|it| it.reserved_for.as_ref()).map_or(0, Vec::len)
}

fn is_allocated(claim: &ResourceClaim) -> bool {
    claim.status.as_ref().is_some_and(|it| it.allocation.is_some())
}

/// Allocates a device of the pool `pool` to a claim, as a scheduler does.
async fn allocate(cluster: &Cluster, name: &str, tolerations: &Value) -> Result<()> {
    let held = Patch::Merge(json!({"metadata": {"finalizers": [FINALIZER]}}));
    cluster.client().patch::<ResourceClaim, _>(name, &held).await?;
    let result = json!({"request": "gpu", "driver": "gpu.example.com", "pool": "pool",
                        "device": "a", "tolerations": tolerations});
    let status = json!({"status": {"allocation": {"devices": {"results": [result]}}}});
    cluster.client().patch_status::<ResourceClaim, _>(name, &Patch::Merge(status)).await?;
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn a_pods_claim_is_made_from_its_template_reserved_and_gone_when_it_ends(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client();
    let mut sum = user("sum", &from_template());
    let spec = sum.spec.as_mut().unwrap();
    spec.restart_policy = Some("Never".into());
    spec.containers[0].image = Some("steersman.dev/exit:0-after-60s".into());
    client.create(&sum).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let failed = "resource_claim Warning FailedResourceClaimCreation: PodResourceClaim gpu: resource \
                  claim template \"one\": resourceclaimtemplate.resource.k8s.io \"one\" not found";
    assert!(told(&cluster, "Pod").await?.contains(&failed.to_owned()));
    assert!(node_of(&client.get("sum").await?.unwrap()).is_none(), "it waits for its claim");

    client.create(&template("one")).await?;
    cluster.eventually("sum", |pod: &Pod| names(pod).len() == 1).await?;
    let pod: Pod = client.get("sum").await?.unwrap();
    let name = names(&pod).remove(0);
    assert!(name.starts_with("sum-gpu-"), "{name}");
    let managers = pod.metadata.managed_fields.unwrap_or_default();
    let ours = |it: &&k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry| {
        it.manager.as_deref() == Some("ResourceClaimController")
    };
    let entry = managers.iter().find(ours).expect("Kubernetes writes the status by this name");
    assert_eq!(entry.operation.as_deref(), Some("Apply"));
    let made = "resourceclaim_controller_creates_total{status=\"success\",admin_access=\"false\"}";
    assert_eq!(counted(&cluster, made).await?, Some(1.0));

    allocate(&cluster, &name, &json!([])).await?;
    cluster.eventually(name.as_str(), |claim: &ResourceClaim| users(claim) == 1).await?;
    let there = "resourceclaim_controller_resource_claims{allocated=\"true\",admin_access=\"false\",\
                 source=\"resource_claim_template\"}";
    assert_eq!(counted(&cluster, there).await?, Some(1.0));
    cluster.gone::<ResourceClaim>(name.as_str()).await?;
    assert!(client.get::<Pod>("sum").await?.is_some(), "it has ended, and is still there");
    assert_eq!(counted(&cluster, there).await?, Some(0.0));
    cluster.advance(Duration::from_secs(60)).await;
    assert!(all::<ResourceClaim>(&cluster).await?.is_empty(), "it is not made again");
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn a_shared_claim_is_deallocated_when_the_last_pod_is_gone(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    client.create(&claim("gpu")).await?;
    allocate(&cluster, "gpu", &json!([])).await?;
    let shared = json!([{"name": "gpu", "resourceClaimName": "gpu"}]);
    for name in ["a", "b"] {
        client.create(&user(name, &shared)).await?;
        cluster.eventually(name, is_ready).await?;
    }
    cluster.eventually("gpu", |claim: &ResourceClaim| users(claim) == 2).await?;
    client.delete::<Pod>("a", &DeleteParams::default()).await?;
    let one_left = |claim: &ResourceClaim| users(claim) == 1 && is_allocated(claim);
    cluster.eventually("gpu", one_left).await?;
    client.delete::<ResourceClaim>("gpu", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(10)).await;
    assert!(client.get::<ResourceClaim>("gpu").await?.is_some(), "it is in use");
    client.delete::<Pod>("b", &DeleteParams::default()).await?;
    cluster.gone::<ResourceClaim>("gpu").await?;

    // One that stays is free for who comes next, wherever that is.
    client.create(&claim("kept")).await?;
    allocate(&cluster, "kept", &json!([])).await?;
    client.create(&user("c", &json!([{"name": "gpu", "resourceClaimName": "kept"}]))).await?;
    cluster.eventually("kept", |claim: &ResourceClaim| users(claim) == 1).await?;
    client.delete::<Pod>("c", &DeleteParams::default()).await?;
    let is_free = |claim: &ResourceClaim| {
        !is_allocated(claim) && claim.metadata.finalizers.is_none() && users(claim) == 0
    };
    cluster.eventually("kept", is_free).await?;
    Ok(())
}

/// The devices of the pool `pool`, of which `a` has these taints.
pub(crate) fn slice(taints: &Value) -> ResourceSlice {
    object(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "slice"},
        "spec": {"driver": "gpu.example.com", "nodeName": "node-0",
                 "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
                 "devices": [{"name": "a", "taints": taints}]},
    }))
}

fn broken() -> Value {
    json!([{"key": "broken", "effect": "NoExecute"}])
}

/// Says of the device `a` that it has these taints.
async fn taint(cluster: &Cluster, taints: &Value) -> Result<ResourceSlice> {
    let devices = json!({"spec": {"devices": [{"name": "a", "taints": taints}]}});
    cluster.client().patch::<ResourceSlice, _>("slice", &Patch::Merge(devices)).await
}

/// A Pod that uses the device `a` and tolerates that it is broken as said.
pub(crate) async fn runs(cluster: &Cluster, name: &str, tolerations: &Value) -> Result<()> {
    cluster.client().create(&claim(name)).await?;
    allocate(cluster, name, tolerations).await?;
    let own = json!([{"name": "gpu", "resourceClaimName": name}]);
    cluster.client().create(&user(name, &own)).await?;
    cluster.eventually(name, is_ready).await?;
    cluster.eventually(name, |claim: &ResourceClaim| users(claim) == 1).await
}

#[steersman::test(nodes = 1)]
async fn pods_of_a_broken_device_go_as_soon_as_they_do_not_tolerate_it(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client();
    client.create(&slice(&json!([]))).await?;
    let minute = json!([{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]);
    let always = json!([{"operator": "Exists", "effect": "NoExecute"}]);
    runs(&cluster, "none", &json!([])).await?;
    runs(&cluster, "minute", &minute).await?;
    runs(&cluster, "always", &always).await?;

    let begun = clock::now();
    let tainted = taint(&cluster, &broken()).await?;
    let device = &tainted.spec.devices.unwrap()[0];
    let since = device.taints.as_ref().unwrap()[0].time_added.clone();
    assert_eq!(since.expect("the server says when").0.as_second(), begun.as_second());
    cluster.gone::<Pod>("none").await?;
    let marked = "device-taint-eviction-controller Normal DeviceTaintManagerEviction: Marking for \
                  deletion";
    assert_eq!(told(&cluster, "Pod").await?.iter().filter(|line| *line == marked).count(), 1);
    let count = "device_taint_eviction_controller_pod_deletions_total";
    assert_eq!(counted(&cluster, count).await?, Some(1.0));

    // It works again, and the second stays.
    cluster.advance(Duration::from_secs(30)).await;
    taint(&cluster, &json!([])).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let cancelled = "device-taint-eviction-controller Normal DeviceTaintManagerEviction: Cancelling \
                     deletion";
    assert_eq!(told(&cluster, "Pod").await?.iter().filter(|line| *line == cancelled).count(), 1);
    assert_eq!(all::<Pod>(&cluster).await?.len(), 2);

    taint(&cluster, &broken()).await?;
    let again = clock::now();
    cluster.gone::<Pod>("minute").await?;
    let waited = clock::now().duration_since(again).as_secs();
    assert!((59..=61).contains(&waited), "{waited}");
    cluster.advance(Duration::from_secs(600)).await;
    assert!(client.get::<Pod>("always").await?.is_some_and(|pod| is_ready(&pod)));
    Ok(())
}

#[test]
fn a_pod_has_one_claim_whenever_the_controller_is_restarted() {
    let claims = built_in("resourceclaim-release-controller");
    let both = Restarts::of(built_in("resourceclaim-controller")).beside(claims);
    both.settings(small()).events(4).check(async |cluster| {
        let client = cluster.client();
        client.create(&template("one")).await?;
        client.create(&user("web", &from_template())).await?;
        cluster.eventually("web", |pod: &Pod| names(pod).len() == 1).await?;
        let pod: Pod = client.get("web").await?.unwrap();
        let name = names(&pod).remove(0);
        allocate(cluster, &name, &json!([])).await?;
        cluster.eventually(name.as_str(), |claim: &ResourceClaim| users(claim) == 1).await?;
        client.delete::<Pod>("web", &DeleteParams::default()).await?;
        all_become(cluster, |claims: &[ResourceClaim]| claims.is_empty()).await.map(drop)
    });
}

#[test]
fn a_pod_of_a_broken_device_goes_whenever_the_controller_is_restarted() {
    let controller = Restarts::of(built_in("device-taint-eviction-controller"));
    controller.settings(small()).events(3).check(async |cluster| {
        cluster.client().create(&slice(&json!([]))).await?;
        let soon = json!([{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10}]);
        runs(cluster, "web", &soon).await?;
        taint(cluster, &broken()).await?;
        cluster.gone::<Pod>("web").await
    });
}

/// Devices of this model on a node, and the class for them.
async fn offer(cluster: &Cluster, node: &str, devices: &[&str]) -> Result<()> {
    let devices: Vec<Value> = devices
        .iter()
        .map(|name| json!({"name": name, "attributes": {"model": {"string": "x1"}}}))
        .collect();
    let slice: ResourceSlice = object(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node},
        "spec": {"driver": "gpu.example.com", "nodeName": node, "devices": devices,
                 "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}},
    }));
    cluster.client().create(&slice).await.map(drop)
}

async fn make_class(cluster: &Cluster) -> Result<()> {
    let expression = "device.attributes['gpu.example.com'].model == 'x1'";
    let class: DeviceClass = object(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }));
    cluster.client().create(&class).await.map(drop)
}

pub(crate) fn unscheduled(pod: &Pod) -> Option<&str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let told = conditions.iter().find(|it| it.type_ == "PodScheduled" && it.status == "False")?;
    told.message.as_deref()
}

/// The devices that a claim was given.
fn devices(claim: &ResourceClaim) -> Vec<String> {
    let allocation = claim.status.as_ref().and_then(|status| status.allocation.as_ref());
    let results = allocation.and_then(|it| it.devices.as_ref()).and_then(|it| it.results.as_ref());
    results.into_iter().flatten().map(|it| format!("{}/{}", it.pool, it.device)).collect()
}

#[steersman::test]
async fn pods_get_devices_where_they_are_and_wait_while_others_have_them(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client();
    client.create(&template("one")).await?;
    client.create(&user("first", &from_template())).await?;
    let waits = |pod: &Pod| unscheduled(pod).is_some();
    cluster.eventually("first", waits).await?;
    let first: Pod = client.get("first").await?.unwrap();
    let told = "0/3 nodes are available: request gpu: device class gpu does not exist. no new \
                claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not \
                helpful for scheduling.";
    assert_eq!(unscheduled(&first), Some(told));
    make_class(&cluster).await?;
    let nowhere = |pod: &Pod| {
        unscheduled(pod).is_some_and(|why| why.contains("3 cannot allocate all claims"))
    };
    cluster.eventually("first", nowhere).await?;
    offer(&cluster, "node-1", &["a"]).await?;
    cluster.eventually("first", is_ready).await?;
    let first: Pod = client.get("first").await?.unwrap();
    assert_eq!(node_of(&first), Some("node-1"));
    let name = names(&first).remove(0);
    let given: ResourceClaim = client.get(name.as_str()).await?.unwrap();
    assert_eq!(devices(&given), ["node-1/a"]);
    assert_eq!(users(&given), 1);
    assert_eq!(given.metadata.finalizers.as_deref(), Some(&[FINALIZER.to_owned()][..]));

    // There is one device, so that one Pod waits for the other to go.
    client.create(&user("second", &from_template())).await?;
    cluster.eventually("second", nowhere).await?;
    cluster.advance(Duration::from_secs(600)).await;
    assert_eq!(node_of(&client.get("second").await?.unwrap()), None);
    client.delete::<Pod>("first", &DeleteParams::default()).await?;
    cluster.eventually("second", is_ready).await?;
    let second: Pod = client.get("second").await?.unwrap();
    let taken: ResourceClaim = client.get(names(&second)[0].as_str()).await?.unwrap();
    assert_eq!(devices(&taken), ["node-1/a"]);
    Ok(())
}

#[steersman::test]
async fn many_pods_share_devices_of_several_nodes_and_none_is_given_twice(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client();
    make_class(&cluster).await?;
    client.create(&template("one")).await?;
    for node in ["node-0", "node-1", "node-2"] {
        offer(&cluster, node, &["a", "b", "c", "d"]).await?;
    }
    for number in 0..14 {
        client.create(&user(&format!("p{number}"), &from_template())).await?;
    }
    let twelve = |pods: &[Pod]| pods.iter().filter(|pod| is_ready(pod)).count() == 12;
    let pods: Vec<Pod> = all_become(&cluster, twelve).await?;
    let claims: Vec<ResourceClaim> = all(&cluster).await?;
    let mut given: Vec<String> = claims.iter().flat_map(devices).collect();
    given.sort();
    given.dedup();
    assert_eq!(given.len(), 12, "{given:?}");
    for pod in pods.iter().filter(|pod| is_ready(pod)) {
        let name = names(pod).remove(0);
        let claim = claims.iter().find(|it| it.metadata.name.as_ref() == Some(&name)).unwrap();
        let device = devices(claim).remove(0);
        assert!(device.starts_with(node_of(pod).unwrap()), "{device} of {:?}", node_of(pod));
    }
    Ok(())
}
