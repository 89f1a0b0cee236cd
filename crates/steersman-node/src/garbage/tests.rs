use std::collections::HashSet;
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};

use super::containers::{DeadContainer, DeadSandbox};
use super::images::Unused;
use super::{
    ContainerGarbage, ContainerPolicy, ContainerState, ContainerStore, Disk, Failures,
    FoundContainer, FoundImage, FoundSandbox, Garbage, ImageGcError, ImagePolicy, ImageRecords,
    ImageStore, Need, PodState, collect_containers, collect_images, plan, remove_unused_images,
};

/// Minutes after the agent was started.
fn at(minute: i64) -> Timestamp {
    "2026-11-17T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minute)
}

fn image(id: &str, size: i64) -> FoundImage {
    FoundImage { id: id.into(), size, pinned: false }
}

fn used(ids: &[&str]) -> HashSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn ids(images: &[Unused]) -> Vec<&str> {
    images.iter().map(|image| image.id.as_str()).collect()
}

#[test]
fn a_disk_is_emptied_from_the_high_to_the_low_threshold() {
    let policy = ImagePolicy::default();
    for (capacity, available, expected) in [
        (1000, 200, None),
        (1000, 160, None),
        // Part of a percent counts as used.
        (1000, 159, Some((41, 85))),
        (1000, 150, Some((50, 85))),
        (1000, 0, Some((200, 100))),
        (1000, 5000, None),
        (i64::MAX, 0, Some((i64::MAX / 5, 100))),
    ] {
        let need = policy.need(Disk { capacity, available });
        let expected = expected.map(|(bytes, usage_percent)| Need { bytes, usage_percent });
        assert_eq!(need, expected, "{available} of {capacity}");
    }
}

#[test]
fn what_was_used_the_longest_time_ago_goes_first_and_some_images_never_go() {
    let mut records = ImageRecords::default();
    let all = ["never", "late", "early", "now"].map(|id| image(id, 1));
    records.note(&all, &used(&["early", "late"]), at(0));
    records.note(&all, &used(&["late"]), at(10));
    let pinned = FoundImage { pinned: true, ..image("pause", 1) };
    let all = [all.as_slice(), &[pinned, image("new", 1)]].concat();
    records.note(&all, &used(&["now"]), at(20));

    let policy = ImagePolicy::default();
    assert_eq!(ids(&records.expendable(&policy, at(20))), ["never", "early", "late"]);
    assert_eq!(ids(&records.expendable(&policy, at(22))), ["never", "new", "early", "late"]);

    // What is gone is forgotten: when it comes again it is new.
    records.note(&[image("now", 1)], &used(&[]), at(30));
    records.note(&[image("now", 1), image("never", 1)], &used(&[]), at(31));
    assert_eq!(ids(&records.expendable(&policy, at(32))), ["now"]);
}

#[test]
fn images_go_when_they_were_not_used_for_too_long() {
    let mut records = ImageRecords::default();
    let all = [image("a", 1), image("b", 1), image("c", 1)];
    records.note(&all, &used(&["a", "c"]), at(0));
    records.note(&all, &used(&["c"]), at(90));
    let policy = ImagePolicy { max_age: Some(SignedDuration::from_mins(60)), ..Default::default() };
    let old = |policy: &ImagePolicy, minute| {
        let old = records.too_old(policy, at(0), at(minute));
        ids(&old).join(" ")
    };
    assert_eq!(old(&policy, 60), "", "the agent has not run for so long");
    assert_eq!(old(&policy, 61), "b a");
    assert_eq!(old(&policy, 200), "b a", "what is used stays");
    assert_eq!(old(&ImagePolicy::default(), 200), "");
}

/// A node's images and containers.
#[derive(Default)]
struct Node {
    images: Mutex<Vec<FoundImage>>,
    used: Vec<&'static str>,
    capacity: i64,
    /// What is on the disk beside images.
    other: i64,
    /// What cannot be removed.
    stuck: Vec<&'static str>,
    done: Mutex<Vec<String>>,
}

impl Node {
    fn does(&self, what: &str, id: &str) -> Result<(), String> {
        if self.stuck.contains(&id) {
            return Err(format!("{id} is stuck"));
        }
        self.done.lock().unwrap().push(format!("{what} {id}"));
        Ok(())
    }

    fn done(&self) -> String {
        self.done.lock().unwrap().join(", ")
    }
}

impl ImageStore for Node {
    async fn list(&self) -> Result<Vec<FoundImage>, String> {
        Ok(self.images.lock().unwrap().clone())
    }

    async fn used(&self) -> Result<HashSet<String>, String> {
        Ok(used(&self.used))
    }

    async fn disk(&self) -> Result<Disk, String> {
        let images: i64 = self.images.lock().unwrap().iter().map(|image| image.size).sum();
        Ok(Disk { capacity: self.capacity, available: self.capacity - images - self.other })
    }

    async fn remove(&self, id: &str) -> Result<(), String> {
        self.does("image", id)?;
        self.images.lock().unwrap().retain(|image| image.id != id);
        Ok(())
    }
}

impl ContainerStore for Node {
    async fn stop_container(&self, id: &str) -> Result<(), String> {
        self.does("stop", id)
    }

    async fn remove_container(&self, id: &str) -> Result<(), String> {
        self.does("container", id)
    }

    async fn remove_sandbox(&self, id: &str) -> Result<(), String> {
        self.does("sandbox", id)
    }

    async fn remove_logs(&self, directory: &str) -> Result<(), String> {
        self.does("logs", directory)
    }
}

fn node(images: &[(&str, i64)]) -> Node {
    let images = images.iter().map(|(id, size)| image(id, *size)).collect();
    Node { images: Mutex::new(images), capacity: 1000, used: vec!["u"], ..Node::default() }
}

/// Collects at the beginning, and again when everything is old enough.
async fn collected(node: &Node, policy: &ImagePolicy) -> Result<(), ImageGcError> {
    let mut records = ImageRecords::default();
    let quiet = ImagePolicy { high_percent: 101, ..*policy };
    collect_images(&mut records, &quiet, node, at(0), at(0)).await.unwrap();
    collect_images(&mut records, policy, node, at(0), at(100)).await
}

#[tokio::test]
async fn as_many_images_are_removed_as_are_needed() {
    let policy = ImagePolicy::default();
    let roomy = node(&[("a", 100), ("b", 100), ("u", 600)]);
    assert_eq!(collected(&roomy, &policy).await, Ok(()));
    assert_eq!(roomy.done(), "");

    let full = node(&[("a", 100), ("b", 100), ("c", 100), ("u", 600)]);
    assert_eq!(collected(&full, &policy).await, Ok(()));
    assert_eq!(full.done(), "image a");

    // The disk is read after what was too old is gone.
    let old = ImagePolicy { max_age: Some(SignedDuration::from_mins(60)), ..policy };
    let full = node(&[("a", 100), ("b", 100), ("c", 100), ("u", 600)]);
    assert_eq!(collected(&full, &old).await, Ok(()));
    assert_eq!(full.done(), "image a, image b, image c");

    let pressed = node(&[("a", 100), ("b", 100), ("u", 100)]);
    let mut records = ImageRecords::default();
    let freed = remove_unused_images(&mut records, &policy, &pressed, at(0)).await;
    assert_eq!(freed, Ok(0), "all of them are new");
    let freed = remove_unused_images(&mut records, &policy, &pressed, at(5)).await;
    assert_eq!(freed, Ok(200));
}

#[tokio::test]
async fn people_hear_why_there_is_not_enough_room() {
    let policy = ImagePolicy::default();
    let full = Node { other: 300 << 30, capacity: 310 << 30, ..node(&[("a", 100), ("u", 600)]) };
    let error = collected(&full, &policy).await.unwrap_err();
    let message = "Insufficient free disk space on the node's image filesystem (97% of 310.0 GiB \
        used). Failed to free sufficient space by deleting unused images (freed 100 bytes). \
        Investigate disk usage, as it could be used by active images, logs, volumes, or other data.";
    assert_eq!(error.to_string(), message);
    let event = error.event().unwrap();
    assert_eq!((event.reason, event.message.as_str()), ("FreeDiskSpaceFailed", message));

    let broken =
        Node { stuck: vec!["a", "b"], ..node(&[("a", 100), ("b", 50), ("c", 60), ("u", 700)]) };
    let error = collected(&broken, &policy).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "wanted to free 110 bytes, but freed 60 bytes space with errors in image deletion: \
         [a is stuck, b is stuck]"
    );
    assert_eq!(error.event(), None);

    let none = Node { capacity: 0, ..node(&[]) };
    let mut records = ImageRecords::default();
    let error = collect_images(&mut records, &policy, &none, at(0), at(0)).await.unwrap_err();
    let event = error.event().unwrap();
    assert_eq!(event.reason, "InvalidDiskCapacity");
    assert_eq!(event.message, "invalid capacity 0 on image filesystem");
}

#[test]
fn the_first_failure_is_forgiven() {
    let mut failures = Failures::default();
    let failed = Err(ImageGcError::Runtime("away".into()));
    assert_eq!(failures.ended(&failed), None);
    let event = failures.ended(&failed).unwrap();
    assert_eq!((event.reason, event.message.as_str()), ("ImageGCFailed", "away"));
    assert_eq!(failures.ended(&Ok(())), None);
    assert_eq!(failures.ended(&failed), None);
}

/// A container that has ended, called `{pod}/{name}/{minute of its creation}`.
fn dead(id: &str) -> FoundContainer {
    let parts: Vec<&str> = id.split('/').collect();
    FoundContainer {
        id: id.into(),
        name: parts[1].into(),
        pod_uid: parts[0].into(),
        sandbox: format!("{}-box", parts[0]),
        created: at(parts[2].parse().unwrap()),
        state: ContainerState::Ended,
    }
}

fn sandbox(id: &str, pod: &str, minute: i64) -> FoundSandbox {
    FoundSandbox { id: id.into(), pod_uid: pod.into(), created: at(minute), ready: false }
}

/// Pods that begin with `g` are gone, those with `e` have ended.
fn pod(uid: &str) -> PodState {
    match uid.chars().next() {
        Some('g') => PodState::Gone,
        Some('e') => PodState::Ended,
        _ => PodState::Needed,
    }
}

fn garbage<'a>(containers: &'a [FoundContainer], sandboxes: &'a [FoundSandbox]) -> Garbage<'a> {
    Garbage { containers, sandboxes, logs: &[], pod: &pod, pods_known: true, pressed: false }
}

fn containers(found: &ContainerGarbage) -> String {
    found.containers.iter().map(|it| it.id.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_newest_of_each_container_is_kept() {
    let keep = |per_container, per_node| ContainerPolicy {
        per_container,
        per_node,
        ..ContainerPolicy::default()
    };
    let all = ["a/x/1", "a/x/3", "a/x/2", "a/y/1", "b/x/5", "b/x/4"].map(dead);
    for (policy, expected) in [
        (ContainerPolicy::default(), "a/x/1 a/x/2 b/x/4"),
        (keep(Some(2), None), "a/x/1"),
        (keep(Some(0), None), "a/x/1 a/x/2 a/x/3 a/y/1 b/x/4 b/x/5"),
        (keep(None, None), ""),
        // On the node: the same number of each, then the oldest of all.
        (keep(None, Some(6)), ""),
        (keep(None, Some(5)), "a/x/1 a/x/2 b/x/4"),
        (keep(None, Some(2)), "a/x/1 a/x/2 b/x/4 a/y/1"),
        (keep(Some(1), Some(1)), "a/x/1 a/x/2 b/x/4 a/y/1 a/x/3"),
        (keep(None, Some(0)), "a/x/1 a/x/2 b/x/4 a/y/1 a/x/3 b/x/5"),
        (
            ContainerPolicy { min_age: SignedDuration::from_mins(7), ..keep(Some(0), None) },
            "a/x/1 a/x/2 a/x/3 a/y/1",
        ),
    ] {
        let found = plan(&garbage(&all, &[]), &policy, at(10));
        assert_eq!(containers(&found), expected, "{policy:?}");
    }
}

#[test]
fn what_is_about_to_start_is_not_counted_among_the_dead() {
    let created = |id| FoundContainer { state: ContainerState::Created, ..dead(id) };
    let removed = |all: &[FoundContainer]| {
        containers(&plan(&garbage(all, &[]), &ContainerPolicy::default(), at(10)))
    };
    assert_eq!(removed(&[dead("a/x/1"), dead("a/x/2"), created("a/x/3")]), "a/x/1");
    assert_eq!(removed(&[created("a/x/1"), dead("a/x/2")]), "a/x/1", "another came after it");
    assert_eq!(removed(&[created("a/x/1")]), "");
    assert_eq!(removed(&[created("g/x/1")]), "g/x/1", "its Pod is gone");
}

#[test]
fn what_runs_is_kept_and_what_may_run_is_stopped() {
    let running = FoundContainer { state: ContainerState::Running, ..dead("g/x/1") };
    let unknown = FoundContainer { state: ContainerState::Unknown, ..dead("g/x/2") };
    let found = plan(&garbage(&[running, unknown], &[]), &ContainerPolicy::default(), at(10));
    assert_eq!(found.containers, [DeadContainer { id: "g/x/2".into(), stop: true }]);
}

#[test]
fn pods_that_are_gone_keep_nothing_and_those_that_ended_keep_it_until_room_is_needed() {
    let all = ["g/x/1", "g/x/2", "e/x/3"].map(dead);
    let sandboxes = [("g-box", "g"), ("empty", "gg"), ("e-box", "e"), ("a-box", "a")]
        .map(|(id, pod)| sandbox(id, pod, 1));
    let logs = ["shop_web_g", "shop_web_e", "shop_web_a"].map(str::to_owned);
    let all = Garbage { logs: &logs, ..garbage(&all, &sandboxes) };
    let boxes = |found: &ContainerGarbage| {
        found.sandboxes.iter().map(|it| it.id.as_str()).collect::<Vec<_>>().join(" ")
    };
    for (found, expected) in [
        (all, ["g/x/1 g/x/2", "g-box empty", "shop_web_g"]),
        (
            Garbage { pressed: true, ..all },
            ["e/x/3 g/x/1 g/x/2", "e-box g-box empty", "shop_web_g"],
        ),
        // As long as not all Pods have been read, nobody is known to be gone; but the older of two
        // of the same name is too many anyhow.
        (Garbage { pods_known: false, ..all }, ["g/x/1", "", ""]),
    ] {
        let found = plan(&found, &ContainerPolicy::default(), at(10));
        assert_eq!([&containers(&found), &boxes(&found), &found.logs.join(" ")], expected);
    }
}

#[test]
fn a_sandbox_goes_when_it_is_neither_ready_nor_the_newest_nor_has_containers() {
    let mut sandboxes = [sandbox("old", "a", 1), sandbox("older", "a", 0), sandbox("new", "a", 2)];
    let names = |sandboxes: &[FoundSandbox], containers: &[FoundContainer]| {
        let found = plan(&garbage(containers, sandboxes), &ContainerPolicy::default(), at(10));
        found.sandboxes.into_iter().map(|it| it.id).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&sandboxes, &[]), "older old");
    let inside = FoundContainer { sandbox: "old".into(), ..dead("a/x/1") };
    assert_eq!(names(&sandboxes, std::slice::from_ref(&inside)), "older");
    let newer = FoundContainer { sandbox: "new".into(), ..dead("a/x/2") };
    assert_eq!(names(&sandboxes, &[inside, newer]), "older old", "its container goes before it");
    sandboxes[1].ready = true;
    assert_eq!(names(&sandboxes, &[]), "old");
}

#[tokio::test]
async fn what_cannot_be_removed_is_left_for_the_next_time() {
    let found = ContainerGarbage {
        containers: vec![
            DeadContainer { id: "a".into(), stop: false },
            DeadContainer { id: "b".into(), stop: true },
            DeadContainer { id: "c".into(), stop: false },
        ],
        sandboxes: vec![
            DeadSandbox { id: "a-box".into(), containers: vec!["a".into()] },
            DeadSandbox { id: "b-box".into(), containers: vec!["b".into(), "c".into()] },
        ],
        logs: vec!["shop_web_g".into()],
    };
    let node = Node { stuck: vec!["a"], ..Node::default() };
    assert_eq!(collect_containers(&found, &node).await, 4);
    assert_eq!(node.done(), "stop b, container b, container c, sandbox b-box, logs shop_web_g");
}
