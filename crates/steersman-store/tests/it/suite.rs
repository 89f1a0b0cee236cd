//! The specifications of a store. Each takes an empty store and speaks of revisions only
//! relative to each other, so that any implementation can run it.
//!
//! Reading the latest revision is also a way to wait: a store that hears of its own writes from
//! elsewhere has then heard of all that were acknowledged.

mod compaction;
mod fanout;
mod races;
mod range;
mod size;
mod snapshot;
mod ttl;
mod watch;
mod write;

pub(crate) use self::{
    compaction::*, fanout::*, races::*, range::*, size::*, snapshot::*, ttl::*, watch::*, write::*,
};

use std::sync::Arc;

use bytes::Bytes;
use steersman_store::{
    Event, Expected, RangeRequest, Revision, StoreError, Watch, WatchRequest, WriteRequest, Written,
};

use crate::stores::StoreUnderTest;

async fn try_write(
    store: &StoreUnderTest,
    key: &str,
    value: Option<&str>,
    expected: Expected,
) -> Result<Written, StoreError> {
    let value = value.map(|value| Bytes::copy_from_slice(value.as_bytes()));
    store.write(WriteRequest { key: key.into(), value, expected, ttl: None }).await
}

async fn put(store: &StoreUnderTest, key: &str, value: &str) -> Revision {
    try_write(store, key, Some(value), Expected::Any).await.unwrap().revision
}

async fn delete(store: &StoreUnderTest, key: &str) -> Revision {
    try_write(store, key, None, Expected::Any).await.unwrap().revision
}

async fn value(store: &StoreUnderTest, key: &str) -> Option<String> {
    store.get(key).await.unwrap().map(|entry| text(&entry.value))
}

/// The revision of the last write.
async fn latest(store: &StoreUnderTest) -> Revision {
    store.range(RangeRequest { limit: 1, ..RangeRequest::default() }).await.unwrap().revision
}

/// Checks that nothing was written after this revision, as far as that can be told.
async fn assert_latest(store: &StoreUnderTest, expected: Revision) {
    let latest = latest(store).await;
    assert!(latest == expected || (latest > expected && !store.alone), "{latest}, not {expected}");
}

/// Everything under a prefix as `key=value`.
async fn list(store: &StoreUnderTest, prefix: &str, at: Option<Revision>) -> Vec<String> {
    let request = RangeRequest { prefix: prefix.into(), at, ..RangeRequest::default() };
    let response = store.range(request).await.unwrap();
    assert!(!response.more);
    response.entries.iter().map(|entry| format!("{}={}", entry.key, text(&entry.value))).collect()
}

async fn watch(store: &StoreUnderTest, prefix: &str, after: Revision) -> Box<dyn Watch> {
    store.watch(WatchRequest { prefix: prefix.into(), after }).await.unwrap()
}

/// Reads a watch until it has returned this many changes; more is a failure.
async fn read(watch: &mut Box<dyn Watch>, count: usize) -> Vec<Arc<Event>> {
    let mut events = Vec::new();
    while events.len() < count {
        let batch = watch.next().await.unwrap();
        assert!(!batch.is_empty(), "a batch is never empty");
        events.extend(batch);
    }
    assert_eq!(events.len(), count, "more changes than were made");
    events
}

/// A change as `key=new value (old value)`, with `-` where there is none.
fn told(event: &Event) -> String {
    let shown = |entry: &Option<steersman_store::Entry>| {
        entry.as_ref().map_or("-".to_owned(), |entry| text(&entry.value))
    };
    format!("{}={} ({})", event.key, shown(&event.current), shown(&event.previous))
}

fn text(value: &Bytes) -> String {
    String::from_utf8(value.to_vec()).unwrap()
}
