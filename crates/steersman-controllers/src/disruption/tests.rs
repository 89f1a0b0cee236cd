use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Value, json};

use super::covered::{Stale, spared, stale};
use super::plan::{self, Expected};

fn now() -> Timestamp {
    "2030-01-01T12:00:00Z".parse().unwrap()
}

fn budget(spec: &Value, status: &Value) -> PodDisruptionBudget {
    let budget = json!({
        "metadata": {"name": "web", "namespace": "default", "generation": 3},
        "spec": spec, "status": status,
    });
    serde_json::from_value(budget).unwrap()
}

fn pod(name: &str, ready: bool, leaving: bool) -> Arc<Pod> {
    let pod = json!({
        "metadata": {"name": name, "namespace": "default",
                     "deletionTimestamp": leaving.then_some("2030-01-01T12:00:00Z")},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": if ready { "True" } else { "False" }}]},
    });
    Arc::new(serde_json::from_value(pod).unwrap())
}

#[test]
fn how_many_must_stay_is_a_number_or_a_part_rounded_up() {
    let cases = [
        (json!({"minAvailable": 2}), false, (5, 2)),
        (json!({"minAvailable": "50%"}), true, (7, 4)),
        (json!({"maxUnavailable": 1}), true, (7, 6)),
        (json!({"maxUnavailable": "30%"}), true, (7, 4)),
        (json!({"maxUnavailable": 9}), true, (7, 0)),
        (json!({}), false, (0, 0)),
    ];
    for (spec, asks, (pods, healthy)) in cases {
        let budget = budget(&spec, &json!({}));
        assert_eq!(plan::needs_scale(&budget), asks, "{spec}");
        assert_eq!(plan::expected(&budget, 7, 5), Expected { pods, healthy }, "{spec}");
    }
}

#[test]
fn as_many_may_go_as_are_healthy_beyond_what_must_stay() {
    let pods = [
        pod("a", true, false),
        pod("b", true, false),
        pod("c", false, false),
        pod("d", true, true),
    ];
    let report = |healthy: i32| {
        let expected = Expected { pods: 4, healthy };
        plan::report(&budget(&json!({}), &json!({})), &pods, expected, now()).status
    };
    let status = report(1);
    assert_eq!((status.current_healthy, status.disruptions_allowed), (Some(2), Some(1)));
    assert_eq!((status.expected_pods, status.observed_generation), (Some(4), Some(3)));
    let condition = &status.conditions.unwrap()[0];
    assert_eq!(condition.type_, "DisruptionAllowed");
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", "SufficientPods"));
    let status = report(3);
    assert_eq!(status.disruptions_allowed, Some(0));
    let condition = &status.conditions.unwrap()[0];
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str()),
        ("False", "InsufficientPods")
    );
    assert_eq!((condition.message.as_str(), condition.observed_generation), ("", Some(3)));
    let none = Expected { pods: 0, healthy: 0 };
    let status = plan::report(&budget(&json!({}), &json!({})), &pods, none, now()).status;
    assert_eq!(status.disruptions_allowed, Some(0), "nobody expects them");
}

#[test]
fn a_pod_whose_eviction_was_granted_does_not_count_for_two_minutes() {
    let pods = [pod("a", true, false), pod("b", true, false), pod("c", true, true)];
    let granted = |at: &str| {
        let status = json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0,
                            "expectedPods": 0, "disruptedPods": {"a": at, "c": at, "gone": at}});
        plan::report(&budget(&json!({}), &status), &pods, Expected { pods: 3, healthy: 1 }, now())
    };
    let fresh = granted("2030-01-01T11:59:00Z");
    assert_eq!(
        (fresh.status.current_healthy, fresh.status.disruptions_allowed),
        (Some(1), Some(0))
    );
    assert_eq!(fresh.status.disrupted_pods.unwrap().into_keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(fresh.recheck_in, Some(Duration::from_secs(60)));
    assert!(fresh.not_deleted.is_empty());
    for late in ["2030-01-01T11:57:00Z", "2030-01-01T11:58:00Z"] {
        let late = granted(late);
        assert_eq!((late.status.current_healthy, late.status.disrupted_pods), (Some(2), None));
        assert_eq!((late.not_deleted.len(), late.recheck_in), (1, None));
    }
}

#[test]
fn a_budget_that_cannot_be_computed_allows_nothing() {
    let status = json!({"disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1,
                        "expectedPods": 3, "observedGeneration": 2});
    let status = plan::failed(&budget(&json!({}), &status), "found no controllers for pod \"a\"");
    assert_eq!((status.disruptions_allowed, status.current_healthy), (Some(0), Some(3)));
    let condition = &status.conditions.unwrap()[0];
    assert_eq!((condition.reason.as_str(), condition.observed_generation), ("SyncFailed", Some(2)));
    assert_eq!(condition.message, "found no controllers for pod \"a\"");
}

#[test]
fn a_pod_that_was_to_go_and_stays_is_spared_after_two_minutes() {
    let with = |condition: Value, changes: &Value| -> Pod {
        let mut pod = json!({
            "metadata": {"name": "a", "generation": 2},
            "status": {"phase": "Running", "conditions": [condition]},
        });
        for (pointer, value) in changes.as_object().into_iter().flatten() {
            *pod.pointer_mut(pointer).unwrap() = value.clone();
        }
        serde_json::from_value(pod).unwrap()
    };
    let target = |since: &str, status: &str, reason: &str| {
        json!({"type": "DisruptionTarget", "status": status, "reason": reason, "message": "why",
               "lastTransitionTime": since})
    };
    let evicted = |since: &str| target(since, "True", "EvictionByEvictionAPI");
    let (fresh, old) = ("2030-01-01T11:59:30Z", "2030-01-01T11:58:00Z");
    let left = Some(Stale::In(Duration::from_secs(90)));
    assert_eq!(stale(&with(evicted(fresh), &json!({})), now()), left);
    assert_eq!(stale(&with(evicted(old), &json!({})), now()), Some(Stale::Now));
    let others = [
        with(target(old, "False", ""), &json!({})),
        with(target(old, "True", "TerminationByKubelet"), &json!({})),
        with(evicted(old), &json!({"/status/phase": "Failed"})),
        with(evicted(old), &json!({"/metadata": {"deletionTimestamp": old}})),
        with(json!({"type": "Ready", "status": "True"}), &json!({})),
    ];
    for pod in others {
        assert_eq!(stale(&pod, now()), None, "{pod:?}");
    }
    let spared = spared(&with(evicted(old), &json!({})), now());
    let told = json!(spared.status.unwrap().conditions.unwrap()[0]);
    let expected = json!({"type": "DisruptionTarget", "status": "False", "observedGeneration": 2,
                          "lastTransitionTime": "2030-01-01T12:00:00Z"});
    assert_eq!(told, expected);
}
