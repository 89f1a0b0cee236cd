use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio::time::{Instant, advance};

use super::{Backoff, Depth, SchedulingQueue};
use crate::config::{Configuration, assemble};
use crate::framework::{
    Action, Before, ClusterEvent, FitError, Interest, Object, Plugin, PodInfo, Points, Refusal,
    Resource,
};
use crate::plugins::Handle;
use crate::testing::{asking, node, pod};

/// A queue, and the Pods that it can read.
struct Fixture {
    queue: SchedulingQueue,
    pods: Arc<Mutex<HashMap<String, Arc<Pod>>>>,
    /// How often one was read.
    reads: Arc<AtomicUsize>,
    handle: Arc<Handle>,
}

impl Fixture {
    fn new() -> Self {
        Self::with(&[])
    }

    /// With other plug-ins beside Kubernetes' own.
    fn with(plugins: &[Arc<dyn Plugin>]) -> Self {
        let handle = Arc::default();
        let assembled = assemble(&Configuration::default(), plugins, &handle).unwrap();
        let reads: Arc<AtomicUsize> = Arc::default();
        let counted = Arc::clone(&reads);
        let pods: Arc<Mutex<HashMap<String, Arc<Pod>>>> = Arc::default();
        let known = Arc::clone(&pods);
        let read = Box::new(move |key: &steersman::ObjectKey| {
            counted.fetch_add(1, Ordering::Relaxed);
            known.lock().unwrap().get(&*key.name).cloned()
        });
        let profiles = Arc::new(assembled.profiles);
        let queue = SchedulingQueue::new(profiles, assembled.sort, Backoff::default(), read);
        Self { queue, pods, reads, handle }
    }

    fn set(&mut self, pod: &Pod) {
        let name = pod.metadata.name.clone().unwrap();
        self.pods.lock().unwrap().insert(name, Arc::new(pod.clone()));
        self.queue.set(&Arc::new(PodInfo::of(pod)), pod);
    }

    fn pop(&mut self) -> Option<String> {
        let pending = self.queue.pop()?;
        let name = pending.info.key.name.to_string();
        self.queue.done(&pending.info.uid);
        Some(name)
    }

    /// Tries the next Pod, which fits nowhere for a reason of this plug-in.
    fn refuse(&mut self, plugin: &'static str) {
        let pending = self.queue.pop().expect("somebody is to be tried");
        self.queue.put_back(pending, Some(&refused(plugin)));
    }

    fn depth(&self) -> (usize, usize, usize) {
        let Depth { active, backoff, unschedulable, gated } = self.queue.depth();
        (active, backoff, unschedulable + gated)
    }
}

fn refused(plugin: &'static str) -> FitError {
    let mut error = FitError::default();
    error.refused_by(plugin, &Refusal::unschedulable("no"));
    error
}

fn node_added(change: &serde_json::Value) -> ClusterEvent {
    let new = Some(Arc::new(node("new", change)));
    let object = Object::Node(Before { old: None, new });
    ClusterEvent { resource: Resource::Node, action: Action::ADD, object }
}

fn pod_gone() -> ClusterEvent {
    let old = Some(Arc::new(PodInfo::of(&asking("gone", "1"))));
    let object = Object::Pod(Before { old, new: None });
    ClusterEvent { resource: Resource::AssignedPod, action: Action::DELETE, object }
}

#[tokio::test(start_paused = true)]
async fn who_matters_more_comes_first_and_of_equals_who_came_first() {
    let mut fixture = Fixture::new();
    for (name, priority) in [("a", 0), ("b", 5), ("c", 0), ("d", 5), ("e", 9)] {
        let mut pod = asking(name, "1");
        pod.spec.as_mut().unwrap().priority = Some(priority);
        fixture.set(&pod);
    }
    let order: Vec<String> = std::iter::from_fn(|| fixture.pop()).collect();
    assert_eq!(order.join(" "), "e b d a c");
}

#[tokio::test(start_paused = true)]
async fn the_wait_doubles_from_one_second_to_ten() {
    let mut fixture = Fixture::new();
    fixture.set(&asking("p", "1"));
    for seconds in [1, 2, 4, 8, 10, 10] {
        let pending = fixture.queue.pop().unwrap();
        fixture.queue.put_back(pending, None); // something went wrong
        assert_eq!(fixture.depth(), (0, 1, 0));
        assert!(fixture.queue.pop().is_none());
        assert_eq!(fixture.queue.due(), Some(Instant::now() + Duration::from_secs(seconds)));
        advance(Duration::from_secs(seconds)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_wakes_only_whom_it_can_help() {
    let mut fixture = Fixture::new();
    fixture.set(&asking("small", "1"));
    fixture.refuse("NodeResourcesFit");
    fixture.set(&asking("large", "64"));
    fixture.refuse("NodeResourcesFit");
    fixture.set(&pod("picky", &json!({"spec": {"nodeSelector": {"disk": "ssd"}}})));
    fixture.refuse("NodeAffinity");
    fixture.set(&pod("plain", &json!({})));
    fixture.refuse("TaintToleration");
    assert_eq!(fixture.depth(), (0, 0, 4));
    let taint = json!({"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}});
    assert!(fixture.queue.happened(&node_added(&taint)));
    assert_eq!((fixture.depth(), fixture.pop().as_deref()), ((0, 1, 3), Some("small")));
    assert!(!fixture.queue.happened(&node_added(&json!({"status": {"allocatable": {"cpu": "0"}},
        "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}))));
    let ssd = json!({"metadata": {"labels": {"disk": "ssd"}}});
    assert!(fixture.queue.happened(&node_added(&ssd)));
    let mut woken: Vec<String> = std::iter::from_fn(|| fixture.pop()).collect();
    woken.sort();
    assert_eq!(woken.join(" "), "picky plain");
    // A Pod that goes makes room, and nothing else.
    assert!(fixture.queue.happened(&pod_gone()));
    assert_eq!(fixture.pop().as_deref(), Some("large"));
}

#[tokio::test(start_paused = true)]
async fn what_happens_during_a_decision_counts() {
    let mut fixture = Fixture::new();
    fixture.set(&asking("p", "1"));
    let pending = fixture.queue.pop().unwrap();
    fixture.queue.happened(&pod_gone());
    fixture.queue.put_back(pending, Some(&refused("NodeResourcesFit")));
    assert_eq!(fixture.depth(), (0, 1, 0));
    let pending = fixture.queue.pop().unwrap();
    fixture.queue.put_back(pending, Some(&refused("NodeResourcesFit")));
    assert_eq!(fixture.depth(), (0, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn who_backs_off_is_tried_when_nobody_is_active() {
    let mut fixture = Fixture::new();
    fixture.set(&asking("p", "1"));
    fixture.refuse("NodeResourcesFit");
    fixture.queue.happened(&pod_gone());
    assert_eq!(fixture.depth(), (0, 1, 0));
    fixture.set(&asking("q", "1"));
    assert_eq!(fixture.pop().as_deref(), Some("q"));
    assert_eq!(fixture.pop().as_deref(), Some("p"));
}

#[tokio::test(start_paused = true)]
async fn of_those_that_have_backed_off_in_the_same_second_who_matters_more_comes_first() {
    let mut fixture = Fixture::new();
    let priorities = [("a", 0, 300), ("b", 5, 300), ("c", 9, 100)];
    for (name, priority, milliseconds) in priorities {
        let mut pod = asking(name, "1");
        pod.spec.as_mut().unwrap().priority = Some(priority);
        fixture.set(&pod);
        fixture.refuse("NodeResourcesFit");
        advance(Duration::from_millis(milliseconds)).await;
    }
    // They back off until 1.0, 1.3 and 1.6 seconds have passed.
    fixture.queue.since += Duration::from_millis(500);
    fixture.queue.happened(&pod_gone());
    let order: Vec<String> = std::iter::from_fn(|| fixture.pop()).collect();
    assert_eq!(order.join(" "), "b a c");
}

#[tokio::test(start_paused = true)]
async fn who_backs_off_is_tried_at_once_when_that_is_asked_for() {
    let mut fixture = Fixture::new();
    for name in ["p", "q"] {
        fixture.set(&asking(name, "1"));
        fixture.refuse("NodeResourcesFit");
    }
    fixture.queue.happened(&pod_gone());
    assert_eq!(fixture.depth(), (0, 2, 0));
    fixture.queue.retry(&PodInfo::of(&asking("q", "1")).uid);
    assert_eq!(fixture.depth(), (1, 1, 0));
    assert_eq!(fixture.pop().as_deref(), Some("q"));
}

#[tokio::test(start_paused = true)]
async fn who_is_unschedulable_for_five_minutes_is_tried_again() {
    let mut fixture = Fixture::new();
    fixture.set(&asking("p", "1"));
    fixture.refuse("NodeResourcesFit");
    assert_eq!(fixture.queue.due(), Some(Instant::now() + Duration::from_secs(300)));
    advance(Duration::from_secs(299)).await;
    assert_eq!(fixture.pop(), None);
    advance(Duration::from_secs(1)).await;
    assert_eq!(fixture.pop().as_deref(), Some("p"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_gates_is_not_tried_until_the_last_is_gone() {
    let mut fixture = Fixture::new();
    let gated = |gates: &[&str]| {
        let gates: Vec<_> = gates.iter().map(|name| json!({"name": name})).collect();
        pod("p", &json!({"spec": {"schedulingGates": gates}}))
    };
    fixture.set(&gated(&["a", "b"]));
    assert_eq!((fixture.depth(), fixture.queue.due()), ((0, 0, 1), None));
    assert!(!fixture.queue.happened(&node_added(&json!({}))));
    fixture.set(&gated(&["a"]));
    assert_eq!(fixture.depth(), (0, 0, 1));
    fixture.set(&gated(&[]));
    assert_eq!(fixture.pop().as_deref(), Some("p"));
}

#[tokio::test(start_paused = true)]
async fn what_the_scheduler_writes_into_a_pod_does_not_wake_it() {
    let mut fixture = Fixture::new();
    fixture.set(&asking("p", "1"));
    fixture.refuse("NodeResourcesFit");
    let mut told = asking("p", "1");
    told.status = Some(crate::testing::object(json!({"nominatedNodeName": "n"})));
    fixture.set(&told);
    assert_eq!(fixture.depth(), (0, 0, 1));
    let mut tolerant = told.clone();
    tolerant.spec.as_mut().unwrap().tolerations =
        Some(vec![crate::testing::object(json!({"operator": "Exists"}))]);
    fixture.set(&tolerant);
    assert_eq!(fixture.depth(), (0, 0, 1)); // it was not for a taint that it was refused
    fixture.queue.remove("p");
    assert_eq!(fixture.depth(), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn who_makes_others_go_is_not_looked_at_until_they_are_gone() {
    let mut fixture = Fixture::new();
    fixture.set(&asking("p", "1"));
    fixture.refuse("NodeResourcesFit");
    fixture.handle.preempting.begin("p".into());
    assert!(!fixture.queue.happened(&pod_gone()));
    let read = fixture.reads.load(Ordering::Relaxed);
    for _ in 0..100 {
        assert!(!fixture.queue.happened(&pod_gone()));
    }
    assert_eq!(fixture.reads.load(Ordering::Relaxed), read);
    assert_eq!(fixture.queue.depth().gated, 1);
    fixture.handle.preempting.waits_for(&"p".into(), &"gone".into());
    assert!(!fixture.queue.happened(&pod_gone()));
    for preemptor in fixture.handle.preempting.goes("gone") {
        fixture.queue.ungate(&preemptor);
    }
    assert!(fixture.queue.happened(&pod_gone()));
    assert_eq!(fixture.pop().as_deref(), Some("p"));
}

#[tokio::test(start_paused = true)]
async fn what_happened_meanwhile_is_looked_at_until_something_helps() {
    let mut fixture = Fixture::new();
    fixture.set(&asking("p", "1"));
    let pending = fixture.queue.pop().unwrap();
    for _ in 0..1000 {
        fixture.queue.happened(&pod_gone());
    }
    let read = fixture.reads.load(Ordering::Relaxed);
    fixture.queue.put_back(pending, Some(&refused("NodeResourcesFit")));
    assert_eq!(fixture.reads.load(Ordering::Relaxed), read + 1);
    assert_eq!(fixture.depth(), (0, 1, 0));
}

/// Is interested in nothing, and counts how often it is asked.
struct Indifferent(Arc<AtomicUsize>);

impl Plugin for Indifferent {
    fn name(&self) -> &'static str {
        "Indifferent"
    }

    fn points(&self) -> Points {
        Points::FILTER
    }

    fn interests(&self) -> &[Interest] {
        self.0.fetch_add(1, Ordering::Relaxed);
        &[]
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_is_compared_with_who_refused_pods_and_not_with_every_pod() {
    let asked = Arc::new(AtomicUsize::new(0));
    let mut fixture = Fixture::with(&[Arc::new(Indifferent(Arc::clone(&asked)))]);
    for number in 0..500 {
        fixture.set(&asking(&format!("p{number}"), "1"));
        fixture.refuse("Indifferent");
    }
    assert_eq!(fixture.depth(), (0, 0, 500));
    asked.store(0, Ordering::Relaxed);
    assert!(!fixture.queue.happened(&pod_gone()));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    // Who is gone is nobody's business any more.
    for number in 0..500 {
        fixture.queue.remove(&format!("p{number}"));
    }
    assert!(!fixture.queue.happened(&pod_gone()));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_could_not_be_bound_is_not_new_when_it_says_so() {
    let mut fixture = Fixture::new();
    fixture.set(&asking("p", "1"));
    let pending = fixture.queue.pop().unwrap();
    fixture.queue.done(&pending.info.uid);
    fixture.queue.resume(&pending.info);
    fixture.set(&pod("p", &json!({"metadata": {"annotations": {"told": "why"}}})));
    assert_eq!(fixture.queue.depth(), Depth::default());
    fixture.queue.put_back(pending, None);
    assert_eq!(fixture.queue.depth(), Depth { backoff: 1, ..Depth::default() });
    assert_eq!(fixture.pop(), None, "something went wrong with it");
}

#[tokio::test(start_paused = true)]
async fn who_is_tried_only_since_it_has_waited_for_long_is_known_until_it_is_refused_again() {
    let mut fixture = Fixture::new();
    fixture.set(&asking("p", "1"));
    let first = fixture.queue.pop().unwrap();
    assert!(!first.was_flushed);
    fixture.queue.put_back(first, Some(&refused("NodeResourcesFit")));
    advance(Duration::from_secs(301)).await;
    let flushed = fixture.queue.pop().unwrap();
    assert!(flushed.was_flushed);
    fixture.queue.put_back(flushed, Some(&refused("NodeResourcesFit")));
    assert!(fixture.queue.happened(&pod_gone()));
    advance(Duration::from_secs(10)).await;
    assert!(!fixture.queue.pop().unwrap().was_flushed);
}

#[tokio::test(start_paused = true)]
async fn it_is_told_how_long_plug_ins_think_about_an_event() {
    let metrics = steersman::Metrics::default();
    let mut fixture = Fixture::new();
    fixture.queue.measure(metrics.families());
    fixture.set(&asking("p", "1"));
    fixture.refuse("NodeResourcesFit");
    let small = json!({"status": {"allocatable": {"cpu": "100m"}}});
    assert!(!fixture.queue.happened(&node_added(&small)));
    assert!(fixture.queue.happened(&node_added(&json!({}))));
    let told = metrics.render_text();
    for hint in ["Queue", "QueueSkip"] {
        let line = format!(
            "scheduler_queueing_hint_execution_duration_seconds_count{{\
             plugin=\"NodeResourcesFit\",event=\"NodeAdd\",hint={hint:?}}} 1"
        );
        assert!(told.contains(&line), "{line} is not in\n{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_happens_while_a_pod_is_decided_upon_is_counted() {
    let mut fixture = Fixture::new();
    fixture.set(&asking("p", "1"));
    let pending = fixture.queue.pop().unwrap();
    fixture.queue.happened(&pod_gone());
    fixture.queue.happened(&pod_gone());
    fixture.queue.happened(&node_added(&json!({})));
    let counted = |name: &str, count: usize| (name.to_owned(), count);
    let expected =
        [counted("AssignedPodDelete", 2), counted("NodeAdd", 1), counted("PodPopped", 1)];
    assert_eq!(fixture.queue.in_flight(), expected.into());
    fixture.queue.done(&pending.info.uid);
    assert_eq!(fixture.queue.in_flight(), [counted("PodPopped", 0)].into());
}
