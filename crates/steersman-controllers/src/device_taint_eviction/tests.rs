//! When Pods have to go.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use serde_json::{Value, json};

use super::plan::{Around, due};

const TAINTED: &str = "2030-01-01T00:00:00Z";

fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// A slice of the pool `pool` with the devices `a`, which has these taints, and `b`.
fn slice(name: &str, generation: i64, taints: &Value) -> Arc<ResourceSlice> {
    Arc::new(object(json!({
        "metadata": {"name": name},
        "spec": {"driver": "gpu.example.com", "nodeName": "n",
                 "pool": {"name": "pool", "generation": generation, "resourceSliceCount": 1},
                 "devices": [{"name": "a", "taints": taints}, {"name": "b"}]},
    })))
}

fn taint(effect: &str) -> Value {
    json!([{"key": "broken", "value": "yes", "effect": effect, "timeAdded": TAINTED}])
}

/// A claim with a device that tolerates this, reserved for the Pod with the uid `p`.
fn claim(device: &str, tolerations: &Value) -> ResourceClaim {
    let result = json!({"request": "gpu", "driver": "gpu.example.com", "pool": "pool",
                        "device": device, "tolerations": tolerations});
    object(json!({
        "metadata": {"name": "gpu", "namespace": "default"}, "spec": {},
        "status": {"allocation": {"devices": {"results": [result]}},
                   "reservedFor": [{"resource": "pods", "name": "web", "uid": "p"}]},
    }))
}

fn pod() -> Pod {
    object(json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "p"},
        "spec": {"containers": [], "nodeName": "n",
                 "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]},
    }))
}

/// After how many seconds of the taint a Pod has to go.
fn after(pod: &Pod, claim: &ResourceClaim, slices: &[Arc<ResourceSlice>]) -> Option<i64> {
    let claim = Arc::new(claim.clone());
    let find = |name: &str| (name == "gpu").then(|| Arc::clone(&claim));
    let since: jiff::Timestamp = TAINTED.parse().unwrap();
    Some(due(pod, &Around { claim: &find, slices })?.duration_since(since).as_secs())
}

#[test]
fn a_pod_goes_when_its_device_is_tainted_for_longer_than_it_tolerates() {
    let tainted = [slice("s", 1, &taint("NoExecute"))];
    for (tolerations, expected) in [
        (json!(null), Some(0)),
        (json!([{"key": "other", "operator": "Exists", "effect": "NoExecute"}]), Some(0)),
        (json!([{"key": "broken", "operator": "Exists", "effect": "NoSchedule"}]), Some(0)),
        (json!([{"key": "broken", "value": "no", "effect": "NoExecute"}]), Some(0)),
        // Without an effect it lets a claim be allocated, and no more.
        (json!([{"key": "broken", "operator": "Exists"}]), Some(0)),
        (json!([{"key": "broken", "value": "yes", "effect": "NoExecute"}]), None),
        (json!([{"operator": "Exists", "effect": "NoExecute"}]), None),
        (
            json!([{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
                   {"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}]),
            Some(30),
        ),
        (json!([{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -5}]), Some(0)),
    ] {
        assert_eq!(after(&pod(), &claim("a", &tolerations), &tainted), expected, "{tolerations}");
    }
    assert_eq!(after(&pod(), &claim("b", &json!(null)), &tainted), None, "another device");
    for effect in ["NoSchedule", "None"] {
        let slices = [slice("s", 1, &taint(effect))];
        assert_eq!(after(&pod(), &claim("a", &json!(null)), &slices), None, "{effect}");
    }
}

#[test]
fn only_the_newest_slices_of_a_pool_count() {
    let claim = claim("a", &json!(null));
    let (old, new) = (slice("old", 1, &taint("NoExecute")), slice("new", 2, &json!([])));
    assert_eq!(after(&pod(), &claim, &[Arc::clone(&old)]), Some(0));
    assert_eq!(after(&pod(), &claim, &[old, new]), None);
}

#[test]
fn who_does_not_run_or_may_not_use_a_claim_stays() {
    let slices = [slice("s", 1, &taint("NoExecute"))];
    let used = claim("a", &json!(null));
    let mut waiting = pod();
    waiting.spec.as_mut().unwrap().node_name = None;
    assert_eq!(after(&waiting, &used, &slices), None);
    let mut replaced = pod();
    replaced.metadata.uid = Some("q".into());
    assert_eq!(after(&replaced, &used, &slices), None);
    // A claim from a template must be the one that was made for the Pod.
    let mut generated: Pod = pod();
    let spec = generated.spec.as_mut().unwrap();
    spec.resource_claims = object(json!([{"name": "gpu", "resourceClaimTemplateName": "t"}]));
    generated.status =
        object(json!({"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "gpu"}]}));
    assert_eq!(after(&generated, &used, &slices), None);
    let mut own = used;
    own.metadata.owner_references = object(json!([
        {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "p", "controller": true}]));
    assert_eq!(after(&generated, &own, &slices), Some(0));
}
