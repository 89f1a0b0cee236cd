use std::time::Duration;

use futures::FutureExt;
use tokio::time::advance;

use crate::workqueue::{AddOptions, HEAD_START, Priority, WorkQueue};

fn with(priority: Priority) -> AddOptions {
    AddOptions { priority: Some(priority), ..AddOptions::default() }
}

/// Takes all that is ready, saying done with each.
fn take_all<T: crate::workqueue::Key>(queue: &WorkQueue<T>) -> Vec<T> {
    let next = || queue.get().now_or_never().flatten().inspect(|key| queue.done(key));
    std::iter::from_fn(next).collect()
}

#[tokio::test(start_paused = true)]
async fn live_changes_come_before_the_initial_list_and_each_in_its_order() {
    let queue = WorkQueue::default();
    for key in ["list 1", "list 2"] {
        queue.add_with(key, with(Priority::LOW));
    }
    for key in ["live 1", "live 2"] {
        queue.add(key);
    }
    queue.add_with("urgent", with(Priority(1)));
    assert_eq!(take_all(&queue), ["urgent", "live 1", "live 2", "list 1", "list 2"]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_long_enough_comes_before_newer_work_of_higher_priority() {
    let queue = WorkQueue::default();
    queue.add_with("list", with(Priority::LOW));
    advance(100 * HEAD_START).await;
    queue.add("live, at the end of its head start");
    advance(Duration::from_millis(1)).await;
    queue.add("live, later");
    assert_eq!(take_all(&queue), ["live, at the end of its head start", "list", "live, later"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_asked_for_again_gets_the_higher_priority_and_never_loses_it() {
    let queue = WorkQueue::default();
    queue.add_with("other", with(Priority(-1)));
    queue.add_with("raised", with(Priority::LOW));
    queue.add("raised");
    queue.add_with("raised", with(Priority::LOW));
    assert_eq!(queue.len(), 2);
    assert_eq!(take_all(&queue), ["raised", "other"]);
}

#[tokio::test(start_paused = true)]
async fn a_raised_key_keeps_the_place_that_its_age_has_earned() {
    let queue = WorkQueue::default();
    queue.add_with("old", with(Priority(-1)));
    advance(HEAD_START * 3).await;
    queue.add("new");
    queue.add("old"); // now behind "new" in the lane of live changes, but far ahead by age
    assert_eq!(take_all(&queue), ["old", "new"]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_and_a_later_visit_keep_the_priority_of_the_run() {
    let queue = WorkQueue::default();
    queue.add_with("list", with(Priority::LOW));
    let key = queue.get().await.unwrap();
    queue.add_rate_limited(key);
    queue.done(&key);
    assert_eq!(queue.dump().keys[0].priority, Priority::LOW);
    advance(Duration::from_secs(1)).await;
    let key = queue.get().await.unwrap();
    queue.add_after(key, Duration::from_secs(1));
    queue.done(&key);
    assert_eq!(queue.dump().keys[0].priority, Priority::LOW);
    queue.add(key);
    assert_eq!(queue.dump().keys[0].priority, Priority::NORMAL, "a live change is live");
}

#[tokio::test(start_paused = true)]
async fn groups_take_turns_so_that_a_flood_of_one_does_not_hold_up_the_others() {
    let queue = WorkQueue::builder().fair_by(|key: &(&str, u32)| key.0).build();
    for n in 0..4 {
        queue.add(("flood", n));
    }
    queue.add(("a", 0));
    queue.add(("b", 0));
    queue.add(("a", 1));
    let expected =
        [("flood", 0), ("a", 0), ("b", 0), ("flood", 1), ("a", 1), ("flood", 2), ("flood", 3)];
    assert_eq!(take_all(&queue), expected);
}

#[tokio::test(start_paused = true)]
async fn groups_take_turns_within_a_priority_only() {
    let queue = WorkQueue::builder().fair_by(|key: &(&str, u32)| key.0).build();
    queue.add_with(("a", 0), with(Priority::LOW));
    queue.add_with(("b", 0), with(Priority::LOW));
    queue.add(("a", 1));
    queue.add(("a", 2));
    queue.add(("a", 0)); // raised: its place in the lower lane must not come up once more
    assert_eq!(take_all(&queue), [("a", 1), ("a", 2), ("a", 0), ("b", 0)]);
}

#[tokio::test(start_paused = true)]
async fn keys_that_waited_untimed_count_as_added_when_another_priority_appears() {
    let queue = WorkQueue::default();
    queue.add("normal");
    advance(Duration::from_secs(60)).await;
    queue.add_with("urgent", with(Priority(1)));
    assert_eq!(take_all(&queue), ["urgent", "normal"]);
    queue.add("normal");
    queue.add_with("urgent", with(Priority(1)));
    advance(HEAD_START * 2).await;
    queue.add_with("urgent, later", with(Priority(1)));
    assert_eq!(take_all(&queue), ["urgent", "normal", "urgent, later"]);
}

#[tokio::test(start_paused = true)]
async fn a_running_key_that_is_raised_leaves_the_others_their_rank() {
    let queue = WorkQueue::default();
    queue.add("x");
    let x = queue.get().await.unwrap();
    queue.add(x); // wanted again, untimed
    advance(Duration::from_secs(60)).await;
    queue.add_with(x, with(Priority(1)));
    queue.add("normal"); // untimed as well
    queue.done(&x);
    queue.add_with("low", with(Priority::LOW));
    queue.add_with("urgent", with(Priority(1)));
    assert_eq!(take_all(&queue), ["x", "urgent", "normal", "low"]);
}

#[tokio::test(start_paused = true)]
async fn keys_that_waited_untimed_age_although_urgent_ones_come_and_go() {
    let queue = WorkQueue::default();
    for key in ["normal 1", "normal 2", "normal 3"] {
        queue.add(key);
    }
    queue.add_with("urgent", with(Priority(1)));
    for expected in ["urgent", "normal 1"] {
        assert_eq!(queue.get().await, Some(expected));
        queue.done(&expected);
    }
    advance(HEAD_START * 2).await;
    queue.add_with("urgent", with(Priority(1)));
    assert_eq!(take_all(&queue), ["normal 2", "normal 3", "urgent"]);
}

#[tokio::test(start_paused = true)]
async fn raising_the_only_key_does_not_end_the_noting_of_times() {
    let queue = WorkQueue::default();
    queue.add_with("only", with(Priority::LOW));
    queue.add("only");
    queue.add("normal");
    advance(HEAD_START * 2).await;
    queue.add_with("urgent", with(Priority(1)));
    assert_eq!(take_all(&queue), ["only", "normal", "urgent"]);
}
