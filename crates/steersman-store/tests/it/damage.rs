//! A directory whose files were changed after they were on disk: what is told, and that nothing
//! else is lost. Every byte of a small store is tried on a simulated disk, beside the code; this is
//! about real files, and about what an operator reads and can do.

use std::fs;
use std::path::{Path, PathBuf};

use rand::RngExt as _;
use rand::rngs::StdRng;
use steersman_store::disk::{DiskStore, OpenError, backup};
use steersman_store::{Entry, Expected, RangeRequest, Revision, Store, WriteRequest};

use crate::directory::Directory;
use crate::seed;
use crate::stores::{compact_to_snapshot, small_files};

/// A store with a snapshot and a log behind it, a backup of it, and what it holds.
struct Damaged {
    directory: Directory,
    _elsewhere: Directory,
    backup: PathBuf,
    entries: Vec<Entry>,
}

impl Damaged {
    async fn new() -> Self {
        let directory = Directory::new();
        let elsewhere = Directory::new();
        fs::create_dir_all(&*elsewhere).unwrap();
        let (store, _) = DiskStore::open(&directory, small_files()).await.unwrap();
        let mut last = Revision(0);
        for number in 0..900 {
            let key = format!("/registry/{:02}", number % 60);
            let value = format!("{number} ").repeat(40);
            let request = WriteRequest::put(key, value, Expected::Any);
            last = store.write(request).await.unwrap().revision;
        }
        compact_to_snapshot(&store, &directory, last).await;
        let entries = list(&store).await;
        assert!(store.stats().revision > last, "there is a log behind the snapshot");
        store.close().await;
        let backup = elsewhere.join("backup");
        backup::save(&directory, &backup).unwrap();
        Self { directory, _elsewhere: elsewhere, backup, entries }
    }

    fn file(&self, extension: &str) -> PathBuf {
        let files = fs::read_dir(&*self.directory).unwrap().map(|file| file.unwrap().path());
        let mut found: Vec<PathBuf> =
            files.filter(|file| file.extension().is_some_and(|found| found == extension)).collect();
        found.sort();
        found.pop().unwrap_or_else(|| panic!("there is no {extension}"))
    }

    async fn refusal(&self) -> OpenError {
        let opened = DiskStore::open(&self.directory, small_files()).await;
        opened.expect_err("it is damaged")
    }

    /// That it is whole.
    async fn assert_whole(&self) {
        assert_holds(&self.directory, &self.entries).await;
    }
}

async fn assert_holds(directory: &Path, entries: &[Entry]) {
    let (store, _) = DiskStore::open(directory, small_files()).await.unwrap();
    let found = list(&store).await;
    let plain = |entries: &[Entry]| -> Vec<_> {
        entries.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect()
    };
    assert_eq!(plain(&found), plain(entries));
    store.close().await;
}

async fn list(store: &DiskStore) -> Vec<Entry> {
    store.range(RangeRequest::default()).await.unwrap().entries
}

fn flip(content: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut changed = content.to_vec();
    let place = random.random_range(0..changed.len());
    changed[place] ^= 1 << random.random_range(0..8);
    changed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_snapshot_is_refused_by_name_and_changes_nothing_else() {
    let mut random = seed::random();
    let damaged = Damaged::new().await;
    let snapshot = damaged.file("snapshot");
    let whole = fs::read(&snapshot).unwrap();
    let mut variants: Vec<Vec<u8>> = (0..60).map(|_| flip(&whole, &mut random)).collect();
    let cut = |random: &mut StdRng| whole[..random.random_range(0..whole.len())].to_vec();
    variants.extend((0..20).map(|_| cut(&mut random)));
    variants.push([&whole[..], b"more"].concat());
    variants.push(vec![0; whole.len()]);
    for content in variants {
        fs::write(&snapshot, &content).unwrap();
        let refused = damaged.refusal().await;
        assert!(matches!(&refused, OpenError::Corrupt { file, .. } if *file == snapshot));
        let text = refused.to_string();
        for part in ["damaged at byte", "nothing was changed", "steersman snapshot restore"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(fs::read(&snapshot).unwrap(), content, "it is left for whoever looks into it");
    }
    fs::remove_file(&snapshot).unwrap();
    assert!(matches!(damaged.refusal().await, OpenError::Corrupt { .. }));
    fs::write(&snapshot, &whole).unwrap();
    damaged.assert_whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_advice_helps_a_backup_is_restored_elsewhere() {
    let damaged = Damaged::new().await;
    let snapshot = damaged.file("snapshot");
    let whole = fs::read(&snapshot).unwrap();
    fs::write(&snapshot, &whole[..whole.len() / 2]).unwrap();
    damaged.refusal().await;
    let restored = Directory::new();
    backup::restore(&damaged.backup, &restored, 1_000).unwrap();
    assert_holds(&restored, &damaged.entries).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_snapshot_is_never_read_whatever_it_holds() {
    let mut random = seed::random();
    let damaged = Damaged::new().await;
    let whole = fs::read(damaged.file("snapshot")).unwrap();
    for length in [0, 1, 40, whole.len() / 2, whole.len()] {
        let unfinished = damaged.directory.join("00000000000000099999.snapshot.tmp");
        fs::write(&unfinished, flip(&[&whole[..length], b"x"].concat(), &mut random)).unwrap();
        damaged.assert_whole().await;
        assert!(!unfinished.exists(), "it takes no room after the next start");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_of_another_store_is_not_taken_for_its_own() {
    let damaged = Damaged::new().await;
    let other = Damaged::new().await;
    let snapshot = damaged.file("snapshot");
    assert_eq!(snapshot.file_name(), other.file("snapshot").file_name(), "they were made alike");
    let own = fs::read(&snapshot).unwrap();
    fs::copy(other.file("snapshot"), &snapshot).unwrap();
    let refused = damaged.refusal().await.to_string();
    assert!(refused.contains("belongs to another store"), "{refused}");
    fs::write(&snapshot, own).unwrap();
    damaged.assert_whole().await;
}
