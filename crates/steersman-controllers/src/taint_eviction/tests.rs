use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Taint, Toleration};
use serde_json::{Value, json};

use super::plan::{Decision, Scheduled, decide};

fn at(seconds: i64) -> Timestamp {
    let noon: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
    noon + SignedDuration::from_secs(seconds)
}

fn decided(taints: &[&str], tolerations: &Value, scheduled: Option<i64>, now: i64) -> Decision {
    let taint =
        |key: &&str| Taint { key: (*key).into(), effect: "NoExecute".into(), ..Taint::default() };
    let taints: Vec<Taint> = taints.iter().map(taint).collect();
    let tolerations: Vec<Toleration> = serde_json::from_value(tolerations.clone()).unwrap();
    decide(&taints, &tolerations, scheduled.map(|s| Scheduled { at: at(s) }), at(now))
}

#[test]
fn a_pod_goes_when_the_shortest_of_its_tolerations_is_over() {
    let all = json!([{"operator": "Exists"}]);
    let for_a = |seconds: Option<i64>| {
        json!([{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds},
               {"key": "b", "operator": "Exists", "tolerationSeconds": 20}])
    };
    for (taints, tolerations, expected) in [
        (&[][..], json!([]), Decision::Stay),
        (&["a"], json!([]), Decision::Now),
        (&["a"], all, Decision::Stay),
        (&["a"], for_a(None), Decision::Stay),
        (&["a"], for_a(Some(300)), Decision::At(at(300))),
        (&["a", "b"], for_a(Some(300)), Decision::At(at(20))),
        (&["a", "b"], for_a(None), Decision::At(at(20))),
        (&["a", "c"], for_a(None), Decision::Now),
        (&["a"], for_a(Some(0)), Decision::Now),
        (&["a"], for_a(Some(-5)), Decision::Now),
    ] {
        assert_eq!(decided(taints, &tolerations, None, 0), expected, "{taints:?} {tolerations}");
    }
}

#[test]
fn what_was_decided_stays_so_until_the_pod_may_stay() {
    let for_a = json!([{"key": "a", "operator": "Exists", "tolerationSeconds": 300}]);
    let for_ever = json!([{"key": "a", "operator": "Exists"}]);
    for (taints, tolerations, now, expected) in [
        (&["a"][..], &for_a, 100, Decision::At(at(200))),
        (&["a"], &for_a, 200, Decision::Now),
        (&[], &for_a, 100, Decision::Cancel),
        (&["a"], &for_ever, 100, Decision::Cancel),
        (&["a", "b"], &for_a, 100, Decision::Instead),
    ] {
        let found = decided(taints, tolerations, Some(200), now);
        assert_eq!(found, expected, "{taints:?} {tolerations} {now}");
    }
}
