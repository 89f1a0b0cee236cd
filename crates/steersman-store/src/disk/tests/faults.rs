//! A disk that has no room, or that fails, at every step of a script.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::scratch::Scratch;
use super::script::{Model, Outcome, Progress, Run, options};
use super::simulated::{Disk, Step};
use crate::disk::files::Files;
use crate::disk::lock::Lock;
use crate::disk::{DiskStore, open};
use crate::{Expected, Store, StoreError, WriteRequest};

const BATCHES: usize = 120;

fn begin() -> Run {
    Run::open(&Disk::default(), Model::new(), Progress::default()).unwrap()
}

/// What the disk does when nothing fails.
async fn steps() -> Vec<Step> {
    let mut run = begin();
    let mut random = StdRng::seed_from_u64(3);
    for _ in 0..BATCHES {
        run.step(&mut random).await;
    }
    assert!(run.snapshots > 0);
    run.disk.steps()
}

/// What is found after the process ends, and after the machine does.
fn reopen(run: &Run, seed: u64) -> [Run; 2] {
    let image = run.disk.image();
    let crashed = image.crash(&mut StdRng::seed_from_u64(seed));
    let progress = *run.progress.lock().unwrap();
    [image, crashed].map(|image| Run::open(&Disk::of(image), run.model.clone(), progress).unwrap())
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_the_store_goes_on() {
    let steps = steps().await;
    let can_be_full = [Step::Write, Step::Create];
    let mut refused = 0;
    for (number, _) in steps.iter().enumerate().filter(|(_, step)| can_be_full.contains(step)) {
        let mut run = begin();
        run.disk.fail(number, ErrorKind::StorageFull);
        let mut random = StdRng::seed_from_u64(3);
        for _ in 0..BATCHES {
            let outcome = run.step(&mut random).await;
            assert_ne!(outcome, Outcome::Failed, "at step {number}");
            refused += usize::from(outcome == Outcome::Full);
        }
        let [ended, _] = reopen(&run, number as u64);
        assert_eq!(ended.opened.cut_off, 0, "what did not fit is taken back");
    }
    assert!(refused > 50, "only {refused}");
}

/// As when too many files are open: that passes, and must not end the store.
#[tokio::test]
async fn a_file_that_cannot_be_made_lets_the_one_before_it_go_on() {
    let steps = steps().await;
    let created = steps.iter().enumerate().filter(|(_, step)| **step == Step::Create).skip(1);
    for (number, _) in created {
        let mut run = begin();
        run.disk.fail(number, ErrorKind::Other);
        let mut random = StdRng::seed_from_u64(3);
        for _ in 0..BATCHES {
            assert_eq!(run.step(&mut random).await, Outcome::Done, "at step {number}");
        }
        let largest = run.disk.image().largest() as u64;
        assert!(largest < 3 * options().segment_bytes, "{largest}: no other was begun again");
        reopen(&run, number as u64);
    }
}

#[tokio::test]
async fn a_failed_sync_ends_writes_but_not_reads_and_nothing_acknowledged_is_lost() {
    let steps = steps().await;
    let syncs = [Step::Sync, Step::SyncDirectory];
    let mut failed = 0;
    for (number, _) in steps.iter().enumerate().filter(|(_, step)| syncs.contains(step)).skip(3) {
        let mut run = begin();
        run.disk.fail(number, ErrorKind::Other);
        let mut random = StdRng::seed_from_u64(3);
        for _ in 0..BATCHES {
            if run.step(&mut random).await == Outcome::Failed {
                failed += 1;
                let model = run.model.clone();
                assert_eq!(run.step(&mut random).await, Outcome::Failed, "for ever");
                let acknowledged = run.progress.lock().unwrap().acknowledged;
                assert_eq!(run.committer.index.revision().0, acknowledged);
                run.model = model;
                break;
            }
        }
        for mut again in reopen(&run, number as u64) {
            assert_eq!(again.step(&mut random).await, Outcome::Done);
            reopen(&again, number as u64 + 1);
        }
    }
    assert!(failed > 50, "only {failed}");
}

/// A store over a simulated disk, with its thread.
fn start(scratch: &Scratch, disk: &Disk) -> DiskStore {
    std::fs::create_dir(&scratch.0).unwrap();
    let files: Arc<dyn Files> = Arc::new(disk.clone());
    let recovered = open::recover(&files, &options(), 7).unwrap();
    let lock = Lock::take(&scratch.0).unwrap();
    DiskStore::start(recovered, lock, options().snapshot_bytes).unwrap().0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_knows_that_its_disk_has_failed_and_that_it_is_full_until_it_is_not() {
    let (scratch, disk) = (Scratch::new(), Disk::default());
    let store = start(&scratch, &disk);
    let put = |key| store.write(WriteRequest::put(key, "1", Expected::Any));
    put("/a").await.unwrap();
    disk.fail(disk.steps().len(), ErrorKind::StorageFull);
    let full = put("/b").await.unwrap_err();
    assert!(matches!(full, StoreError::Full { .. }), "{full}");
    assert_eq!(store.health().unwrap_err(), full);
    store.write(WriteRequest::delete("/a", Expected::Any)).await.unwrap();
    assert_eq!(store.health().unwrap_err(), full, "a deletion says nothing about room");
    put("/b").await.unwrap();
    store.health().unwrap();
    disk.fail(disk.steps().len() + 1, ErrorKind::Other);
    let failed = put("/c").await.unwrap_err();
    assert!(matches!(failed, StoreError::Failed { .. }), "{failed}");
    assert_eq!(store.health().unwrap_err(), failed);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_with_little_room_is_full_although_small_values_are_taken() {
    let (scratch, disk) = (Scratch::new(), Disk::default());
    let store = start(&scratch, &disk);
    disk.claim_available(4096);
    store.write(WriteRequest::put("/a", "1", Expected::Any)).await.unwrap();
    let full = store.health().unwrap_err();
    assert!(matches!(full, StoreError::Full { .. }), "{full}");
    disk.claim_available(1 << 30);
    store.health().unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_the_committer_leaves_nobody_waiting() {
    let (scratch, disk) = (Scratch::new(), Disk::default());
    let store = start(&scratch, &disk);
    let put = |key| store.write(WriteRequest::put(key, "1", Expected::Any));
    put("/a").await.unwrap();
    disk.observe(Box::new(|_| panic!("on purpose")));
    let ended = async {
        let unknown = put("/b").await.unwrap_err();
        assert!(matches!(unknown, StoreError::Unknown { .. }), "{unknown}");
        // Until the thread is gone, it is not known either.
        while !matches!(put("/c").await, Err(StoreError::Failed { .. })) {}
        assert!(store.get("/a").await.unwrap().is_some(), "reads go on");
        assert!(store.health().is_err());
        store.clone().close().await;
        Lock::take(&scratch.0).unwrap();
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap();
}
