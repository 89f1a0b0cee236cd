use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::health::{self, Health, Verdict};
use super::plan::{self, Eviction, NOT_READY, NoExecute, UNREACHABLE};
use super::settings::NodeLifecycleSettings;
use super::zones::{Member, Turn, Zones};

fn start() -> Timestamp {
    "2030-01-01T12:00:00Z".parse().unwrap()
}

fn at(seconds: i64) -> Timestamp {
    start() + SignedDuration::from_secs(seconds)
}

fn node(ready: Option<&str>, changes: &Value) -> Node {
    let ready = ready.map(|status| {
        json!({"type": "Ready", "status": status, "lastHeartbeatTime": "2030-01-01T12:00:00Z"})
    });
    let mut node = json!({
        "metadata": {"name": "a", "creationTimestamp": "2030-01-01T12:00:00Z", "labels": {}},
        "spec": {"taints": []},
        "status": {"conditions": ready.into_iter().collect::<Vec<_>>()},
    });
    for (pointer, value) in changes.as_object().into_iter().flatten() {
        *node.pointer_mut(pointer).unwrap() = value.clone();
    }
    serde_json::from_value(node).unwrap()
}

#[test]
fn a_node_is_silent_fifty_seconds_after_its_last_sign_when_nodes_are_looked_at() {
    let settings = NodeLifecycleSettings::default();
    for (ready, seen, now, expected) in [
        (Some("True"), 0, 0, Verdict::Until(at(55))),
        (Some("True"), 3, 54, Verdict::Until(at(55))),
        (Some("True"), 3, 55, Verdict::Silent),
        (Some("False"), 4, 90, Verdict::Silent),
        (Some("Unknown"), 0, 900, Verdict::Fine),
        (None, 0, 64, Verdict::Until(at(65))),
        (None, 0, 65, Verdict::Silent),
    ] {
        let node = node(ready, &json!({}));
        let verdict = health::verdict(&node, at(seen), at(now), &settings);
        assert_eq!(verdict, expected, "{ready:?} {seen} {now}");
    }
    let hasty = NodeLifecycleSettings {
        monitor_grace_period: Duration::from_secs(8),
        startup_grace_period: Duration::from_secs(20),
        monitor_period: Duration::from_secs(2),
        ..settings
    };
    for (ready, expected) in [(Some("True"), at(10)), (None, at(22))] {
        let verdict = health::verdict(&node(ready, &json!({})), at(0), at(1), &hasty);
        assert_eq!(verdict, Verdict::Until(expected), "{ready:?}");
    }
}

#[test]
fn a_status_that_was_sent_anew_is_a_sign_of_life_and_an_old_one_is_none() {
    let new = node(None, &json!({}));
    let first = Health::seen(None, &new, at(5));
    assert_eq!(first.probe, at(0), "since it was created");
    assert_eq!(Health::seen(Some(&first), &new, at(7)).probe, at(0));
    let ready = node(Some("True"), &json!({}));
    let known = Health::seen(Some(&first), &ready, at(9));
    assert_eq!(known.probe, at(9), "it says how it is for the first time");
    assert_eq!(Health::seen(Some(&known), &ready, at(12)).probe, at(9));
    let beat = json!({"/status/conditions/0/lastHeartbeatTime": "2030-01-01T12:00:10Z"});
    assert_eq!(Health::seen(Some(&known), &node(Some("True"), &beat), at(12)).probe, at(12));
    assert_eq!(Health::seen(None, &ready, at(40)).probe, at(40), "who starts has seen nothing");
}

#[test]
fn nobody_knows_how_a_silent_node_is() {
    let pressure = json!({"type": "MemoryPressure", "status": "False", "reason": "Enough"});
    let network = json!({"type": "NetworkUnavailable", "status": "False"});
    let ready = json!({"type": "Ready", "status": "True", "message": "well"});
    let conditions = json!({"/status/conditions": [pressure, network, ready]});
    let unknown = health::unknown(&node(None, &conditions), &Time(at(60)));
    let found: Vec<_> = unknown.status.unwrap().conditions.unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|it| (&*it.type_, &*it.status, it.reason.as_deref().unwrap_or_default()))
        .collect();
    let expected = [
        ("MemoryPressure", "Unknown", "NodeStatusUnknown"),
        ("NetworkUnavailable", "False", ""),
        ("Ready", "Unknown", "NodeStatusUnknown"),
        ("DiskPressure", "Unknown", "NodeStatusNeverUpdated"),
        ("PIDPressure", "Unknown", "NodeStatusNeverUpdated"),
    ];
    assert_eq!(found, expected);
}

/// Key and effect of the taints of a Node.
fn tainted(node: &Node) -> Vec<(String, String)> {
    let short = |key: &str| key.trim_start_matches("node.kubernetes.io/").to_owned();
    crate::node::taints(node).iter().map(|it| (short(&it.key), it.effect.clone())).collect()
}

#[test]
fn conditions_become_taints_that_keep_new_pods_away() {
    let taint = |key: &str, effect: &str| json!({"key": key, "effect": effect});
    let pressure = json!([{"type": "DiskPressure", "status": "True"},
                          {"type": "Ready", "status": "Unknown"}]);
    let others = json!([taint(NOT_READY, "NoSchedule"), taint("mine", "NoSchedule")]);
    for (changes, expected) in [
        (json!({"/status/conditions": pressure}), "disk-pressure unreachable"),
        (json!({"/spec": {"unschedulable": true}}), "unschedulable"),
        (json!({"/spec/taints": others}), "mine"),
        (json!({"/spec/taints": [taint("node.kubernetes.io/unschedulable", "NoSchedule")]}), ""),
    ] {
        let corrected = plan::corrected(&node(Some("True"), &changes), None, &Time(at(0)));
        let found = tainted(&corrected.unwrap());
        assert!(found.iter().all(|(_, effect)| effect == "NoSchedule"));
        let found: Vec<_> = found.into_iter().map(|(key, _)| key).collect();
        assert_eq!(found.join(" "), expected, "{changes}");
    }
    let kept =
        json!({"/spec/taints": [taint("mine", "NoSchedule"), taint(NOT_READY, "NoExecute")]});
    assert_eq!(plan::corrected(&node(Some("True"), &kept), None, &Time(at(0))), None);
    let gone = plan::corrected(&node(Some("True"), &kept), Some(NoExecute(None)), &Time(at(0)));
    assert_eq!(tainted(&gone.unwrap()), [("mine".into(), "NoSchedule".into())]);
}

#[test]
fn pods_are_sent_away_by_one_of_two_taints() {
    let unreachable = json!({"/spec/taints": [{"key": UNREACHABLE, "effect": "NoExecute"}]});
    let none = json!({});
    for (ready, changes, all_lost, expected) in [
        (Some("False"), &none, false, Eviction::Due(NOT_READY)),
        (Some("Unknown"), &none, false, Eviction::Due(UNREACHABLE)),
        (Some("Unknown"), &unreachable, false, Eviction::Tainted(UNREACHABLE)),
        (Some("False"), &unreachable, false, Eviction::Tainted(NOT_READY)),
        (Some("True"), &unreachable, false, Eviction::Stay),
        (Some("Unknown"), &unreachable, true, Eviction::Stay),
        (None, &unreachable, false, Eviction::None),
    ] {
        let found = plan::eviction(&node(ready, changes), all_lost);
        assert_eq!(found, expected, "{ready:?} {changes} {all_lost}");
    }
    let swapped = NoExecute(Some(NOT_READY));
    let swapped = plan::corrected(&node(Some("False"), &unreachable), Some(swapped), &Time(at(0)));
    let expected = [("not-ready", "NoSchedule"), ("not-ready", "NoExecute")];
    assert_eq!(tainted(&swapped.unwrap()), expected.map(|(a, b)| (a.into(), b.into())));
}

#[test]
fn labels_say_the_same_under_their_old_names() {
    for (labels, os) in [
        (json!({"kubernetes.io/os": "linux"}), Some("linux")),
        (json!({"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "plan9"}), Some("linux")),
        (json!({"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux"}), None),
        (json!({"beta.kubernetes.io/os": "plan9"}), None),
    ] {
        let node = node(Some("True"), &json!({"/metadata/labels": labels}));
        let corrected = plan::corrected(&node, None, &Time(at(0)));
        let found =
            corrected.map(|node| node.metadata.labels.unwrap()["beta.kubernetes.io/os"].clone());
        assert_eq!(found.as_deref(), os, "{labels}");
    }
}

#[test]
fn a_ready_pod_of_a_silent_node_is_not_ready() {
    let pod = |status: &str| -> Pod {
        let ready = json!({"type": "Ready", "status": status, "reason": "why"});
        serde_json::from_value(json!({"status": {"conditions": [ready]}})).unwrap()
    };
    let told = plan::not_ready(&pod("True"), &Time(at(60))).unwrap();
    let expected = json!({"type": "Ready", "status": "False", "reason": "why",
                          "lastTransitionTime": "2030-01-01T12:01:00Z"});
    assert_eq!(json!(told.status.unwrap().conditions.unwrap()[0]), expected);
    assert_eq!(plan::not_ready(&pod("False"), &Time(at(60))), None);
}

/// Zones with so many ready nodes and so many that are not, named after the zone.
fn zones(counts: &[(&str, usize, usize)]) -> Zones {
    zones_like(NodeLifecycleSettings::default(), counts)
}

fn zones_like(settings: NodeLifecycleSettings, counts: &[(&str, usize, usize)]) -> Zones {
    let mut zones = Zones::new(settings);
    for (zone, ready, lost) in counts {
        for n in 0..ready + lost {
            let member = Member { zone: (*zone).into(), ready: n < *ready, counts: true };
            zones.observe(&format!("{zone}{n}"), Some(member));
        }
    }
    zones.conclude(at(0));
    zones
}

/// Lines up the last nodes of a zone, and says when their turns are.
fn turns(zones: &mut Zones, zone: &str, names: &[&str], now: i64) -> Vec<Turn> {
    names.iter().map(|name| zones.line_up(zone, name, at(now))).collect()
}

fn soon(seconds: i64) -> Turn {
    Turn::At(at(seconds) + SignedDuration::from_millis(100))
}

#[test]
fn how_many_nodes_of_a_zone_are_lost_says_how_fast_they_are_given_up() {
    let slow = Turn::At(at(100));
    for (counts, second) in [
        // Ten seconds between two nodes as usual, and where all of a zone are lost.
        (vec![("a", 2, 2)], soon(10)),
        (vec![("a", 0, 3), ("b", 1, 0)], soon(10)),
        (vec![("a", 4, 3)], soon(10)),
        // Most are lost: none of a small zone, and few of a large one.
        (vec![("a", 1, 3)], Turn::Later),
        (vec![("a", 20, 40)], slow),
        // All are lost.
        (vec![("a", 0, 3)], Turn::Later),
        (vec![("a", 0, 3), ("b", 0, 1)], Turn::Later),
    ] {
        let mut zones = zones(&counts);
        let found = turns(&mut zones, "a", &["a90", "a91"], 0)[1];
        match second {
            Turn::At(at) if second == slow => {
                let Turn::At(found) = found else { panic!("{counts:?}: {found:?}") };
                assert!(found > at, "{counts:?}: {found}");
            }
            _ => assert_eq!(found, second, "{counts:?}"),
        }
    }
}

#[test]
fn rates_and_thresholds_can_be_chosen() {
    let settings = NodeLifecycleSettings {
        eviction_rate: 0.5,
        secondary_eviction_rate: 0.25,
        unhealthy_zone_threshold: 0.3,
        large_zone_threshold: 5,
        ..NodeLifecycleSettings::default()
    };
    let none = NodeLifecycleSettings { eviction_rate: 0.0, ..settings };
    for (settings, counts, second) in [
        (settings, ("a", 7, 2), soon(2)),
        (settings, ("a", 7, 3), Turn::At(at(4))),
        (settings, ("a", 2, 3), Turn::Later),
        (none, ("a", 7, 2), Turn::Later),
    ] {
        let mut zones = zones_like(settings, &[counts]);
        let found = turns(&mut zones, "a", &["a90", "a91"], 0)[1];
        match (found, second) {
            (Turn::At(found), Turn::At(second)) => {
                let late = found.duration_since(second).as_millis();
                assert!((0..=4100).contains(&late), "{counts:?}: {found}");
            }
            _ => assert_eq!(found, second, "{counts:?}"),
        }
    }
}

#[test]
fn nodes_are_given_up_in_turn_and_those_behind_one_that_is_back_are_earlier() {
    let mut zones = zones(&[("a", 5, 3)]);
    let names = ["a5", "a6", "a7"];
    assert_eq!(turns(&mut zones, "a", &names, 0), [soon(0), soon(10), soon(20)]);
    assert_eq!(turns(&mut zones, "a", &["a5"], 1), [Turn::Now]);
    assert_eq!(turns(&mut zones, "a", &["a6", "a7"], 1), [Turn::At(at(11)), Turn::At(at(21))]);
    assert_eq!(zones.leave("a", "a6"), ["a7".into()]);
    assert_eq!(turns(&mut zones, "a", &["a7"], 2), [Turn::At(at(11))]);
    assert_eq!(turns(&mut zones, "a", &["a7"], 11), [Turn::Now]);
    zones.give_back("a", "a7", at(11));
    assert_eq!(turns(&mut zones, "a", &["a7"], 11), [Turn::Now], "it could not be written");
}

#[test]
fn when_all_are_lost_everybody_waits_and_when_one_is_back_begins_anew() {
    let mut zones = zones(&[("a", 0, 2), ("b", 1, 0)]);
    assert_eq!(turns(&mut zones, "a", &["a0"], 0), [soon(0)]);
    let lost = Member { zone: "b".into(), ready: false, counts: true };
    zones.observe("b0", Some(lost.clone()));
    let mut told = zones.conclude(at(1));
    told.sort();
    assert_eq!(told, ["a0".into(), "a1".into(), "b0".into()], "their taints go");
    assert!(zones.all_lost());
    assert_eq!(turns(&mut zones, "a", &["a0"], 50), [Turn::Later]);
    zones.observe("b0", Some(Member { ready: true, ..lost }));
    assert_eq!(zones.conclude(at(60)).len(), 3);
    assert_eq!(turns(&mut zones, "a", &["a0"], 60), [Turn::At(at(70))]);
    zones.observe("b0", None);
    zones.conclude(at(61));
    assert!(zones.all_lost(), "the only one that was ready is gone");
}

#[test]
fn a_zone_has_the_name_of_its_region_too() {
    for (labels, zone) in [
        (json!({}), ""),
        (json!({"topology.kubernetes.io/zone": "z"}), ":\0:z"),
        (
            json!({"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"}),
            "r:\0:z",
        ),
        (json!({"failure-domain.beta.kubernetes.io/region": "r"}), "r:\0:"),
    ] {
        let node = node(None, &json!({"/metadata/labels": labels}));
        assert_eq!(plan::zone(&node), zone, "{labels}");
    }
    let excluded = json!({"/metadata/labels": {"node.kubernetes.io/exclude-disruption": ""}});
    assert!(!plan::member(&node(None, &excluded)).counts);
}
