//! Devices of which several Pods have a share.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceRequestAllocationResult, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use steersman::Result;
use steersman_testkit::Cluster;

use crate::devices::{node_of, unscheduled, user};
use crate::objects::{all, is_ready, object};

/// A card of 40Gi on a node, given out in gibibytes.
fn card(node: &str) -> ResourceSlice {
    let policy = json!({"default": "10Gi", "validRange": {"min": "1Gi", "step": "1Gi"}});
    let capacity = json!({"memory": {"value": "40Gi", "requestPolicy": policy}});
    object(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node},
        "spec": {"driver": "gpu.example.com", "nodeName": node,
                 "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                 "devices": [{"name": "card", "allowMultipleAllocations": true,
                              "capacity": capacity}]},
    }))
}

/// Claims for this much memory.
fn template(memory: &str) -> ResourceClaimTemplate {
    let capacity = json!({"requests": {"memory": memory}});
    let exactly = json!({"deviceClassName": "gpu", "capacity": capacity});
    let requests = json!([{"name": "gpu", "exactly": exactly}]);
    object(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": memory.to_lowercase(), "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }))
}

fn wants(name: &str, memory: &str) -> Pod {
    let template = memory.to_lowercase();
    user(name, &json!([{"name": "gpu", "resourceClaimTemplateName": template}]))
}

fn results(claim: &ResourceClaim) -> Vec<DeviceRequestAllocationResult> {
    let allocation = claim.status.as_ref().and_then(|status| status.allocation.as_ref());
    let results = allocation.and_then(|it| it.devices.as_ref()).and_then(|it| it.results.clone());
    results.unwrap_or_default()
}

#[steersman::test]
async fn pods_share_a_device_until_there_is_too_little_of_it(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    let class: DeviceClass = object(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": "device.allowMultipleAllocations"}}]},
    }));
    client.create(&class).await?;
    client.create(&card("node-1")).await?;
    for memory in ["20Gi", "9.5Gi"] {
        client.create(&template(memory)).await?;
    }
    for (name, memory) in [("a", "20Gi"), ("b", "9.5Gi"), ("c", "9.5Gi")] {
        client.create(&wants(name, memory)).await?;
        cluster.eventually(name, is_ready).await?;
        assert_eq!(node_of(&client.get(name).await?.unwrap()), Some("node-1"));
    }
    let claims: Vec<ResourceClaim> = all(&cluster).await?;
    let results: Vec<_> = claims.iter().flat_map(results).collect();
    let memory = |result: &DeviceRequestAllocationResult| {
        result.consumed_capacity.as_ref().map(|it| it["memory"].0.clone()).unwrap_or_default()
    };
    let mut given: Vec<String> = results.iter().map(memory).collect();
    given.sort();
    assert_eq!(given, ["10Gi", "10Gi", "20Gi"]);
    let mut shares: Vec<&Option<String>> = results.iter().map(|it| &it.share_id).collect();
    shares.sort();
    shares.dedup();
    assert!(shares.len() == 3 && shares.iter().all(|share| share.is_some()), "{shares:?}");

    client.create(&wants("d", "9.5Gi")).await?;
    let waits = |pod: &Pod| unscheduled(pod).is_some_and(|why| why.contains("cannot allocate all"));
    cluster.eventually("d", waits).await?;
    client.delete::<Pod>("b", &DeleteParams::default()).await?;
    cluster.eventually("d", is_ready).await?;
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn what_is_said_of_shared_devices_is_kept_and_checked(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    client.create(&card("node-0")).await?;
    let kept: ResourceSlice = client.get("node-0").await?.unwrap();
    let device = serde_json::to_value(&kept.spec.devices.unwrap()[0]).unwrap();
    let policy = json!({"default": "10Gi", "validRange": {"min": "1Gi", "step": "1Gi"}});
    let expected: Value = json!({
        "name": "card", "allowMultipleAllocations": true,
        "capacity": {"memory": {"value": "40Gi", "requestPolicy": policy}},
    });
    assert_eq!(device, expected);
    let mut wrong = card("other");
    wrong.spec.devices.as_mut().unwrap()[0].allow_multiple_allocations = None;
    let why = client.create(&wrong).await.unwrap_err().to_string();
    assert!(why.contains("allowMultipleAllocations must be true"), "{why}");
    Ok(())
}
