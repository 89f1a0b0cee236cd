//! Devices that have to be attached to a node before a Pod is bound to it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use kube::api::Patch;
use serde_json::{Value, json};
use steersman::Result;
use steersman_testkit::Cluster;

use crate::devices::{claim, node_of, user};
use crate::events::told;
use crate::objects::{counted, is_ready, object};

/// A device that any node reaches once it is attached to it, its class, and a Pod that wants it.
async fn prepare(cluster: &Cluster) -> Result<()> {
    let client = cluster.client();
    let class: DeviceClass = object(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {},
    }));
    client.create(&class).await?;
    let slice: ResourceSlice = object(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "slice"},
        "spec": {"driver": "gpu.example.com", "allNodes": true,
                 "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
                 "devices": [{"name": "a", "bindsToNode": true,
                              "bindingConditions": ["attached"],
                              "bindingFailureConditions": ["lost"]}]},
    }));
    client.create(&slice).await?;
    client.create(&claim("gpu")).await?;
    client.create(&user("web", &json!([{"name": "gpu", "resourceClaimName": "gpu"}]))).await?;
    Ok(())
}

fn is_allocated(claim: &ResourceClaim) -> bool {
    claim.status.as_ref().is_some_and(|status| status.allocation.is_some())
}

/// When a claim was given what it has.
fn since(claim: &ResourceClaim) -> Option<String> {
    let allocation = claim.status.as_ref()?.allocation.as_ref()?;
    Some(allocation.allocation_timestamp.as_ref()?.0.to_string())
}

/// The driver says that this holds of the device.
async fn say(cluster: &Cluster, type_: &str) -> Result<()> {
    let condition = json!({"type": type_, "status": "True", "reason": "Link", "message": "link down",
                           "lastTransitionTime": "2030-01-01T00:00:00Z"});
    let device = json!({"driver": "gpu.example.com", "pool": "pool", "device": "a",
                        "conditions": [condition]});
    let status: Value = json!({"status": {"devices": [device]}});
    let patch = Patch::Merge(status);
    cluster.client().patch_status::<ResourceClaim, _>("gpu", &patch).await.map(drop)
}

/// Whether people are told this of the Pod.
async fn says(cluster: &Cluster, text: &str) -> Result<bool> {
    Ok(told(cluster, "Pod").await?.iter().any(|line| line.contains(text)))
}

/// How often it ended so that a Pod waited for its device.
async fn waited(cluster: &Cluster, status: &str) -> Result<Option<f64>> {
    let labels =
        format!("profile=\"default-scheduler\",driver=\"gpu.example.com\",status={status:?}");
    let took = format!("scheduler_dra_bindingconditions_wait_duration_seconds_count{{{labels}}}");
    let count = format!("scheduler_dra_bindingconditions_allocations_total{{{labels}}}");
    let count = counted(cluster, &count).await?;
    assert_eq!(counted(cluster, &took).await?, count);
    Ok(count)
}

#[steersman::test(nodes = 2)]
async fn a_pod_is_bound_when_its_device_is_attached(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    prepare(&cluster).await?;
    cluster.eventually("gpu", is_allocated).await?;
    cluster.advance(Duration::from_secs(300)).await;
    let web: Pod = client.get("web").await?.unwrap();
    assert_eq!(node_of(&web), None);
    let node = web.status.and_then(|status| status.nominated_node_name).expect("it has a place");
    let gpu: ResourceClaim = client.get("gpu").await?.unwrap();
    let allocation = gpu.status.and_then(|status| status.allocation).unwrap();
    let selector = serde_json::to_value(&allocation.node_selector).unwrap();
    let field = &selector["nodeSelectorTerms"][0]["matchFields"][0];
    assert_eq!(field["values"], json!([node]), "it is attached to that node");
    let result = allocation.devices.unwrap().results.unwrap().remove(0);
    assert_eq!(result.binding_conditions.unwrap(), ["attached"]);
    assert_eq!(result.binding_failure_conditions.unwrap(), ["lost"]);
    let waits = format!(
        "default-scheduler Normal BindingConditionsPending: waiting for binding conditions for \
         device on node {node}"
    );
    assert!(says(&cluster, &waits).await?);

    say(&cluster, "attached").await?;
    cluster.eventually("web", is_ready).await?;
    assert_eq!(node_of(&client.get("web").await?.unwrap()), Some(&*node));
    assert_eq!(waited(&cluster, "success").await?, Some(1.0));
    Ok(())
}

#[steersman::test(nodes = 2)]
async fn a_claim_whose_device_cannot_be_attached_is_given_up_and_tried_again(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client();
    prepare(&cluster).await?;
    cluster.eventually("gpu", is_allocated).await?;
    let first = since(&client.get("gpu").await?.unwrap());
    cluster.advance(Duration::from_secs(2)).await;
    say(&cluster, "lost").await?;
    let is_new = |claim: &ResourceClaim| is_allocated(claim) && since(claim) != first;
    cluster.eventually("gpu", is_new).await?;
    let failed = "running PreBind plugin \"DynamicResources\": device binding failed: claim=gpu, \
                  reason=Link, message=\"link down\"";
    assert!(says(&cluster, failed).await?);
    let gpu: ResourceClaim = client.get("gpu").await?.unwrap();
    assert_eq!(gpu.status.unwrap().devices, None, "what was said goes with the device");
    assert_eq!(node_of(&client.get("web").await?.unwrap()), None);
    say(&cluster, "attached").await?;
    cluster.eventually("web", is_ready).await?;
    let ends = (waited(&cluster, "failure").await?, waited(&cluster, "success").await?);
    assert_eq!(ends, (Some(1.0), Some(1.0)));
    Ok(())
}

#[steersman::test(nodes = 2)]
async fn a_device_that_is_not_attached_in_time_is_given_up(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    prepare(&cluster).await?;
    cluster.eventually("gpu", is_allocated).await?;
    let first = since(&client.get("gpu").await?.unwrap());
    cluster.advance(Duration::from_secs(590)).await;
    assert_eq!(since(&client.get("gpu").await?.unwrap()), first);
    cluster.advance(Duration::from_secs(60)).await;
    let again = since(&client.get("gpu").await?.unwrap());
    assert!(again.is_some() && again != first, "{first:?} {again:?}");
    assert!(says(&cluster, "device binding timeout: ").await?);
    assert_eq!(waited(&cluster, "timeout").await?, Some(1.0));
    say(&cluster, "attached").await?;
    cluster.eventually("web", is_ready).await
}
