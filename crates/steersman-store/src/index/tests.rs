//! What stores that decide elsewhere rely on.

use std::sync::Arc;

use super::{Change, Index};
use crate::{Entry, RangeRequest, Revision, StoreError, WatchRequest};

fn change(revision: u64, key: &str, value: Option<&'static str>) -> Change {
    Change { revision: Revision(revision), key: key.into(), value: value.map(Into::into) }
}

fn watch(index: &Arc<Index>, after: u64) -> Box<dyn crate::Watch> {
    index.watch(WatchRequest { prefix: "/".into(), after: Revision(after) }).unwrap()
}

#[tokio::test]
async fn changes_of_one_revision_are_never_in_two_batches() {
    let index = Arc::new(Index::new(crate::HISTORY_BYTES));
    let mut before = watch(&index, 1);
    let many = super::state::BATCH_MAX + 100;
    index.apply((0..many).map(|n| change(7, &format!("/{n}"), Some("v"))));
    index.apply([change(8, "/after", Some("v"))]);
    let batch = before.next().await.unwrap();
    assert_eq!(batch.len(), many);
    assert!(batch.iter().all(|event| event.revision == Revision(7)));
    assert_eq!(before.next().await.unwrap()[0].revision, Revision(8));
}

#[tokio::test]
async fn a_revision_without_a_change_of_ours_moves_watches_on() {
    let index = Arc::new(Index::new(crate::HISTORY_BYTES));
    let mut watch = watch(&index, 1);
    index.apply([change(5, "/absent", None)]);
    assert_eq!((index.revision(), index.stats().history), (Revision(5), 0));
    index.advance(Revision(9));
    assert_eq!(watch.delivered(), Revision(9));
    index.advance(Revision(3));
    assert_eq!(index.revision(), Revision(9));
}

#[tokio::test]
async fn a_reset_ends_watches_and_starts_over_even_at_an_earlier_revision() {
    let index = Arc::new(Index::new(crate::HISTORY_BYTES));
    index.apply([change(50, "/old", Some("v"))]);
    let mut lost = watch(&index, 50);
    let (created, modified) = (Revision(3), Revision(4));
    let entry = Entry { key: "/new".into(), value: "v".into(), created, modified };
    index.reset(vec![entry.clone()], Revision(20));
    assert_eq!(lost.delivered(), Revision(50));
    index.apply([change(60, "/late", Some("v"))]);
    let (requested, oldest) = (Revision(50), Revision(20));
    assert_eq!(lost.next().await.unwrap_err(), StoreError::Compacted { requested, oldest });
    let at = Some(Revision(20));
    let range = index.range(&RangeRequest { at, ..RangeRequest::default() }).unwrap();
    assert_eq!(range.entries, [entry]);
    assert_eq!(watch(&index, 20).next().await.unwrap()[0].revision, Revision(60));
}

#[tokio::test]
async fn a_watch_after_a_reset_does_not_hear_of_what_was_dropped_before() {
    let index = Arc::new(Index::new(crate::HISTORY_BYTES));
    let lost = watch(&index, 1);
    index.apply([change(50, "/old", Some("v"))]);
    index.compact(Revision(50)).await.unwrap();
    index.reset(Vec::new(), Revision(20));
    let mut begun = watch(&index, 20);
    index.apply([change(30, "/new", Some("v"))]);
    assert_eq!(begun.next().await.unwrap()[0].revision, Revision(30));
    drop(lost);
}

#[tokio::test]
async fn a_fork_shares_the_past_and_not_the_future() {
    let index = Arc::new(Index::new(crate::HISTORY_BYTES));
    index.apply([change(2, "/a", Some("1")), change(3, "/a", Some("2"))]);
    let fork = Arc::new(index.fork());
    index.apply([change(4, "/a", Some("3"))]);
    fork.apply([change(4, "/b", Some("4"))]);
    assert_eq!(index.get("/a").unwrap().value, "3");
    assert_eq!(fork.get("/a").unwrap().value, "2");
    let events = watch(&fork, 1).next().await.unwrap();
    let keys: Vec<&str> = events.iter().map(|event| &*event.key).collect();
    assert_eq!(keys, ["/a", "/a", "/b"]);
}

#[test]
fn a_long_range_lets_writers_in_and_still_reads_one_revision() {
    let index = Index::new(crate::HISTORY_BYTES);
    let keys = 3 * super::STEP_MAX as u64 + 5;
    index.apply((0..keys).map(|n| change(n + 2, &format!("/{n:06}"), Some("old"))));
    let newest = keys + 1;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..keys {
                let key = format!("/{:06}", keys - 1 - n);
                index.apply([change(newest + 1 + n, &key, Some("new"))]);
            }
        });
        while !writer.is_finished() {
            let read = index.range(&RangeRequest::default()).unwrap();
            assert_eq!(read.entries.len() as u64, keys);
            let new = read.entries.iter().filter(|entry| entry.value == "new").count() as u64;
            assert_eq!(read.revision.0, newest + new, "every write before the revision, no other");
        }
    });
}

#[test]
fn a_long_page_counts_what_it_cuts_off() {
    let index = Index::new(crate::HISTORY_BYTES);
    let all = 2 * super::STEP_MAX + 100;
    index.apply((0..all).map(|n| change(n as u64 + 2, &format!("/a/{n:06}"), Some("v"))));
    for (limit, remaining) in [(super::STEP_MAX + 1, all - super::STEP_MAX - 1), (all, 0), (0, 0)] {
        let request = RangeRequest { limit, count: true, ..RangeRequest::default() };
        let page = index.range(&request).unwrap();
        assert_eq!((page.remaining, page.more), (Some(remaining), remaining > 0));
    }
}
