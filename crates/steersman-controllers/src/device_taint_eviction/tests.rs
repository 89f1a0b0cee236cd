//! When Pods have to go.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1beta2::DeviceTaintRule;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::plan::{Around, Eviction, eviction};
use super::rule_status::{Census, condition, may_write_at};

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
    let around = Around { claim: &find, slices, rules: &[] };
    Some(seconds(&eviction(pod, &around)?))
}

/// How long after the taints of these tests an eviction is.
fn seconds(eviction: &Eviction) -> i64 {
    let since: jiff::Timestamp = TAINTED.parse().unwrap();
    eviction.at.duration_since(since).as_secs()
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

/// A rule for these devices, so many seconds after the taints of slices.
fn rule(name: &str, selector: &Value, effect: &str, later: i64) -> Arc<DeviceTaintRule> {
    let since: jiff::Timestamp = TAINTED.parse().unwrap();
    let since = since + jiff::SignedDuration::from_secs(later);
    Arc::new(object(json!({
        "metadata": {"name": name, "generation": 2},
        "spec": {"deviceSelector": selector,
                 "taint": {"key": "broken", "effect": effect, "timeAdded": since.to_string()}},
    })))
}

#[test]
fn a_rule_taints_the_devices_that_it_selects() {
    let claim = Arc::new(claim("a", &json!(null)));
    let find = |_: &str| Some(Arc::clone(&claim));
    let goes = |rules: &[Arc<DeviceTaintRule>], slices: &[Arc<ResourceSlice>]| {
        let eviction = eviction(&pod(), &Around { claim: &find, slices, rules })?;
        let rules = eviction.rules.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        Some((seconds(&eviction), rules))
    };
    for (selector, expected) in [
        (json!(null), false),
        (json!({}), true),
        (json!({"driver": "gpu.example.com"}), true),
        (json!({"driver": "gpu.example.com", "pool": "pool", "device": "a"}), true),
        (json!({"driver": "other.example.com"}), false),
        (json!({"pool": "pool", "device": "b"}), false),
    ] {
        let rules = [rule("r", &selector, "NoExecute", 5)];
        let expected = expected.then(|| (5, "r".to_owned()));
        // Whether the driver still tells of the device is not asked.
        assert_eq!(goes(&rules, &[]), expected, "{selector}");
    }
    let all = json!({});
    for effect in ["NoSchedule", "None"] {
        assert_eq!(goes(&[rule("r", &all, effect, 0)], &[]), None, "{effect}");
    }
    let both = [rule("b", &all, "NoExecute", 9), rule("a", &all, "NoExecute", 7)];
    assert_eq!(goes(&both, &[]), Some((7, "a,b".to_owned())));
    let tainted = [slice("s", 1, &taint("NoExecute"))];
    assert_eq!(
        goes(&both, &tainted),
        Some((0, "a,b".to_owned())),
        "the device itself says it first"
    );
}

#[test]
fn the_status_of_a_rule_says_how_far_it_is() {
    let now = Time(TAINTED.parse().unwrap());
    let told = |effect: &str, census: Census| {
        let rule = rule("r", &json!({}), effect, 0);
        let told = condition(&rule, census, &now).expect("it says nothing yet");
        assert_eq!((&*told.type_, told.observed_generation), ("EvictionInProgress", Some(2)));
        format!("{} {}: {}", told.status, told.reason, told.message)
    };
    let none = Census::default();
    assert_eq!(told("NoExecute", none), "False NotStarted: ");
    assert_eq!(
        told("NoExecute", Census { pods: 1, namespaces: 1, ..none }),
        "True PodsPendingEviction: 1 pod needs to be evicted in 1 namespace."
    );
    assert_eq!(
        told("NoExecute", Census { pods: 3, namespaces: 2, evicted: 1, ..none }),
        "True PodsPendingEviction: 3 pods need to be evicted in 2 different namespaces. 1 pod evicted \
         since starting the controller."
    );
    assert_eq!(
        told("NoExecute", Census { evicted: 4, ..none }),
        "False Completed: 4 pods evicted since starting the controller."
    );
    assert_eq!(
        told("NoSchedule", none),
        "False OtherEffect: Eviction only happens for the NoExecute effect."
    );
    assert_eq!(
        told("None", Census { devices: 2, allocated: 1, pods: 1, namespaces: 1, ..none }),
        "False NoEffect: 2 published devices selected. 1 allocated device selected. 1 pod would be \
         evicted in 1 namespace if the effect was NoExecute. This information will not be updated \
         again. Recreate the DeviceTaintRule to trigger an update."
    );
}

#[test]
fn what_a_rule_says_already_is_not_written_again_nor_too_often() {
    let now: jiff::Timestamp = TAINTED.parse().unwrap();
    let fresh = rule("r", &json!({}), "NoExecute", 0);
    assert_eq!(may_write_at(&fresh), None, "it says nothing yet");
    let first = condition(&fresh, Census::default(), &Time(now)).unwrap();
    let mut told = DeviceTaintRule::clone(&fresh);
    told.status = object(json!({"conditions": [first]}));
    let later = Time(now + jiff::SignedDuration::from_secs(60));
    assert_eq!(condition(&told, Census::default(), &later), None);
    assert!(condition(&told, Census { evicted: 1, ..Census::default() }, &later).is_some());
    assert_eq!(may_write_at(&told).unwrap().duration_since(now).as_secs(), 10);
    told.metadata.generation = Some(3);
    assert_eq!(may_write_at(&told), None, "it says something else now");
}
