//! What stores that decide elsewhere rely on.

use std::sync::Arc;

use super::{Change, Index};
use crate::{Entry, Expected, RangeRequest, Revision, StoreError, WatchRequest, WriteRequest};

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

/// A long value that says the same over and over.
fn long(word: &str) -> String {
    word.repeat(10_000)
}

fn put(index: &Index, key: &str, value: String) -> crate::Written {
    index.decide(WriteRequest::put(key, value, Expected::Any)).unwrap()
}

/// How many bytes are held of a key.
fn held(index: &Index, key: &str) -> usize {
    index.read().get(key).unwrap().value.len()
}

#[tokio::test]
async fn a_folder_is_held_compressed_and_nobody_sees_it() {
    let index = Arc::new(Index::new(crate::HISTORY_BYTES));
    put(&index, "/long/before", long("old"));
    put(&index, "/other/a", long("old"));
    let mut watch = watch(&index, 1);
    index.hold_compactly("/long/");
    index.hold_compactly("/long/");
    let first = put(&index, "/long/a", long("one"));
    let second = put(&index, "/long/a", long("two"));
    put(&index, "/long/short", "short".to_owned());
    for key in ["/long/before", "/long/a"] {
        assert!(held(&index, key) < 1000, "{key}: {}", held(&index, key));
    }
    assert_eq!([held(&index, "/other/a"), held(&index, "/long/short")], [30_000, 5]);
    assert!(index.stats().history_bytes < 10_000, "{:?}", index.stats());

    assert_eq!(second.previous.unwrap().value, long("one"));
    assert_eq!(index.get("/long/before").unwrap().value, long("old"));
    let at = index.at("/long/a", Some(first.revision)).unwrap().unwrap();
    assert_eq!(at.value, long("one"));
    assert_eq!(index.modified("/long/a", first.revision), Ok(Some(first.revision)));
    assert_eq!(index.modified("/long/none", first.revision), Ok(None));
    let range = RangeRequest { prefix: "/long/".into(), ..RangeRequest::default() };
    let read = index.range(&range).unwrap().entries;
    let values: Vec<_> = read.iter().map(|entry| entry.value.clone()).collect();
    assert_eq!(values, [long("two"), long("old"), "short".to_owned()]);
    let mut seen = Vec::new();
    while seen.len() < 5 {
        seen.extend(watch.next().await.unwrap());
    }
    assert_eq!(seen[0].current.as_ref().unwrap().value, long("old"));
    assert_eq!(seen[3].previous.as_ref().unwrap().value, long("one"));
    assert_eq!(seen[3].current.as_ref().unwrap().value, long("two"));
    let fork = index.fork();
    assert_eq!(fork.get("/long/a").unwrap().value, long("two"));
    put(&fork, "/long/b", long("fork"));
    assert!(held(&fork, "/long/b") < 1000);
}

#[test]
fn a_value_that_looks_compressed_is_none_the_less_what_it_is() {
    let index = Index::new(crate::HISTORY_BYTES);
    let strange = ["\0compact", "\0compact1234", "\0compac"];
    put(&index, "/long/0", strange[1].to_owned());
    index.hold_compactly("/long/");
    for value in strange {
        put(&index, "/long/1", value.to_owned());
        assert_eq!(index.get("/long/1").unwrap().value, value);
    }
    assert_eq!(index.get("/long/0").unwrap().value, strange[1]);
    put(&index, "/elsewhere", strange[1].to_owned());
    assert_eq!(index.get("/elsewhere").unwrap().value, strange[1]);
}

#[test]
fn what_was_decided_elsewhere_is_held_compressed_as_well() {
    let index = Index::new(crate::HISTORY_BYTES);
    index.hold_compactly("/long/");
    let entry = Entry {
        key: "/long/a".into(),
        value: long("reset").into(),
        created: Revision(2),
        modified: Revision(2),
    };
    index.reset(vec![entry], Revision(2));
    let value = Some(long("applied").into());
    index.apply([Change { revision: Revision(3), key: "/long/b".into(), value }]);
    for (key, word) in [("/long/a", "reset"), ("/long/b", "applied")] {
        assert!(held(&index, key) < 1000, "{key}");
        assert_eq!(index.get(key).unwrap().value, long(word));
    }
}
