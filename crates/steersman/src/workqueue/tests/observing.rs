use std::time::Duration;

use serde_json::json;
use tokio::time::advance;

use crate::Metrics;
use crate::workqueue::{AddOptions, FastSlow, Priority, WorkQueue};

const SECOND: Duration = Duration::from_secs(1);

fn low() -> AddOptions {
    AddOptions { priority: Some(Priority::LOW), ..AddOptions::default() }
}

#[track_caller]
fn assert_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|other| other == *line), "no line\n{line}\nin\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_have_the_names_and_meanings_of_client_go() {
    let metrics = Metrics::default();
    let queue = WorkQueue::builder().name("web").metrics(&metrics).build();
    for key in ["a", "b", "c", "a"] {
        queue.add(key);
    }
    queue.add_with("d", low());
    advance(2 * SECOND).await;
    let a = queue.get().await.unwrap();
    let b = queue.get().await.unwrap();
    advance(3 * SECOND).await;
    queue.add_rate_limited(a);
    queue.done(&a);
    queue.add(b);
    advance(4 * SECOND).await;
    let web = r#"name="web",controller="web""#;
    assert_lines(
        &metrics.render(),
        &[
            // "c", and "a" whose retry is due; "b" runs.
            &format!(r#"workqueue_depth{{{web},priority="0"}} 2"#),
            &format!(r#"workqueue_depth{{{web},priority="-100"}} 1"#),
            &format!("workqueue_adds_total{{{web}}} 6"),
            &format!("workqueue_retries_total{{{web}}} 1"),
            &format!("workqueue_queue_duration_seconds_count{{{web}}} 2"),
            &format!("workqueue_queue_duration_seconds_sum{{{web}}} 4.0"),
            &format!("workqueue_work_duration_seconds_count{{{web}}} 1"),
            &format!("workqueue_work_duration_seconds_sum{{{web}}} 3.0"),
            &format!("workqueue_unfinished_work_seconds{{{web}}} 7.0"),
            &format!("workqueue_longest_running_processor_seconds{{{web}}} 7.0"),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn queues_of_one_name_are_reported_as_one_and_their_sums_never_go_back() {
    let metrics = Metrics::default();
    let queue = || WorkQueue::<u32>::builder().name("web").metrics(&metrics).build();
    let first = queue();
    let second = queue();
    first.add(1);
    second.add(1);
    second.add(2);
    second.add_after(3, SECOND);
    let web = r#"name="web",controller="web""#;
    let depth = format!(r#"workqueue_depth{{{web},priority="0"}}"#);
    let adds = |adds| format!("workqueue_adds_total{{{web}}} {adds}");
    let retries = format!("workqueue_retries_total{{{web}}} 1");
    assert_lines(&metrics.render(), &[&adds(3), &retries, &format!("{depth} 3")]);
    drop(first);
    assert_lines(&metrics.render(), &[&adds(3), &retries, &format!("{depth} 2")]);
    second.add(4);
    drop(second); // what it counted since somebody asked is not lost
    for _ in 0..2 {
        let text = metrics.render();
        assert_lines(&text, &[&adds(4), &retries]);
        assert!(!text.contains(&depth), "nothing waits in a queue that is gone:\n{text}");
    }
    let third = queue();
    third.add(1);
    assert_lines(&metrics.render(), &[&adds(5), &retries, &format!("{depth} 1")]);
}

#[tokio::test(start_paused = true)]
async fn a_dump_shows_what_waits_runs_and_backs_off_and_why() {
    let limiter = FastSlow::new(8 * SECOND, SECOND);
    let metrics = Metrics::default();
    let queue = WorkQueue::builder().name("web").rate_limiter(limiter).metrics(&metrics).build();
    queue.add("fails");
    let fails = queue.get().await.unwrap();
    queue.add_rate_limited(fails);
    queue.done(&fails);
    queue.add("runs");
    let runs = queue.get().await.unwrap();
    queue.add(runs);
    advance(2 * SECOND).await;
    queue.add_with("waits", low());
    queue.add_after("later", 5 * SECOND);
    advance(SECOND).await;
    let dump = queue.dump_with(|key| (*key == "waits").then(|| "Pod added".to_owned()));
    assert_eq!(
        serde_json::to_value(dump).unwrap(),
        json!({"name": "web", "keys": [
            {"key": "runs", "state": "running", "again": true, "priority": 0, "seconds": 3.0,
             "failures": 0},
            {"key": "waits", "state": "waiting", "again": false, "priority": -100, "seconds": 1.0,
             "failures": 0, "reason": "Pod added"},
            {"key": "later", "state": "delayed", "again": false, "priority": 0,
             "dueInSeconds": 4.0, "failures": 0},
            {"key": "fails", "state": "backingOff", "again": false, "priority": 0,
             "dueInSeconds": 5.0, "failures": 1},
        ]})
    );
}
