//! What quotas count, and what they say when they were counted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ResourceQuota;
use serde_json::{Value, json};
use steersman::ObjectKey;
use steersman_rules::quota::Evaluator;
use tokio::time::Instant;

use super::interest::Interest;
use super::plan;
use super::tally::Tally;

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn quota(hard: &Value, status: &Value) -> ResourceQuota {
    let quota = json!({
        "metadata": {"name": "q", "namespace": "team", "resourceVersion": "1"},
        "spec": {"hard": hard}, "status": status,
    });
    serde_json::from_value(quota).unwrap()
}

fn tally(group: &str, plural: &str, objects: &[(&str, Value)]) -> Tally {
    let mut tally = Tally::new(Evaluator::of(group, plural).unwrap());
    for (key, object) in objects {
        tally.observe(&ObjectKey::from(*key), object);
    }
    tally
}

fn pod(cpu: &str, phase: &str) -> Value {
    let resources = json!({"requests": {"cpu": cpu}});
    json!({
        "spec": {"containers": [{"name": "c", "resources": resources}]},
        "status": {"phase": phase},
    })
}

#[test]
fn a_quota_counts_the_resources_whose_names_it_limits() {
    let hard = json!({
        "pods": "1", "requests.cpu": "1", "count/deployments.apps": "1", "configmaps": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": "1", "example.com/unknown": "1",
    });
    let expected =
        [("", "configmaps"), ("", "persistentvolumeclaims"), ("", "pods"), ("apps", "deployments")];
    let expected = expected.map(|(group, plural)| (group.to_owned(), plural.to_owned()));
    assert_eq!(plan::resources(&quota(&hard, &json!({}))), BTreeSet::from(expected));
}

#[test]
fn what_is_used_is_added_up_and_what_is_not_served_stays_as_it_was() {
    let pods = tally(
        "",
        "pods",
        &[
            ("team/a", pod("250m", "Running")),
            ("team/b", pod("1", "Pending")),
            ("team/c", pod("1", "Succeeded")),
            ("other/d", pod("5", "Running")),
        ],
    );
    let maps = tally("", "configmaps", &[("other/x", json!({}))]);
    let hard = json!({
        "pods": "10", "count/pods": "10", "requests.cpu": "2", "configmaps": "1",
        "count/boats.example.com": "3", "count/ships.example.com": "3",
    });
    let said = json!({"used": {"pods": "7", "secrets": "1", "count/boats.example.com": "2"}});
    let status = plan::status(&quota(&hard, &said), &[&pods, &maps], now());
    assert_eq!(json!(status.hard), hard);
    let used = json!({
        "pods": "2", "count/pods": "3", "requests.cpu": "1250m", "configmaps": "0",
        "count/boats.example.com": "2",
    });
    assert_eq!(json!(status.used), used);
}

#[test]
fn only_what_is_in_the_scopes_of_a_quota_is_added_up() {
    let mut timed = pod("1", "Running");
    timed["spec"]["activeDeadlineSeconds"] = json!(1);
    let pods = tally("", "pods", &[("team/a", timed), ("team/b", pod("2", "Running"))]);
    let mut scoped = quota(&json!({"requests.cpu": "9"}), &json!({}));
    scoped.spec.as_mut().unwrap().scopes = Some(vec!["Terminating".to_owned()]);
    let status = plan::status(&scoped, &[&pods], now());
    assert_eq!(json!(status.used), json!({"requests.cpu": "1"}));
}

#[test]
fn a_quota_is_written_when_it_says_something_else() {
    let hard = json!({"pods": "1k"});
    let maps = tally("", "pods", &[("team/a", pod("1", "Running"))]);
    let table = [
        (json!({}), true, false),
        (json!({"hard": {"pods": "1k"}}), true, false),
        (json!({"hard": {"pods": "1000"}, "used": {"pods": "1"}}), false, false),
        (json!({"hard": {"pods": "1k"}, "used": {"pods": "1000m"}}), false, false),
        (json!({"hard": {"pods": "1k"}, "used": {"pods": "2"}}), true, true),
        (json!({"hard": {"pods": "1k"}, "used": {"pods": "0"}}), true, false),
        (json!({"hard": {"pods": "2"}, "used": {"pods": "1"}}), true, false),
        (json!({"hard": {"pods": "1k"}, "used": {"pods": "1", "cpu": "1"}}), true, false),
    ];
    for (status, differs, lowers) in table {
        let quota = quota(&hard, &status);
        let counted = plan::status(&quota, &[&maps], now());
        assert_eq!(plan::differs(&quota, &counted), differs, "{status}");
        assert_eq!(plan::lowers(&quota, &counted), lowers, "{status}");
    }
    let empty = quota(&json!({}), &json!({}));
    assert!(!plan::differs(&empty, &plan::status(&empty, &[], now())), "there is nothing to say");
}

#[test]
fn quotas_are_counted_for_what_goes_or_changes_and_not_for_what_comes() {
    let mut pods = tally("", "pods", &[]);
    let key = ObjectKey::from("team/a");
    let team = Some(Arc::from("team"));
    assert_eq!(pods.observe(&key, &pod("1", "Pending")), None);
    assert_eq!(pods.observe(&key, &pod("1", "Running")), None);
    assert_eq!(pods.observe(&key, &pod("2", "Running")), team);
    assert_eq!(pods.observe(&key, &pod("2", "Failed")), team);
    assert_eq!(pods.remove(&key), team);
    assert_eq!(pods.remove(&key), None);
}

#[test]
fn a_new_list_tells_what_went_meanwhile() {
    let mut maps = tally(
        "",
        "configmaps",
        &[("a/1", json!({})), ("b/1", json!({})), ("c/1", json!({})), ("d/1", json!({}))],
    );
    let listed = [(ObjectKey::from("b/1"), json!({})), (ObjectKey::from("e/1"), json!({}))];
    let changed = maps.replace(&listed, &[ObjectKey::from("c/1")]);
    assert_eq!(changed, BTreeSet::from([Arc::from("a"), Arc::from("d")]));
    assert!(maps.replace(&listed, &[]).contains("c"));
}

#[test]
fn less_is_used_once_a_quota_was_left_alone_for_a_while_or_never_is() {
    let start = Instant::now();
    let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
    let wait = |milliseconds: u64| Some(Duration::from_millis(milliseconds));
    let mut interest = Interest::default();
    let mut quota = quota(&json!({"pods": "1"}), &json!({}));
    let key = ObjectKey::of(&quota);
    interest.observe(&quota, at(0));
    assert_eq!(interest.wait_to_lower(&key, at(100)), wait(400));
    interest.observe(&quota, at(200));
    assert_eq!(interest.wait_to_lower(&key, at(500)), None, "that was the same version");
    interest.is_counted(&key);
    for version in 2..20 {
        quota.metadata.resource_version = Some(version.to_string());
        interest.observe(&quota, at(version * 1000));
        let expected = if version < 12 { wait(500) } else { None };
        assert_eq!(interest.wait_to_lower(&key, at(version * 1000)), expected, "{version}");
    }
    let pods = (String::new(), "pods".to_owned());
    assert_eq!(interest.of(&pods, Some("team")), std::slice::from_ref(&key));
    assert!(interest.of(&pods, Some("other")).is_empty());
    interest.forget(&key);
    assert!(!interest.has(&pods));
}
