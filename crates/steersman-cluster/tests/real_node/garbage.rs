//! What is removed when there is too much of it: containers that have ended, sandboxes, logs, images.

use std::time::Duration;

use kube::api::DeleteParams;
use serde_json::json;

use crate::containerd::{self, images};
use crate::machine::{Machine, is_ready, shell, spec, status};

const SERVE: &str = "trap 'exit 0' TERM; while true; do sleep 0.1; done";
const OFTEN: Duration = Duration::from_millis(500);

/// A Pod whose container fails twice before it succeeds.
fn at_the_third_time() -> serde_json::Value {
    let script = "echo x >> /count/runs; echo run; test $(wc -l < /count/runs) = 3";
    let mut pod = spec("OnFailure", &json!([shell("main", script)]));
    pod["containers"][0]["volumeMounts"] = json!([{"name": "count", "mountPath": "/count"}]);
    pod["volumes"] = json!([{"name": "count", "emptyDir": {}}]);
    pod
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_that_have_ended_are_removed_but_for_the_last_of_each() {
    let mut machine = Machine::start_kept("dead", |keep| {
        keep.maximum_dead_containers_per_container = Some(3);
        keep.container_gc_period = OFTEN;
    })
    .await;
    machine.run("thrice", at_the_third_time()).await;
    let pod = machine.until_phase("thrice", "Succeeded").await;
    assert_eq!(status(&pod, "main").unwrap().restart_count, 2);
    assert_eq!(machine.log_names(&pod, "main"), ["0.log", "1.log", "2.log"]);
    assert_eq!((machine.ids("container").len(), machine.log_links().len()), (3, 3));
    // Nothing is started any more that would remove what ran before it.
    machine.restart_kept(|keep| keep.maximum_dead_containers_per_container = Some(1)).await;
    machine
        .until_true("the last is left", async || machine.log_names(&pod, "main") == ["2.log"])
        .await;
    let id = status(&pod, "main").unwrap().container_id.clone().unwrap();
    let id = id.trim_start_matches("containerd://");
    assert_eq!(machine.ids("container"), [id]);
    assert_eq!(machine.log_links(), [format!("thrice_default_main-{id}.log")]);
    let after = machine.until_phase("thrice", "Succeeded").await;
    assert_eq!(status(&after, "main").unwrap().restart_count, 2, "nobody forgets how it ended");
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_containers_that_have_ended_are_kept_on_a_node() {
    let mut machine = Machine::start_kept("full", |keep| keep.container_gc_period = OFTEN).await;
    for name in ["first", "second", "third"] {
        machine.run(name, spec("Never", &json!([shell("main", "echo done")]))).await;
        machine.until_phase(name, "Succeeded").await;
    }
    machine.run("runs", spec("Always", &json!([shell("main", SERVE)]))).await;
    machine.until("runs", is_ready).await;
    assert_eq!(machine.ids("container").len(), 4);
    machine.restart_kept(|keep| keep.maximum_dead_containers = Some(1)).await;
    machine
        .until_true("one that ended and one that runs", async || {
            machine.ids("container").len() == 2
        })
        .await;
    let third = machine.until_phase("third", "Succeeded").await;
    assert_eq!(machine.log_names(&third, "main"), ["0.log"], "the oldest go first");
    let first = machine.until_phase("first", "Succeeded").await;
    assert!(machine.log_names(&first, "main").is_empty());
    machine.until("runs", is_ready).await;
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sandboxes_that_died_are_removed_when_nothing_is_in_them() {
    let machine = Machine::start_kept("boxes", |keep| keep.container_gc_period = OFTEN).await;
    machine.run("web", spec("Always", &json!([shell("main", SERVE)]))).await;
    machine.until("web", is_ready).await;
    let mut all = machine.ids("sandbox");
    for restarts in 1..=2 {
        let newest = all.last().expect("a sandbox").clone();
        machine.containerd.ctr(&["tasks", "kill", "-s", "KILL", &newest]);
        machine
            .until("web", |pod| {
                status(pod, "main").is_some_and(|it| it.restart_count == restarts && it.ready)
            })
            .await;
        let new = machine.ids("sandbox").into_iter().filter(|id| !all.contains(id));
        all.extend(new.collect::<Vec<_>>());
    }
    assert_eq!(all.len(), 3);
    // That of the container before the last goes, that of the last stays with it.
    machine
        .until_true("two sandboxes are left", async || {
            let left = machine.ids("sandbox");
            left.len() == 2 && !left.contains(&all[0])
        })
        .await;
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn images_that_nobody_uses_are_removed_when_the_disk_is_full() {
    const IMAGE: usize = 8 << 20;
    let containerd = containerd::with_disk(96 << 20);
    let mut machine = Machine::start_on(containerd, "images", |_| {}).await;
    let pod = |image: &str, script: &str| {
        let mut pod = spec("Always", &json!([shell("main", script)]));
        pod["containers"][0]["image"] = json!(image);
        pod
    };
    for name in ["localhost/used:1", "localhost/unused:1", "localhost/once:1"] {
        containerd.import(&images::large(name, IMAGE));
    }
    machine.run("uses", pod("localhost/used:1", SERVE)).await;
    machine.until("uses", is_ready).await;
    machine.run("used", pod("localhost/once:1", SERVE)).await;
    machine.until("used", is_ready).await;
    // Each takes its layer twice, packed and unpacked: far more than what is set as the threshold.
    machine
        .restart_kept(|keep| {
            keep.image_gc_period = OFTEN;
            keep.image_minimum_gc_age = Duration::ZERO;
            keep.image_gc_high_threshold_percent = 55;
            keep.image_gc_low_threshold_percent = 50;
        })
        .await;
    machine
        .until_true("an image that nobody uses is gone", async || {
            !containerd.images().contains(&"localhost/unused:1".to_owned())
        })
        .await;
    assert!(containerd.images().contains(&"localhost/once:1".to_owned()), "a Pod uses it");
    machine.delete("used", &DeleteParams::default()).await;
    machine.until_gone("used").await;
    // More is wanted than can go.
    machine
        .restart_kept(|keep| {
            keep.image_gc_high_threshold_percent = 20;
            keep.image_gc_low_threshold_percent = 0;
        })
        .await;
    machine
        .until_true("the other image is gone too", async || {
            !containerd.images().contains(&"localhost/once:1".to_owned())
        })
        .await;
    machine
        .until_true("people are told that it is not enough", async || {
            let events = machine.events("images").await;
            events.iter().any(|event| event.starts_with("FreeDiskSpaceFailed: Insufficient free"))
        })
        .await;
    let left = containerd.images();
    for name in ["localhost/used:1", "localhost/pause:1"] {
        assert!(left.contains(&name.to_owned()), "{name} is needed: {left:?}");
    }
    machine.until("uses", is_ready).await;
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_rotated_and_the_oldest_removed_while_the_container_goes_on() {
    const SIZE: u64 = 20_000;
    let machine = Machine::start_kept("rotated", |keep| {
        keep.container_log_max_size = SIZE;
        keep.container_log_max_files = 3;
        keep.container_log_monitor_interval = OFTEN;
    })
    .await;
    let script = format!(
        "n=0; while test $n -lt 4000; do n=$((n+1)); echo line $n; \
         test $((n % 100)) = 0 && sleep 0.15; done; {SERVE}"
    );
    machine.run("talks", spec("Always", &json!([shell("main", &script)]))).await;
    let pod = machine.until("talks", is_ready).await;
    let rotated = || {
        let names = machine.log_names(&pod, "main");
        let [log, packed, plain] = names.as_slice() else { return None };
        let whole = log == "0.log" && packed.ends_with(".gz") && plain.starts_with("0.log.2");
        whole.then(|| (packed.clone(), plain.clone()))
    };
    machine.until_true("there are three files", async || rotated().is_some()).await;
    let first = machine.log_names(&pod, "main");
    machine
        .until_true("the oldest of them is gone", async || {
            rotated().is_some_and(|(packed, _)| !first.contains(&packed))
        })
        .await;
    // When all is written, the last two files have the end of it, and nothing is lost in between.
    let written = || {
        let (_, plain) = rotated()?;
        let text = |file: &str| std::fs::read_to_string(machine.logs(&pod, "main").join(file));
        let (plain, log) = (text(&plain).ok()?, text("0.log").ok()?);
        let last = |line: &str| line.rsplit(' ').next().and_then(|word| word.parse().ok());
        let numbers: Vec<u64> = plain.lines().chain(log.lines()).filter_map(last).collect();
        (numbers.last() == Some(&4000) && (log.len() as u64) < SIZE).then_some(numbers)
    };
    machine.until_true("all is written", async || written().is_some()).await;
    let numbers = written().expect("it is written");
    assert!(numbers.windows(2).all(|two| two[0] + 1 == two[1]), "{numbers:?}");
    assert!(is_ready(&machine.until("talks", is_ready).await));
    machine.end().await;
}
