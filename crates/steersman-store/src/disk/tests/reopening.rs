//! What is there after a store was closed and opened again, on a real disk.

use std::path::Path;
use std::time::Duration;

use super::scratch::Scratch;
use crate::disk::{DiskStore, OpenError, Opened, Options};
use crate::{Expected, RangeRequest, Revision, Store, StoreError, WatchRequest, WriteRequest};

pub(super) async fn open(path: &Path) -> (DiskStore, Opened) {
    DiskStore::open(path, Options::default()).await.unwrap()
}

pub(super) async fn put(store: &DiskStore, key: &str, value: &str) -> Revision {
    let request = WriteRequest::put(key, value.to_owned(), Expected::Any);
    store.write(request).await.unwrap().revision
}

pub(super) async fn list(store: &DiskStore, at: Option<Revision>) -> Vec<String> {
    let request = RangeRequest { at, ..RangeRequest::default() };
    let entries = store.range(request).await.unwrap().entries;
    let show = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    entries.iter().map(|entry| format!("{}={}", entry.key, show(&entry.value))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_there_again_with_its_history() {
    let scratch = Scratch::new();
    let (store, opened) = open(&scratch.0).await;
    assert_eq!((opened.changes, opened.revision), (0, Revision(1)));
    let first = put(&store, "/a", "1").await;
    put(&store, "/b", "1").await;
    store.write(WriteRequest::delete("/b", Expected::Any)).await.unwrap();
    let last = put(&store, "/a", "2").await;
    let entry = store.get("/a").await.unwrap();
    store.close().await;

    let (store, opened) = open(&scratch.0).await;
    assert_eq!((opened.changes, opened.revision, opened.cut_off), (4, last, 0));
    assert_eq!(store.get("/a").await.unwrap(), entry);
    assert_eq!(list(&store, None).await, ["/a=2"]);
    assert_eq!(list(&store, Some(Revision(first.0 + 1))).await, ["/a=1", "/b=1"]);
    let request = WatchRequest { prefix: "/".into(), after: first };
    let events = store.watch(request).await.unwrap().next().await.unwrap();
    assert_eq!(events.len(), 3);
    assert_eq!(put(&store, "/c", "1").await, Revision(last.0 + 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_compacted_stays_compacted() {
    let scratch = Scratch::new();
    let (store, _) = open(&scratch.0).await;
    put(&store, "/a", "1").await;
    let kept = put(&store, "/a", "2").await;
    put(&store, "/a", "3").await;
    store.compact(kept).await.unwrap();
    store.close().await;
    let (store, _) = open(&scratch.0).await;
    assert_eq!(store.stats().oldest, kept);
    assert_eq!(list(&store, Some(kept)).await, ["/a=2"]);
    let before = RangeRequest { at: Some(Revision(kept.0 - 1)), ..RangeRequest::default() };
    let refused = store.range(before).await.unwrap_err();
    assert!(matches!(refused, StoreError::Compacted { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_to_open_a_directory_is_told_who_was_first() {
    let scratch = Scratch::new();
    let (store, _) = open(&scratch.0).await;
    let refused = DiskStore::open(&scratch.0, Options::default()).await.unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, OpenError::Locked { .. }), "{refused:?}");
    assert!(text.contains(&std::process::id().to_string()), "{text}");
    assert!(text.contains(scratch.0.to_str().unwrap()), "{text}");
    store.close().await;
    open(&scratch.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_store_is_read_and_not_written() {
    let scratch = Scratch::new();
    let (store, _) = open(&scratch.0).await;
    put(&store, "/a", "1").await;
    store.clone().close().await;
    assert_eq!(list(&store, None).await, ["/a=1"]);
    let refused = store.write(WriteRequest::put("/a", "2", Expected::Any)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Failed { .. }), "{refused}");
    let refused = store.compact(Revision(2)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Failed { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_something_else_is_left_alone() {
    let scratch = Scratch::new();
    std::fs::create_dir(&scratch.0).unwrap();
    std::fs::write(scratch.0.join("thesis.txt"), "dear to someone").unwrap();
    let refused = DiskStore::open(&scratch.0, Options::default()).await.unwrap_err();
    assert!(refused.to_string().contains("thesis.txt"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_go_still_go_after_a_restart() {
    const TTL: Duration = Duration::from_millis(200);
    let scratch = Scratch::new();
    let (store, _) = open(&scratch.0).await;
    put(&store, "/stays", "1").await;
    let goes = WriteRequest::put("/goes", "1", Expected::Any).expiring(TTL);
    let written = store.write(goes).await.unwrap();
    // Also when the key is found in the state rather than in the history.
    store.compact(written.revision).await.unwrap();
    store.close().await;
    let (store, _) = open(&scratch.0).await;
    let request = WatchRequest { prefix: "/goes".into(), after: written.revision };
    let mut watch = store.watch(request).await.unwrap();
    let gone = tokio::time::timeout(Duration::from_secs(20), watch.next()).await.unwrap().unwrap();
    assert!(gone[0].current.is_none());
    assert_eq!(list(&store, None).await, ["/stays=1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_may_stay_longer_than_any_clock_runs() {
    let scratch = Scratch::new();
    let (store, _) = open(&scratch.0).await;
    let request = WriteRequest::put("/a", "1", Expected::Any).expiring(Duration::MAX);
    store.write(request).await.unwrap();
    put(&store, "/b", "1").await;
    store.close().await;
    let (store, _) = open(&scratch.0).await;
    assert_eq!(list(&store, None).await, ["/a=1", "/b=1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_and_what_is_large_is_kept() {
    let scratch = Scratch::new();
    let options = Options { sync: false, ..Options::default() };
    let (store, _) = DiskStore::open(&scratch.0, options.clone()).await.unwrap();
    let huge = vec![7; 64 * 1024 * 1024];
    let refused = store.write(WriteRequest::put("/a", huge, Expected::Any)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused}");
    let large = vec![7; 60 * 1024 * 1024];
    store.write(WriteRequest::put("/a", large.clone(), Expected::Any)).await.unwrap();
    store.close().await;
    let (store, _) = DiskStore::open(&scratch.0, options).await.unwrap();
    assert_eq!(store.get("/a").await.unwrap().unwrap().value, large);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_write_to_a_directory_that_was_removed_is_not_acknowledged() {
    let scratch = Scratch::new();
    let (store, _) = open(&scratch.0).await;
    put(&store, "/a", "1").await;
    std::fs::remove_dir_all(&scratch.0).unwrap();
    let refused = store.write(WriteRequest::put("/a", "2", Expected::Any)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Failed { .. }), "{refused}");
    assert_eq!(list(&store, None).await, ["/a=1"]);
    assert!(store.health().is_err());
    store.close().await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn nobody_but_the_owner_can_read_what_is_kept() {
    use std::os::unix::fs::PermissionsExt;

    let scratch = Scratch::new();
    let (store, _) = open(&scratch.0).await;
    put(&store, "/secret", "1").await;
    store.close().await;
    let backup = scratch.0.with_extension("backup");
    crate::disk::backup::save(&scratch.0, &backup).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&scratch.0), mode(&backup)), (0o700, 0o600));
    for file in std::fs::read_dir(&scratch.0).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    std::fs::remove_file(&backup).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_in_a_directory_that_is_somebody_elses() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(&scratch.0).unwrap();
    std::fs::write(scratch.0.join("notes.txt"), "mine").unwrap();
    let refused = DiskStore::open(&scratch.0, Options::default()).await.unwrap_err();
    assert!(matches!(refused, OpenError::NotAStore { .. }), "{refused}");
    assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_system_of_its_own_counts_as_empty() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.0.join("lost+found")).unwrap();
    let (store, _) = open(&scratch.0).await;
    put(&store, "/a", "1").await;
    store.close().await;
    let volume = Scratch::new();
    std::fs::create_dir_all(volume.0.join("lost+found")).unwrap();
    let backup = volume.0.with_extension("backup");
    crate::disk::backup::save(&scratch.0, &backup).unwrap();
    crate::disk::backup::restore(&backup, &volume.0, 10).unwrap();
    assert_eq!(list(&open(&volume.0).await.0, None).await, ["/a=1"]);
    std::fs::remove_file(&backup).unwrap();
}
