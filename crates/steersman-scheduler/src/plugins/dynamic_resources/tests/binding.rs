//! Devices that have to be attached first.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{Value, json};
use steersman::clock;

use super::super::conditions::{are_met, has_any, is_late};
use super::{Case, device, exactly, one, slice, user};
use crate::testing::{World, node, nowhere, object, on};

const MINUTES: Duration = Duration::from_secs(600);

/// A device that has to be attached.
fn remote(name: &str) -> Value {
    let mut device = device(name, "small", 0);
    device["bindingConditions"] = json!(["attached"]);
    device["bindingFailureConditions"] = json!(["lost"]);
    device["bindsToNode"] = true.into();
    device
}

/// A claim that has the device `a`, of which its driver says this.
fn given(told: &Value) -> ResourceClaim {
    let result = json!({
        "request": "r", "driver": "gpu.example.com", "pool": "p", "device": "a",
        "bindingConditions": ["attached"], "bindingFailureConditions": ["lost"],
    });
    let device = json!({"driver": "gpu.example.com", "pool": "p", "device": "a",
                        "conditions": told});
    let allocation = json!({"devices": {"results": [result]},
                            "allocationTimestamp": clock::now_time()});
    object(json!({
        "metadata": {"namespace": "default", "name": "c", "uid": "c"}, "spec": {},
        "status": {"allocation": allocation, "devices": [device]},
    }))
}

fn condition(type_: &str, status: &str) -> Value {
    json!({"type": type_, "status": status, "reason": "Link", "message": "so \"it\" is",
           "lastTransitionTime": "2030-01-01T00:00:00Z"})
}

#[test]
fn devices_that_are_there_are_taken_before_those_that_have_to_be_attached() {
    let pool = |name: &str, devices: Value| {
        let pool = json!({"name": name, "generation": 1, "resourceSliceCount": 1});
        slice(name, &devices, &json!({"pool": pool, "nodeName": null, "allNodes": true}))
    };
    let far = pool("a", json!([remote("far")]));
    let near = pool("b", json!([device("near", "small", 0)]));
    let claim = one(&exactly("r", &json!({"deviceClassName": "small"})));
    let case = Case::new(vec![Arc::clone(&far), near]);
    let claims = [claim.clone(), claim.clone()];
    assert_eq!(case.devices(&claims).as_deref(), Some("r=near r=far"));

    let found = Case::new(vec![far]).allocate(&[claim]).unwrap().unwrap().remove(0);
    let result = found.devices.unwrap().results.unwrap().remove(0);
    assert_eq!(result.binding_conditions.unwrap(), ["attached"]);
    assert_eq!(result.binding_failure_conditions.unwrap(), ["lost"]);
    let term = &found.node_selector.unwrap().node_selector_terms[0];
    let field = &term.match_fields.as_ref().unwrap()[0];
    assert_eq!(field.values.as_ref().unwrap(), &["n"], "it is attached to that node");
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_ready_when_its_driver_says_so_of_its_devices() {
    let failed = "device binding failed: claim=c, reason=Link, message=\"so \\\"it\\\" is\"";
    for (told, expected) in [
        (json!([]), Ok(false)),
        (json!([condition("attached", "False")]), Ok(false)),
        (json!([condition("attached", "True")]), Ok(true)),
        (json!([condition("attached", "True"), condition("lost", "False")]), Ok(true)),
        (json!([condition("attached", "True"), condition("lost", "True")]), Err(failed.into())),
    ] {
        assert_eq!(are_met(&given(&told)), expected, "{told}");
    }
    let mut claim = given(&json!([condition("attached", "True")]));
    claim.status.as_mut().unwrap().devices = None;
    assert!(has_any(&claim) && are_met(&claim) == Ok(false), "nobody has said anything");
    tokio::time::advance(MINUTES).await;
    assert!(!is_late(&claim, MINUTES, &clock::now_time()));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(is_late(&claim, MINUTES, &clock::now_time()));
    claim.status.as_mut().unwrap().allocation = None;
    assert!(!has_any(&claim) && are_met(&claim) == Ok(false));
    assert!(!is_late(&claim, MINUTES, &clock::now_time()));
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_no_good_anywhere_when_its_devices_are_lost_or_late() {
    let place = |claim: ResourceClaim| {
        let mut world = World::of([node("n", &json!({}))]);
        world.objects.resource_claims.push(Arc::new(claim));
        world.place(&user("c"))
    };
    let no_good = "0/1 nodes are available: 1 resourceclaim not available on the node.";
    assert_eq!(place(given(&json!([]))), on("n"));
    assert_eq!(place(given(&json!([condition("lost", "True")]))), nowhere(no_good));
    let (waits, ready) = (given(&json!([])), given(&json!([condition("attached", "True")])));
    tokio::time::advance(MINUTES + Duration::from_secs(1)).await;
    assert_eq!(place(waits), nowhere(no_good));
    assert_eq!(place(ready), on("n"));
}
