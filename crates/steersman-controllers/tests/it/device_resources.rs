//! Extended resources that Pods get as devices of a class.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::Result;
use steersman_testkit::Cluster;

use crate::devices::{node_of, unscheduled};
use crate::objects::{all, counted, is_ready, object, pod};

const GPU: &str = "example.com/gpu";
const OF: &str = "resource.kubernetes.io/extended-resource-claim";

fn class(resource: Option<&str>) -> DeviceClass {
    object(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"extendedResourceName": resource},
    }))
}

/// Two devices of a node.
fn slice(node: &str) -> ResourceSlice {
    object(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node},
        "spec": {"driver": "gpu.example.com", "nodeName": node,
                 "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                 "devices": [{"name": "a"}, {"name": "b"}]},
    }))
}

/// A Pod whose containers ask for so many of a resource.
fn wants(name: &str, resource: &str, counts: &[&str]) -> Pod {
    let container = |(number, count): (usize, &&str)| {
        let some = json!({resource: count});
        json!({"name": format!("c{number}"), "image": "nginx",
               "resources": {"requests": some, "limits": some}})
    };
    let containers: Vec<Value> = counts.iter().enumerate().map(container).collect();
    pod(name, &json!({"containers": containers}))
}

fn devices(claim: &ResourceClaim) -> Vec<String> {
    let allocation = claim.status.as_ref().and_then(|status| status.allocation.as_ref());
    let results = allocation.and_then(|it| it.devices.as_ref()).and_then(|it| it.results.as_ref());
    let results = results.into_iter().flatten();
    results.map(|it| format!("{}={}/{}", it.request, it.pool, it.device)).collect()
}

fn waits(pod: &Pod) -> bool {
    unscheduled(pod).is_some()
}

#[steersman::test]
async fn a_pod_gets_devices_for_a_resource_that_its_node_does_not_have(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client();
    client.create(&slice("node-1")).await?;
    client.create(&wants("web", GPU, &["1", "1"])).await?;
    cluster.eventually("web", waits).await?;
    let web: Pod = client.get("web").await?.unwrap();
    assert!(unscheduled(&web).unwrap().contains("3 Insufficient example.com/gpu"));

    // Now it stands for devices.
    client.create(&class(Some(GPU))).await?;
    cluster.eventually("web", is_ready).await?;
    let web: Pod = client.get("web").await?.unwrap();
    assert_eq!(node_of(&web), Some("node-1"));
    let claims: Vec<ResourceClaim> = all(&cluster).await?;
    let [claim] = &claims[..] else { panic!("{} claims", claims.len()) };
    let name = claim.metadata.name.clone().unwrap();
    assert!(name.starts_with("web-extended-resources-"), "{name}");
    assert_eq!(claim.metadata.annotations.as_ref().unwrap()[OF], "true");
    let owner = &claim.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.controller), ("Pod", Some(true)));
    assert_eq!(Some(&owner.uid), web.metadata.uid.as_ref());
    let given = ["container-0-request-0=node-1/a", "container-1-request-0=node-1/b"];
    assert_eq!(devices(claim), given);
    let created = "scheduler_resourceclaim_creates_total{status=\"success\"}";
    assert_eq!(counted(&cluster, created).await?, Some(1.0));
    let told = web.status.unwrap().extended_resource_claim_status.unwrap();
    let mapping = |container: &str, request: &str| -> Value {
        json!({"containerName": container, "resourceName": GPU, "requestName": request})
    };
    let expected = json!({"resourceClaimName": name, "requestMappings": [
        mapping("c0", "container-0-request-0"), mapping("c1", "container-1-request-0")]});
    assert_eq!(serde_json::to_value(&told).unwrap(), expected);

    // They are taken until the Pod is gone, and its claim with it; each class has a resource anyway.
    let implicit = "deviceclass.resource.kubernetes.io/gpu";
    client.create(&wants("next", implicit, &["2"])).await?;
    cluster.eventually("next", waits).await?;
    client.delete::<Pod>("web", &DeleteParams::default()).await?;
    cluster.gone::<ResourceClaim>(name.as_str()).await?;
    cluster.eventually("next", is_ready).await?;
    let claims: Vec<ResourceClaim> = all(&cluster).await?;
    let given = ["container-0-request-0=node-1/a", "container-0-request-0=node-1/b"];
    assert_eq!(devices(&claims[0]), given);
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn a_node_that_has_a_resource_gives_it_out_itself(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    client.create(&class(Some(GPU))).await?;
    client.create(&slice("node-0")).await?;
    let has = json!({GPU: "1"});
    let status = Patch::Merge(json!({"status": {"capacity": has, "allocatable": has}}));
    client.patch_status::<Node, _>("node-0", &status).await?;
    client.create(&wants("web", GPU, &["1"])).await?;
    cluster.eventually("web", is_ready).await?;
    let web: Pod = client.get("web").await?.unwrap();
    assert!(web.status.unwrap().extended_resource_claim_status.is_none());
    assert!(all::<ResourceClaim>(&cluster).await?.is_empty());
    client.create(&wants("more", GPU, &["1"])).await?;
    cluster.eventually("more", waits).await?;
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn a_claim_that_an_earlier_attempt_has_left_makes_way(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    client.create(&class(Some(GPU))).await?;
    client.create(&slice("node-0")).await?;
    let mut web = wants("web", GPU, &["1"]);
    let gate = json!([{"name": "example.com/wait"}]);
    web.spec.as_mut().unwrap().scheduling_gates = Some(object(gate));
    let web = client.create(&web).await?;
    let exactly = json!({"deviceClassName": "gpu"});
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "web", "controller": true,
                       "uid": web.metadata.uid});
    let left: ResourceClaim = object(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "left", "namespace": "default", "annotations": {OF: "true"},
                     "ownerReferences": [owner]},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }));
    client.create(&left).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    client.patch::<Pod, _>("web", &open).await?;
    cluster.eventually("web", is_ready).await?;
    let claims: Vec<ResourceClaim> = all(&cluster).await?;
    assert_eq!(claims.len(), 1);
    assert!(claims[0].metadata.name.as_deref() != Some("left"));
    assert_eq!(devices(&claims[0]), ["container-0-request-0=node-0/a"]);
    Ok(())
}
