//! The disk space that compaction gives back.

use std::time::Duration;

use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::reopening::{list, put};
use super::scratch::Scratch;
use super::script::{Model, Progress, Run, options};
use super::simulated::Disk;
use crate::disk::files::Files;
use crate::disk::{DiskStore, Options};
use crate::{Expected, Revision, Store, WriteRequest};

#[tokio::test]
async fn a_store_takes_no_more_than_its_state_its_history_and_what_a_snapshot_is_worth() {
    let mut run = Run::open(&Disk::default(), Model::new(), Progress::default()).unwrap();
    let mut random = StdRng::seed_from_u64(8);
    let mut largest = 0;
    for _ in 0..1_000 {
        run.step(&mut random).await;
        let history = run.committer.index.stats();
        let history = (history.revision.0 - history.oldest.0) * 250;
        // Twelve keys of a hundred bytes are less than the least that a snapshot is written for.
        let allowed = 2 * options().snapshot_bytes + 2 * options().segment_bytes + history + 1_500;
        let bytes = run.disk.image().bytes() as u64;
        assert!(bytes <= allowed, "{bytes} bytes, allowed are {allowed}");
        largest = largest.max(bytes);
    }
    assert!(run.snapshots > 10 && largest > options().snapshot_bytes, "{largest}");
    // Those who write would wait for the disk to give up a large file at once.
    let (removed, piece) = (run.disk.largest_removed() as u64, run.disk.pieces().bytes);
    assert!(removed <= piece && piece < options().segment_bytes, "{removed} bytes at once");
}

fn bytes(scratch: &Scratch) -> u64 {
    let files = std::fs::read_dir(&scratch.0).unwrap();
    // One that goes meanwhile takes no space.
    files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len())).sum()
}

fn small_files() -> Options {
    let sizes = (20_000, 50_000);
    Options { sync: false, segment_bytes: sizes.0, snapshot_bytes: sizes.1, ..Options::default() }
}

/// Snapshots are written beside the committer: this waits until they have caught up.
#[tokio::test(flavor = "multi_thread")]
async fn space_is_given_back_while_writers_go_on() {
    let scratch = Scratch::new();
    let options = small_files();
    let (store, _) = DiskStore::open(&scratch.0, options.clone()).await.unwrap();
    let value = "x".repeat(500);
    for number in 0..10_000 {
        let revision = put(&store, &format!("/registry/{}", number % 50), &value).await;
        if number % 100 == 99 {
            store.compact(Revision(revision.0 - 50)).await.unwrap();
        }
    }
    let shrunk = async {
        while bytes(&scratch) > 250_000 {
            // Without, what is written while the test waits would be what it waits for.
            let revision = put(&store, "/registry/0", &value).await;
            store.compact(Revision(revision.0 - 50)).await.unwrap();
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), shrunk).await;
    waited.unwrap_or_else(|_| panic!("{} bytes", bytes(&scratch)));
    let (kept, oldest) = (list(&store, None).await, store.stats().oldest);
    let at_oldest = list(&store, Some(oldest)).await;
    store.close().await;
    let (store, opened) = DiskStore::open(&scratch.0, options).await.unwrap();
    assert!(opened.snapshot.is_some());
    assert_eq!(list(&store, None).await, kept);
    assert_eq!(list(&store, Some(oldest)).await, at_oldest, "history survives a restart");
}

/// With every write the oldest revision that is kept becomes a later one, so no snapshot of it can
/// be read page by page.
#[tokio::test(flavor = "multi_thread")]
async fn space_is_given_back_though_history_is_always_full() {
    let scratch = Scratch::new();
    let options = Options { history_bytes: 4_000, ..small_files() };
    let (store, _) = DiskStore::open(&scratch.0, options.clone()).await.unwrap();
    let value = "x".repeat(100);
    // Several pages of a snapshot.
    let key = |number: usize| format!("/registry/{:04}", number % 3_000);
    let mut largest = 0;
    for number in 0..60_000 {
        put(&store, &key(number), &value).await;
        if number > 10_000 && number % 100 == 0 {
            largest = largest.max(bytes(&scratch));
        }
    }
    // The state takes half a megabyte, and so does the log that a snapshot is worth, twice while
    // one is being written.
    assert!(largest < 4_000_000, "{largest} bytes");
    assert!(store.stats().history_bytes <= 4_000, "{:?}", store.stats());
    let kept = list(&store, None).await;
    store.close().await;
    let (store, opened) = DiskStore::open(&scratch.0, options).await.unwrap();
    assert!(opened.snapshot.is_some());
    assert_eq!(list(&store, None).await, kept);
}

/// Memory goes back by the page, and what a request's thread allocates for moments lies beside the
/// value that it writes.
#[tokio::test]
async fn a_large_value_is_kept_apart_from_what_its_writer_allocated() {
    let scratch = Scratch::new();
    let (store, _) = DiskStore::open(&scratch.0, small_files()).await.unwrap();
    for (size, apart) in [(100, false), (100_000, true)] {
        let value = Bytes::from(vec![7; size]);
        let key = format!("/registry/{size}");
        let request = WriteRequest::put(&*key, value.clone(), Expected::Absent);
        store.write(request).await.unwrap();
        assert_eq!(value.is_unique(), apart, "{size}");
        assert_eq!(store.get(&key).await.unwrap().unwrap().value, value);
    }
}
