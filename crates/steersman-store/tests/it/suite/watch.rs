//! Watches: order, no gaps, no duplicates, resuming, waiting.

use futures::FutureExt;
use rand::RngExt as _;

use super::*;
use crate::seed;

pub(crate) async fn a_watch_after_the_latest_revision_sees_only_what_follows(
    store: StoreUnderTest,
) {
    let before = put(&store, "/a", "1").await;
    let mut watch = watch(&store, "/", before).await;
    put(&store, "/a", "2").await;
    assert_eq!(told(&read(&mut watch, 1).await[0]), "/a=2 (1)");
}

pub(crate) async fn a_watch_resumes_where_another_stopped(store: StoreUnderTest) {
    let mut after = latest(&store).await;
    for number in 0..10 {
        put(&store, "/a", &number.to_string()).await;
    }
    let whole = read(&mut watch(&store, "/", after).await, 10).await;
    for (position, event) in whole.iter().enumerate() {
        let rest = read(&mut watch(&store, "/", after).await, 10 - position).await;
        assert_eq!(rest[0].revision, event.revision);
        after = event.revision;
    }
}

pub(crate) async fn a_watch_sees_puts_and_deletes_with_what_they_replaced(store: StoreUnderTest) {
    let mut watch = watch(&store, "/", latest(&store).await).await;
    let created = put(&store, "/a", "1").await;
    let updated = put(&store, "/a", "2").await;
    let deleted = delete(&store, "/a").await;
    let events = read(&mut watch, 3).await;
    let revisions: Vec<_> = events.iter().map(|event| event.revision).collect();
    assert_eq!(revisions, [created, updated, deleted]);
    let changes: Vec<_> = events.iter().map(|event| told(event)).collect();
    assert_eq!(changes, ["/a=1 (-)", "/a=2 (1)", "/a=- (2)"]);
    assert_eq!(events[1].current.as_ref().unwrap().created, created);
    assert_eq!(events[2].previous.as_ref().unwrap().modified, updated);
}

pub(crate) async fn a_watch_sees_only_its_prefix(store: StoreUnderTest) {
    let mut pods = watch(&store, "/pods/", latest(&store).await).await;
    for key in ["/pod", "/pods", "/podsecurity/a", "/pods/a", "/secrets/a", "/pods/b/c"] {
        put(&store, key, "1").await;
    }
    let keys: Vec<_> = read(&mut pods, 2).await.iter().map(|event| event.key.to_string()).collect();
    assert_eq!(keys, ["/pods/a", "/pods/b/c"]);
}

pub(crate) async fn a_waiting_watch_is_woken_by_a_write(store: StoreUnderTest) {
    let mut watch = watch(&store, "/a", latest(&store).await).await;
    let waiting = tokio::spawn(async move { told(&read(&mut watch, 1).await[0]) });
    tokio::task::yield_now().await;
    put(&store, "/b", "1").await;
    put(&store, "/a", "1").await;
    assert_eq!(waiting.await.unwrap(), "/a=1 (-)");
}

pub(crate) async fn a_cancelled_wait_loses_nothing(store: StoreUnderTest) {
    let mut watch = watch(&store, "/a", latest(&store).await).await;
    assert!(watch.next().now_or_never().is_none());
    put(&store, "/b", "1").await;
    assert!(watch.next().now_or_never().is_none());
    put(&store, "/a", "1").await;
    drop(watch.next());
    assert_eq!(told(&read(&mut watch, 1).await[0]), "/a=1 (-)");
}

pub(crate) async fn watches_see_every_write_of_many_writers_once_and_in_order(
    store: StoreUnderTest,
) {
    const WRITERS: usize = 8;
    const EACH: usize = 200;
    let start = latest(&store).await;
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut watch = watch(&store, "/", start).await;
                let events = read(&mut watch, WRITERS * EACH).await;
                events.iter().map(|event| event.revision).collect::<Vec<_>>()
            })
        })
        .collect();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut revisions = Vec::new();
                for number in 0..EACH {
                    revisions.push(put(&store, &format!("/{writer}/{number}"), "1").await);
                }
                revisions
            })
        })
        .collect();
    let mut written = Vec::new();
    for writer in writers {
        written.extend(writer.await.unwrap());
    }
    written.sort();
    for reader in readers {
        assert_eq!(reader.await.unwrap(), written);
    }
}

pub(crate) async fn a_watch_knows_how_far_it_has_delivered(store: StoreUnderTest) {
    let start = latest(&store).await;
    let mut watch = watch(&store, "/a", start).await;
    assert!(watch.delivered() == start || !store.alone);

    put(&store, "/b", "1").await;
    let other = latest(&store).await;
    assert!(watch.delivered() >= other, "what does not match needs no delivery");

    let matching = put(&store, "/a", "1").await;
    put(&store, "/b", "2").await;
    let after = latest(&store).await;
    assert!(watch.delivered() < matching, "not delivered yet");
    read(&mut watch, 1).await;
    assert!(watch.delivered() >= after);
}

pub(crate) async fn a_watch_resumes_at_any_moment_without_gap_or_duplicate(store: StoreUnderTest) {
    const WRITES: usize = 400;
    let mut random = seed::random();
    let mut dice = seed::branch(&mut random);
    let start = latest(&store).await;
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            let mut written = Vec::new();
            for number in 0..WRITES {
                let key = format!("/{}", dice.random_range(0..4));
                let exists = store.get(&key).await.unwrap().is_some();
                written.push(match exists && dice.random_bool(0.3) {
                    true => delete(&store, &key).await,
                    false => put(&store, &key, &number.to_string()).await,
                });
            }
            written
        }
    });
    let (mut heard, mut after) = (Vec::new(), start);
    while heard.len() < WRITES {
        let mut watch = watch(&store, "/", after).await;
        for _ in 0..random.random_range(0..3) {
            if heard.len() == WRITES {
                break;
            }
            // A wait that is given up, a batch that is left in the middle: both go on elsewhere.
            watch.next().now_or_never().into_iter().for_each(|batch| {
                let batch = batch.unwrap();
                let taken = random.random_range(1..=batch.len());
                heard.extend(batch[..taken].iter().map(|event| event.revision));
            });
            if heard.last().is_some_and(|last| *last != after) {
                break;
            }
            tokio::task::yield_now().await;
        }
        after = heard.last().copied().unwrap_or(after);
    }
    assert_eq!(heard, writer.await.unwrap());
}
