use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::json;

use super::conditions::Pass;
use super::plan::{self, Leftover};
use crate::discovery::test_resource;

fn terminating() -> Namespace {
    let namespace = json!({
        "metadata": {"name": "team", "deletionTimestamp": "2030-01-01T12:00:00Z"},
        "spec": {"finalizers": ["kubernetes", "example.com/audit"]},
    });
    serde_json::from_value(namespace).unwrap()
}

#[test]
fn only_this_controllers_finalizer_is_removed() {
    let namespace = terminating();
    assert!(plan::is_held(&namespace));
    let released = plan::released(&namespace);
    assert!(!plan::is_held(&released));
    assert_eq!(released.spec.unwrap().finalizers.unwrap(), ["example.com/audit"]);
}

#[test]
fn the_longer_a_namespace_takes_the_rarer_it_is_looked_at() {
    let start: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
    let after = |seconds| plan::look_again(&terminating(), start + Duration::from_secs(seconds));
    assert_eq!(after(0), Duration::from_millis(50));
    assert_eq!(after(60), Duration::from_secs(6));
    assert_eq!(after(3600), Duration::from_secs(15));
}

fn pods(pods: &[(i64, &str)]) -> Vec<Pod> {
    let pod = |(grace, phase): &(i64, &str)| {
        let pod = json!({
            "metadata": {"name": "p"},
            "spec": {"containers": [], "terminationGracePeriodSeconds": grace},
            "status": {"phase": phase},
        });
        serde_json::from_value(pod).unwrap()
    };
    pods.iter().map(pod).collect()
}

#[test]
fn pods_are_expected_to_take_their_longest_grace_period() {
    let start: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
    for (given, after, expected) in [
        (vec![], 0, false),
        (vec![(30, "Running")], 29, true),
        (vec![(30, "Running")], 30, false),
        (vec![(30, "Running"), (60, "Pending")], 59, true),
        (vec![(1, "Running"), (600, "Succeeded")], 5, false),
    ] {
        let now = start + Duration::from_secs(after);
        let found = plan::end_is_expected(&pods(&given), start, now);
        assert_eq!(found, expected, "{given:?} after {after} s");
    }
}

/// Objects of which each has these finalizers.
fn objects(finalizers: &[&[&str]]) -> Vec<ObjectMeta> {
    let object = |finalizers: &&[&str]| ObjectMeta {
        finalizers: Some(finalizers.iter().map(|&name| name.to_owned()).collect()),
        ..ObjectMeta::default()
    };
    finalizers.iter().map(object).collect()
}

/// What a pass tells when of each resource these objects are left.
fn told(left: &[(&str, &str, &[&[&str]], bool)]) -> Vec<(String, String)> {
    let mut pass = Pass::default();
    for (version, plural, finalizers, expected) in left {
        let resource = test_resource(version, "Some", plural);
        if let Some(left) = Leftover::of(&objects(finalizers), *expected) {
            pass.note(&resource, "team", left);
        }
    }
    assert_eq!(pass.is_complete(), left.is_empty());
    bad(&pass)
}

/// Reason and message of the conditions that are true.
fn bad(pass: &Pass) -> Vec<(String, String)> {
    let conditions = pass.conditions(None, &time("2030-01-01T12:00:00Z")).unwrap();
    assert_eq!(conditions.len(), 5);
    let bad = conditions.into_iter().filter(|condition| condition.status == "True");
    bad.map(|condition| (condition.reason.unwrap(), condition.message.unwrap())).collect()
}

fn time(text: &str) -> Time {
    Time(text.parse().unwrap())
}

#[test]
fn conditions_say_what_is_left_and_who_holds_it() {
    let some = |words: &[(&str, &str)]| -> Vec<(String, String)> {
        words.iter().map(|(reason, text)| ((*reason).into(), (*text).into())).collect()
    };
    assert_eq!(told(&[]), some(&[]));
    assert_eq!(
        told(&[("v1", "pods", &[&[]], true)]),
        some(&[(
            "SomeResourcesRemain",
            "Some resources are remaining: pods. has 1 resource instances"
        )])
    );
    assert_eq!(
        told(&[("v1", "pods", &[&[], &[]], false)]),
        some(&[
            (
                "ContentDeletionFailed",
                "Failed to delete all resource types, 1 remaining: unexpected items still remain \
                 in namespace: team for gvr: /v1, Resource=pods"
            ),
            ("SomeResourcesRemain", "Some resources are remaining: pods. has 2 resource instances"),
        ])
    );
    assert_eq!(
        told(&[
            ("v1", "configmaps", &[&["x"], &["x", "b.com/y"]], false),
            ("apps/v1", "deployments", &[&["x"]], false),
        ]),
        some(&[
            (
                "SomeResourcesRemain",
                "Some resources are remaining: configmaps. has 2 resource instances, \
                 deployments.apps has 1 resource instances"
            ),
            (
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: b.com/y in 1 resource \
                 instances, x in 3 resource instances"
            ),
        ])
    );
}

#[test]
fn pods_that_are_in_the_way_are_not_told_of_unless_they_should_be_gone() {
    let mut pass = Pass::default();
    let pods = test_resource("v1", "Pod", "pods");
    pass.note(&pods, "team", Leftover::of(&objects(&[&["x"]]), true).unwrap());
    assert_eq!(bad(&pass).len(), 2);
    pass.waits_for_pods = true;
    assert!(bad(&pass).is_empty() && !pass.is_complete());
    pass.note(&pods, "team", Leftover::of(&objects(&[&[]]), false).unwrap());
    let told: Vec<String> = bad(&pass).into_iter().map(|(reason, _)| reason).collect();
    assert_eq!(told, ["ContentDeletionFailed"]);
}

#[test]
fn conditions_say_what_failed() {
    let pass = Pass {
        undiscovered: [("b.com/v1".into(), "down".into()), ("a.com/v2".into(), "gone".into())]
            .into(),
        failures: vec!["z is forbidden".into(), "a timed out".into()],
        ..Pass::default()
    };
    assert!(!pass.is_complete());
    let told: Vec<String> = bad(&pass).into_iter().map(|(_, message)| message).collect();
    assert_eq!(
        told,
        [
            "Discovery failed for some groups, 2 failing: unable to retrieve the complete list of \
             server APIs: a.com/v2: gone, b.com/v1: down",
            "Failed to delete all resource types, 2 remaining: a timed out, z is forbidden",
        ]
    );
}

#[test]
fn all_is_well_in_the_words_of_kubernetes() {
    let well = Pass::default().conditions(None, &time("2030-01-01T12:00:00Z")).unwrap();
    let words: Vec<String> = well
        .into_iter()
        .map(|c| format!("{} {} {}: {}", c.type_, c.status, c.reason.unwrap(), c.message.unwrap()))
        .collect();
    assert_eq!(
        words,
        [
            "NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources \
             successfully discovered",
            "NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy \
             kube types successfully parsed",
            "NamespaceDeletionContentFailure False ContentDeleted: All content successfully \
             deleted, may be waiting on finalization",
            "NamespaceContentRemaining False ContentRemoved: All content successfully removed",
            "NamespaceFinalizersRemaining False ContentHasNoFinalizers: All content-preserving \
             finalizers finished",
        ]
    );
}

#[test]
fn a_condition_keeps_its_time_and_its_place_while_its_status_stays() {
    let (then, now) = (time("2030-01-01T12:00:00Z"), time("2030-01-01T12:05:00Z"));
    let mut pass = Pass::default();
    pass.remaining.insert("pods.".into(), 3);
    let foreign = NamespaceCondition { type_: "Mine".into(), ..NamespaceCondition::default() };
    let first = pass.conditions(Some(&vec![foreign]), &then).unwrap();
    assert_eq!(first[0].type_, "Mine");
    assert_eq!(pass.conditions(Some(&first), &now), None, "nothing has changed");
    pass.remaining.insert("pods.".into(), 2);
    let second = pass.conditions(Some(&first), &now).unwrap();
    let remaining = second.iter().find(|c| c.type_ == "NamespaceContentRemaining").unwrap();
    assert_eq!(remaining.last_transition_time.as_ref(), Some(&then));
    pass.remaining.clear();
    let third = pass.conditions(Some(&second), &now).unwrap();
    let remaining = third.iter().find(|c| c.type_ == "NamespaceContentRemaining").unwrap();
    assert_eq!(remaining.last_transition_time.as_ref(), Some(&now));
}
