//! Values that are encrypted where a store keeps them, whatever it keeps them in.

use std::path::Path;
use std::sync::Arc;

use steersman_store::disk::{DiskStore, backup};
use steersman_store::{Expected, RangeRequest, Revision, Store, StoreError, WriteRequest};

use crate::directory::Directory;
use crate::etcd_process::Etcd;
use crate::stores::{compact_to_snapshot, encrypted, new_root, on_etcd, small_files};

const TEXT: &str = "correct horse battery staple";
const KEYS: usize = 40;

async fn put(store: &dyn Store, key: &str, value: &str) -> Revision {
    let request = WriteRequest::put(key, value.to_owned(), Expected::Any);
    store.write(request).await.unwrap().revision
}

fn key(number: usize) -> String {
    format!("/registry/secrets/default/{number:02}")
}

/// Writes every key, again and again, until the log is worth a snapshot.
async fn fill(store: &dyn Store, rounds: usize) -> Revision {
    let mut last = Revision(0);
    for round in 0..rounds {
        for number in 0..KEYS {
            last = put(store, &key(number), &format!("{TEXT} {round}")).await;
        }
    }
    last
}

async fn assert_readable(store: &dyn Store) {
    let all = store.range(RangeRequest::default()).await.unwrap();
    assert_eq!(all.entries.len(), KEYS);
    assert!(all.entries.iter().all(|entry| entry.value.starts_with(TEXT.as_bytes())));
}

/// How many files of a directory are there, and how many of them hold a text.
fn files_with(directory: &Path, text: &str) -> (usize, usize) {
    let files = std::fs::read_dir(directory).unwrap();
    let contents: Vec<Vec<u8>> =
        files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
    let holds = |content: &&Vec<u8>| content.windows(text.len()).any(|w| w == text.as_bytes());
    (contents.len(), contents.iter().filter(holds).count())
}

async fn open(directory: &Directory) -> DiskStore {
    DiskStore::open(directory, small_files()).await.unwrap().0
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_log_nor_snapshot_nor_backup_shows_a_value() {
    let directory = Directory::new();
    let elsewhere = Directory::new();
    std::fs::create_dir_all(&*elsewhere).unwrap();
    let disk = open(&directory).await;
    let store = encrypted(Arc::new(disk.clone()), &["one"]);
    let last = fill(&store, 30).await;
    compact_to_snapshot(&store, &directory, last).await;
    backup::save(&directory, &elsewhere.join("backup")).unwrap();
    drop(store);
    disk.close().await;

    for place in [&directory, &elsewhere] {
        assert_eq!(files_with(place, TEXT).1, 0);
        let (files, marked) = files_with(place, "k8s:enc:aesgcm:v1:one:");
        assert!(marked > 0 && marked >= files - 1, "{marked} of {files}");
    }
    assert!(files_with(&directory, &key(7)).1 > 0, "keys are not encrypted");

    let disk = open(&directory).await;
    assert_readable(&encrypted(Arc::new(disk.clone()), &["one"])).await;
    disk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_replaced_over_restarts_and_the_old_one_is_nowhere_afterwards() {
    let directory = Directory::new();
    let disk = open(&directory).await;
    fill(&encrypted(Arc::new(disk.clone()), &["old"]), 2).await;
    disk.close().await;

    let disk = open(&directory).await;
    let store = encrypted(Arc::new(disk.clone()), &["new", "old"]);
    assert_readable(&store).await;
    assert!(store.is_stale(&key(0)).await.unwrap());
    let last = fill(&store, 30).await;
    assert!(!store.is_stale(&key(0)).await.unwrap());
    compact_to_snapshot(&store, &directory, last).await;
    drop(store);
    disk.close().await;
    assert_eq!(files_with(&directory, "k8s:enc:aesgcm:v1:old:").1, 0);

    let disk = open(&directory).await;
    assert_readable(&encrypted(Arc::new(disk.clone()), &["new"])).await;
    let wrong = encrypted(Arc::new(disk.clone()), &["old"]);
    let refused = wrong.get(&key(3)).await.unwrap_err().to_string();
    assert!(refused.contains(&key(3)) && refused.contains("\"new\""), "{refused}");
    disk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_sees_no_value_and_may_not_move_one() {
    let etcd = Etcd::start().await;
    let root = new_root();
    let inner = Arc::new(on_etcd(etcd.endpoints(), &root).await);
    let store = encrypted(inner.clone(), &["one"]);
    fill(&store, 2).await;
    assert_readable(&store).await;
    let dump = etcd.ctl(&["get", "--prefix", &root]);
    assert!(!dump.contains(TEXT), "{dump}");
    assert_eq!(dump.matches("k8s:enc:aesgcm:v1:one:").count(), KEYS);

    // Another process over the same etcd.
    let other = encrypted(Arc::new(on_etcd(etcd.endpoints(), &root).await), &["one"]);
    assert_readable(&other).await;
    let last = put(&other, &key(0), &format!("{TEXT}, changed")).await;
    let read = store.get(&key(0)).await.unwrap().unwrap();
    assert_eq!((read.modified, read.value.len()), (last, TEXT.len() + 9));

    let stolen = inner.get(&key(1)).await.unwrap().unwrap().value;
    inner.write(WriteRequest::put(key(2), stolen, Expected::Any)).await.unwrap();
    let refused = store.get(&key(2)).await.unwrap_err();
    assert!(matches!(&refused, StoreError::Unreadable { key: at, .. } if **at == *key(2)));
    assert!(refused.to_string().contains("message authentication failed"), "{refused}");
}
