//! Tables for what metrics propose and what becomes of that.

mod proposals;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscalerSpec, MetricStatus};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::history::{History, Rescale};
use super::limits::{self, Sizes};
use super::metrics_api::{PodMetric, PodMetrics, Resource};
use super::plan::{self, Plan};
use super::proposal::{Proposal, Unable};
use super::quantities::{of_milli, of_resource};
use super::replicas::{Count, Situation, Tolerances};
use super::settings::AutoscalerSettings;

const CPU: Resource<'static> = Resource { name: "cpu", container: None };

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// A Pod that has run for an hour, with changes to its status.
fn pod(name: usize, status: &Value) -> Arc<Pod> {
    let requests = json!({"requests": {"cpu": "1", "memory": "1Gi"}});
    let mut pod = json!({
        "metadata": {"name": format!("pod-{name}")},
        "spec": {"containers": [{"name": "main", "resources": requests}]},
        "status": {
            "phase": "Running",
            "startTime": at(-3600).to_string(),
            "conditions": [ready("True", -3590)],
        },
    });
    for (key, value) in status.as_object().into_iter().flatten() {
        pod["status"][key] = value.clone();
    }
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn ready(status: &str, since: i64) -> Value {
    json!({"type": "Ready", "status": status, "lastTransitionTime": at(since).to_string()})
}

/// What the first Pods use, measured just now over half a minute; `None` for those without.
fn metrics(values: &[Option<i64>]) -> PodMetrics {
    let window = SignedDuration::from_secs(30);
    let metric = |value: &i64| PodMetric { timestamp: at(0), window, value: *value };
    let named = values.iter().enumerate();
    named.filter_map(|(n, value)| Some((format!("pod-{n}"), metric(value.as_ref()?)))).collect()
}

fn situation(pods: &[Arc<Pod>], replicas: i32) -> Situation<'_> {
    let settings = AutoscalerSettings::default();
    let tolerances = Tolerances::of(None, settings.tolerance);
    let (spec_replicas, status_replicas) = (replicas, replicas);
    Situation { spec_replicas, status_replicas, pods, tolerances, settings, now: at(0) }
}

#[test]
fn utilization_of_requests_asks_for_replicas() {
    let fine = json!({});
    let pending = json!({"phase": "Pending"});
    let failed = json!({"phase": "Failed"});
    let young = json!({"startTime": at(-60).to_string(), "conditions": [ready("True", -50)]});
    let younger = json!({"startTime": at(-60).to_string(), "conditions": [ready("True", -20)]});
    let never = json!({"conditions": [ready("False", -3580)]});
    let lately = json!({"conditions": [ready("False", -60)]});
    let three = [&fine, &fine, &fine];
    // Pods, what they use of one CPU, and what is proposed for a target of 50 %.
    for (pods, used, replicas, percent) in [
        (three, [Some(500), Some(500), Some(500)], 3, 50),
        (three, [Some(540), Some(540), Some(540)], 3, 54),
        (three, [Some(560), Some(560), Some(560)], 4, 56),
        (three, [Some(900), Some(900), Some(900)], 6, 90),
        (three, [Some(100), Some(100), Some(100)], 1, 10),
        // On the way up, what is not measured is idle; on the way down, it is busy.
        (three, [Some(900), Some(900), None], 4, 90),
        (three, [Some(600), None, None], 3, 60),
        (three, [Some(100), Some(100), None], 3, 10),
        (three, [Some(10), Some(10), None], 3, 1),
        ([&fine, &fine, &pending], [Some(900), Some(900), Some(900)], 4, 90),
        ([&fine, &fine, &pending], [Some(100), Some(100), Some(100)], 1, 10),
        ([&fine, &fine, &failed], [Some(900), Some(900), Some(900)], 4, 90),
        // The CPU time of Pods that start says little.
        ([&fine, &fine, &young], [Some(900), Some(900), Some(900)], 6, 90),
        ([&fine, &fine, &younger], [Some(900), Some(900), Some(900)], 4, 90),
        ([&fine, &fine, &never], [Some(900), Some(900), Some(900)], 4, 90),
        ([&fine, &fine, &lately], [Some(900), Some(900), Some(900)], 6, 90),
    ] {
        let all: Vec<_> = pods.iter().enumerate().map(|(n, status)| pod(n, status)).collect();
        let count = situation(&all, 3).for_utilization(metrics(&used), CPU, 50).unwrap();
        let found = (count.replicas, count.utilization);
        assert_eq!(found, (replicas, Some(percent)), "{pods:?} {used:?}");
    }
}

#[test]
fn an_average_value_asks_for_replicas() {
    let pods: Vec<_> = (0..3).map(|n| pod(n, &json!({}))).collect();
    for (used, replicas, usage) in [
        ([Some(20_000), Some(10_000), Some(60_000)], 9, 30_000),
        ([Some(10_500), Some(10_500), Some(10_500)], 3, 10_500),
        ([Some(2_000), Some(1_000), Some(3_000)], 1, 2_000),
        ([Some(30_000), Some(30_000), None], 6, 30_000),
        ([Some(2_000), Some(2_000), None], 2, 2_000),
    ] {
        let count = situation(&pods, 3).for_average(metrics(&used), "", 10_000).unwrap();
        assert_eq!(count, Count { replicas, usage, utilization: None }, "{used:?}");
    }
}

#[test]
fn a_value_of_something_else_asks_for_replicas() {
    let unready = json!({"conditions": [ready("False", -60)]});
    let pods = [pod(0, &json!({})), pod(1, &json!({})), pod(2, &unready)];
    let situation = situation(&pods, 3);
    let replicas = |usage| situation.for_value(usage, 10_000).unwrap().replicas;
    assert_eq!([replicas(10_900), replicas(30_000), replicas(1_000)], [3, 6, 1]);
    let per_pod = |usage| {
        let count = situation.for_value_per_pod(usage, 10_000);
        (count.replicas, count.usage)
    };
    assert_eq!(per_pod(31_000), (3, 10_334));
    assert_eq!(per_pod(71_000), (8, 23_667));
    assert_eq!(per_pod(i64::MAX), (i32::MAX, i64::MAX));
}

#[test]
fn what_cannot_be_computed_says_why() {
    let pods = [pod(0, &json!({}))];
    let all = metrics(&[Some(1)]);
    let of = |name, container| Resource { name, container };
    let tries = |resource| situation(&pods, 1).for_utilization(all.clone(), resource, 50);
    for (resource, why) in [
        (of("disk", None), "missing request for disk in container main of Pod pod-0"),
        (of("cpu", Some("side")), "container side not found in Pod pod-0"),
    ] {
        assert_eq!(tries(resource).unwrap_err().to_string(), why);
    }
    let none = situation(&[], 1).for_average(all, "", 1).unwrap_err();
    let why = "no pods returned by selector while calculating replica count";
    assert_eq!(none.to_string(), why);
    let unmeasured = situation(&pods, 1).for_average(metrics(&[]), "", 1).unwrap_err();
    let why = "did not receive metrics for targeted pods (pods might be unready)";
    assert_eq!(unmeasured.to_string(), why);
}

#[test]
fn tolerances_can_be_chosen_for_each_direction() {
    let behavior = json!({"scaleUp": {"tolerance": "0"}, "scaleDown": {"tolerance": "500m"}});
    let behavior = serde_json::from_value(behavior).unwrap();
    let pods: Vec<_> = (0..10).map(|n| pod(n, &json!({}))).collect();
    let mut situation = situation(&pods, 10);
    situation.tolerances = Tolerances::of(Some(&behavior), 0.1);
    let replicas = |usage| situation.for_value(usage, 1000).unwrap().replicas;
    assert_eq!([replicas(1010), replicas(600), replicas(400)], [11, 10, 4]);
}

#[test]
fn the_largest_numbers_there_are_overflow_nothing() {
    let mut history = History::new(300);
    for _ in 0..3 {
        history.rescaled(Rescale { from: 0, to: i32::MAX, period: 60, at: at(0) });
    }
    assert_eq!(history.at_start_of(60, i32::MAX, at(1)), 0);
    let most = json!({"requests": {"cpu": "9E"}});
    let greedy = |name: usize| -> Arc<Pod> {
        let mut pod = Pod::clone(&pod(name, &json!({})));
        let container = json!({"name": "main", "resources": most});
        let containers = [container.clone(), container];
        pod.spec.as_mut().unwrap().containers = serde_json::from_value(json!(containers)).unwrap();
        Arc::new(pod)
    };
    let latest = [pod(0, &json!({"startTime": "9999-12-30T21:59:00Z"}))];
    let count = situation(&latest, 1).for_utilization(metrics(&[Some(500)]), CPU, 50);
    assert_eq!(count.unwrap().replicas, 1);
    let pods = [greedy(0), greedy(1)];
    let count = situation(&pods, 2).for_utilization(metrics(&[Some(1), None]), CPU, 50).unwrap();
    assert!(count.replicas <= 2, "{count:?}");
}

#[test]
fn a_target_of_no_group_is_not_clear() {
    for (version, clear) in [("", true), ("v1", true), ("apps/v1", true), ("a/b/c", false)] {
        let reference = json!({"apiVersion": version, "kind": "Deployment", "name": "web"});
        let reference = serde_json::from_value(reference).unwrap();
        assert_eq!(super::target::is_clear(&reference), clear, "{version}");
    }
}

fn spec(behavior: &Value) -> HorizontalPodAutoscalerSpec {
    serde_json::from_value(json!({
        "minReplicas": 2, "maxReplicas": 20, "behavior": behavior,
        "scaleTargetRef": {"kind": "Deployment", "name": "web"},
    }))
    .unwrap()
}

#[test]
fn a_target_outside_of_its_bounds_needs_no_metrics() {
    let decided = |current| plan::without_metrics(&spec(&Value::Null), current);
    let rescale = |replicas, bound: &str| {
        let reason = format!("Current number of replicas {bound}");
        Some(Plan::Rescale { replicas, reason })
    };
    assert_eq!(decided(0), Some(Plan::Disabled));
    assert_eq!(decided(1), rescale(2, "below Spec.MinReplicas"));
    assert_eq!(decided(2), None);
    assert_eq!(decided(20), None);
    assert_eq!(decided(21), rescale(20, "above Spec.MaxReplicas"));
}

#[test]
fn a_recommendation_is_limited_by_rate_and_bounds() {
    for (current, desired, replicas, why) in [
        (3, 5, 5, "DesiredWithinRange"),
        (3, 9, 6, "ScaleUpLimit"),
        (2, 9, 4, "ScaleUpLimit"),
        (15, 99, 20, "TooManyReplicas"),
        (3, 1, 2, "TooFewReplicas"),
    ] {
        let sizes = Sizes { current, desired, min: 2, max: 20 };
        let limited = limits::limit(sizes, None, &mut History::new(300), at(0));
        assert_eq!((limited.replicas, limited.limited.1.0), (replicas, why));
        assert_eq!(limited.limited.0, replicas != desired);
        assert_eq!(limited.able.0, "ReadyForNewScale");
    }
}

#[test]
fn shrinking_waits_until_nobody_recommended_more_for_five_minutes() {
    let mut history = History::new(300);
    history.begin(9, at(0));
    let mut recommend = |desired, now| {
        let sizes = Sizes { current: 9, desired, min: 2, max: 20 };
        let limited = limits::limit(sizes, None, &mut history, at(now));
        (limited.replicas, limited.able.0)
    };
    assert_eq!(recommend(7, 15), (9, "ScaleDownStabilized"));
    assert_eq!(recommend(3, 300), (9, "ScaleDownStabilized"));
    assert_eq!(recommend(3, 301), (7, "ScaleDownStabilized"));
    assert_eq!(recommend(3, 316), (3, "ReadyForNewScale"));
}

#[test]
fn policies_limit_the_change_in_a_period() {
    let policy = |type_: &str, value: i32, period: i32| json!({"type": type_, "value": value, "periodSeconds": period});
    let rules = |select: &str, policies: Value| {
        let window = 0;
        json!({"stabilizationWindowSeconds": window, "selectPolicy": select, "policies": policies})
    };
    let both = json!([policy("Pods", 1, 60), policy("Percent", 50, 60)]);
    let free = rules("Max", json!([policy("Percent", 100, 15)]));
    for (select, desired, replicas, why) in [
        ("Max", 20, 15, "ScaleUpLimit"),
        ("Min", 20, 11, "ScaleUpLimit"),
        ("Disabled", 20, 10, "ScaleUpLimit"),
        ("Max", 11, 11, "DesiredWithinRange"),
    ] {
        let up = json!({"scaleUp": rules(select, both.clone()), "scaleDown": free});
        let behavior = spec(&up).behavior;
        let sizes = Sizes { current: 10, desired, min: 2, max: 20 };
        let limited = limits::limit(sizes, behavior.as_ref(), &mut History::new(300), at(0));
        assert_eq!((limited.replicas, limited.limited.1.0), (replicas, why), "{select} {desired}");
    }
    for (select, replicas) in [("Max", 5), ("Min", 9), ("Disabled", 10)] {
        let down = json!({"scaleUp": free, "scaleDown": rules(select, both.clone())});
        let behavior = spec(&down).behavior;
        let sizes = Sizes { current: 10, desired: 2, min: 2, max: 20 };
        let limited = limits::limit(sizes, behavior.as_ref(), &mut History::new(300), at(0));
        let found = (limited.replicas, limited.limited.1.0);
        assert_eq!(found, (replicas, "ScaleDownLimit"), "{select}");
    }
}

#[test]
fn what_was_changed_in_the_period_counts() {
    let one = json!([{"type": "Pods", "value": 2, "periodSeconds": 60}]);
    let rules = json!({"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": one});
    let behavior = spec(&json!({"scaleUp": rules, "scaleDown": rules})).behavior;
    let mut history = History::new(300);
    history.rescaled(Rescale { from: 5, to: 7, period: 60, at: at(0) });
    let mut limit = |now| {
        let sizes = Sizes { current: 7, desired: 20, min: 2, max: 20 };
        limits::limit(sizes, behavior.as_ref(), &mut history, at(now)).replicas
    };
    assert_eq!([limit(15), limit(59), limit(60)], [7, 7, 9]);
}

#[test]
fn growing_waits_for_the_lowest_recommendation_of_its_window() {
    let all = json!([{"type": "Percent", "value": 1000, "periodSeconds": 15}]);
    let rules = json!({"stabilizationWindowSeconds": 60, "selectPolicy": "Max", "policies": all});
    let behavior = spec(&json!({"scaleUp": rules, "scaleDown": rules})).behavior;
    let mut history = History::new(300);
    history.begin(3, at(0));
    let mut recommend = |desired, now| {
        let sizes = Sizes { current: 3, desired, min: 2, max: 20 };
        let limited = limits::limit(sizes, behavior.as_ref(), &mut history, at(now));
        (limited.replicas, limited.able.0)
    };
    assert_eq!(recommend(9, 15), (3, "ScaleUpStabilized"));
    assert_eq!(recommend(5, 45), (3, "ScaleUpStabilized"));
    assert_eq!(recommend(9, 60), (5, "ScaleUpStabilized"));
    assert_eq!(recommend(9, 106), (9, "ReadyForNewScale"));
}

#[test]
fn metrics_that_cannot_tell_do_not_let_a_target_shrink() {
    let proposes = |replicas| {
        let metric = format!("metric {replicas}");
        Ok(Proposal { replicas, metric, status: MetricStatus::default() })
    };
    let fails = || {
        let (cause, error) = ("nobody home".to_owned(), "failed to ask: nobody home".to_owned());
        Err(Unable { reason: "FailedGetPodsMetric", cause, error })
    };
    let one_of_two =
        "invalid metrics (1 invalid out of 2), first error is: failed to ask: nobody home";
    for (proposals, proposal, error) in [
        (vec![proposes(2), proposes(5)], Some(5), None),
        (vec![proposes(5), fails()], Some(5), Some(one_of_two)),
        (vec![fails(), proposes(2)], None, Some(one_of_two)),
    ] {
        let measured = plan::combine(proposals, 3);
        assert_eq!(measured.proposal.as_ref().map(|(replicas, _)| *replicas), proposal);
        assert_eq!(measured.error.as_deref(), error);
        assert_eq!(measured.statuses.len(), 2);
        let condition = measured.condition;
        assert_eq!(condition.holds, proposal.is_some());
        let message = match proposal {
            Some(_) => "the HPA was able to successfully calculate a replica count from metric 5",
            None => "the HPA was unable to compute the replica count: nobody home",
        };
        assert_eq!(condition.message, message);
    }
}

#[test]
fn quantities_read_as_the_metrics_server_writes_them() {
    for (milli, text) in [(0, "0"), (250, "250m"), (3000, "3"), (1_500_000, "1500")] {
        assert_eq!(of_milli(milli).0, text);
    }
    for (milli, text) in [
        (1_048_576_000, "1Mi"),
        (1_049_600_000, "1025Ki"),
        (1_500_000, "1500"),
        (20_000_000_500, "20000000500m"),
        (500_000, "500"),
    ] {
        assert_eq!(of_resource("memory", milli).0, text);
    }
}
