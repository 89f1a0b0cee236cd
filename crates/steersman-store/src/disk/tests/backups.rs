//! Backups: saved beside a running store, restored as another one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::reopening::{list, open, put};
use super::scratch::Scratch;
use super::simulated::{Disk, Image};
use crate::disk::files::Files;
use crate::disk::format::{Kind, Place};
use crate::disk::open::recover;
use crate::disk::{DiskStore, OpenError, Options, backup};
use crate::{Expected, RangeRequest, Revision, Store, StoreError, WriteRequest};

/// A store with one key, still open, and a backup of it elsewhere.
async fn saved(scratch: &Scratch, elsewhere: &Scratch) -> (DiskStore, PathBuf) {
    std::fs::create_dir(&elsewhere.0).unwrap();
    let (store, _) = open(&scratch.0).await;
    put(&store, "/a", "1").await;
    let file = elsewhere.0.join("backup");
    backup::save(&scratch.0, &file).unwrap();
    (store, file)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_store_holds_what_was_saved_at_a_later_revision() {
    let [scratch, restored, elsewhere] = [(); 3].map(|()| Scratch::new());
    std::fs::create_dir(&elsewhere.0).unwrap();
    let file = elsewhere.0.join("backup");
    let (store, _) = open(&scratch.0).await;
    let first = put(&store, "/a", "1").await;
    put(&store, "/b", "1").await;
    store.write(WriteRequest::delete("/b", Expected::Any)).await.unwrap();
    let last = put(&store, "/a", "2").await;
    let entry = store.get("/a").await.unwrap();
    let saved = backup::save(&scratch.0, &file).unwrap();
    assert_eq!((saved.revision, saved.keys), (last, 1));
    put(&store, "/later", "1").await;
    assert_eq!(backup::status(&file).unwrap(), saved);
    assert_eq!(std::fs::read_dir(&elsewhere.0).unwrap().count(), 1, "nothing is left beside it");

    let status = backup::restore(&file, &restored.0, 1_000).unwrap();
    assert_eq!(status.revision, Revision(last.0 + 1_000));
    let (store, opened) = open(&restored.0).await;
    assert_eq!(opened.revision, status.revision);
    assert_eq!(store.get("/a").await.unwrap(), entry, "created and modified are kept");
    assert_eq!(list(&store, None).await, ["/a=2"]);
    let request = RangeRequest { at: Some(last), ..RangeRequest::default() };
    let refused = store.range(request).await.unwrap_err();
    assert!(matches!(refused, StoreError::Compacted { .. }), "{refused}");
    assert_eq!(put(&store, "/c", "1").await, Revision(status.revision.0 + 1));
    assert!(first < last);
    store.close().await;
    let (store, _) = open(&restored.0).await;
    assert_eq!(list(&store, None).await, ["/a=2", "/c=1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_not_restored_over_anything() {
    let [scratch, elsewhere] = [(); 2].map(|()| Scratch::new());
    let (_store, file) = saved(&scratch, &elsewhere).await;
    let refused = backup::restore(&file, &scratch.0, 0).unwrap_err();
    assert!(matches!(refused, OpenError::NotEmpty { .. }), "{refused}");
    let refused = backup::save(&elsewhere.0, &scratch.0.join("none")).unwrap_err();
    assert!(matches!(refused, OpenError::NotAStore { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_saved_or_restored_changes_nothing() {
    let [scratch, elsewhere, restored] = [(); 3].map(|()| Scratch::new());
    std::fs::create_dir(&elsewhere.0).unwrap();
    let (store, _) = open(&scratch.0).await;
    put(&store, "/a", "1").await;
    let names = |path: &Path| {
        let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
        names.collect::<BTreeSet<_>>()
    };
    let before = names(&scratch.0);
    for name in ["backup", "00000000000000000002.log"] {
        let refused = backup::save(&scratch.0, &scratch.0.join(name)).unwrap_err();
        assert!(matches!(refused, OpenError::Io { .. }), "{refused}");
    }
    assert_eq!(names(&scratch.0), before);
    let file = elsewhere.0.join("backup");
    backup::save(&scratch.0, &file).unwrap();
    for bump in [u64::MAX, i64::MAX as u64] {
        backup::restore(&file, &restored.0, bump).unwrap_err();
        assert!(!restored.0.exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_ends_half_way_is_not_taken_for_an_empty_store() {
    let [scratch, elsewhere] = [(); 2].map(|()| Scratch::new());
    let (_store, file) = saved(&scratch, &elsewhere).await;
    let (disk, images) = (Disk::default(), Arc::new(Mutex::new(Vec::new())));
    let recorded = Arc::clone(&images);
    disk.observe(Box::new(move |image| recorded.lock().unwrap().push(image.clone())));
    let place = Place { kind: Kind::Snapshot, store: 7, revision: Revision(9) };
    backup::fill(&disk, place, &file).unwrap();
    let images = std::mem::take(&mut *images.lock().unwrap());
    let begun = |image: &Image| image.names().iter().any(|name| name.contains("snapshot"));
    let (mut refused, mut random) = (0, StdRng::seed_from_u64(9));
    for image in images.iter().filter(|image| begun(image)) {
        for image in [image.clone(), image.crash(&mut random)] {
            let files: Arc<dyn Files> = Arc::new(Disk::of(image));
            match recover(&files, &Options::default(), 8) {
                Ok(recovered) => assert!(recovered.index.get("/a").is_some()),
                Err(OpenError::Corrupt { .. }) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(refused > 4, "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_backup_is_refused() {
    let [scratch, elsewhere, restored] = [(); 3].map(|()| Scratch::new());
    std::fs::create_dir(&elsewhere.0).unwrap();
    let (store, _) = open(&scratch.0).await;
    put(&store, "/a", "value").await;
    let file = elsewhere.0.join("backup");
    backup::save(&scratch.0, &file).unwrap();
    let whole = std::fs::read(&file).unwrap();
    for offset in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[offset] ^= 16;
        std::fs::write(&file, &damaged).unwrap();
        let refused = backup::status(&file).unwrap_err();
        assert!(matches!(refused, OpenError::Corrupt { .. }), "{offset}: {refused}");
        std::fs::write(&file, &whole[..offset]).unwrap();
        backup::restore(&file, &restored.0, 0).unwrap_err();
    }
    assert!(!restored.0.exists(), "what cannot be read is not begun");
}

/// Segments and snapshots come and go while they are read.
#[tokio::test(flavor = "multi_thread")]
async fn backups_beside_a_busy_store_are_whole() {
    let [scratch, elsewhere] = [(); 2].map(|()| Scratch::new());
    std::fs::create_dir(&elsewhere.0).unwrap();
    let options =
        Options { sync: false, segment_bytes: 4_000, snapshot_bytes: 10_000, ..Options::default() };
    let (store, _) = DiskStore::open(&scratch.0, options).await.unwrap();
    for key in ["/first", "/second"] {
        put(&store, key, "0").await;
    }
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            for number in 1.. {
                // The first is always written before the second.
                put(&store, "/first", &format!("{number}")).await;
                let revision = put(&store, "/second", &format!("{number}")).await;
                put(&store, "/filler", &"x".repeat(300)).await;
                if number % 10 == 0 {
                    store.compact(revision).await.unwrap();
                }
            }
        }
    });
    let file = elsewhere.0.join("backup");
    for _ in 0..30 {
        let acknowledged = put(&store, "/before", "1").await;
        let (from, to) = (scratch.0.clone(), file.clone());
        let saved = tokio::task::spawn_blocking(move || backup::save(&from, &to)).await.unwrap();
        let saved = saved.unwrap();
        assert!(saved.revision >= acknowledged, "{saved:?} lacks {acknowledged}");
        let restored = Scratch::new();
        backup::restore(&file, &restored.0, 0).unwrap();
        let (copy, _) = open(&restored.0).await;
        let number = async |key| {
            let value = copy.get(key).await.unwrap().unwrap().value;
            String::from_utf8(value.to_vec()).unwrap().parse::<u64>().unwrap()
        };
        let (first, second) = (number("/first").await, number("/second").await);
        assert!(first == second || first == second + 1, "{first} and {second}");
    }
    writer.abort();
}
