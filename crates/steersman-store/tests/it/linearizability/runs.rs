//! Concurrent clients on every store, and on broken ones.

use std::sync::Arc;

use steersman_store::disk::DiskStore;
use steersman_store::{RangeRequest, Revision, Store};

use super::broken::{Broken, Fault};
use super::clients::{self, KEYS};
use super::history::History;
use super::{revisions, search};
use crate::TIMEOUT;
use crate::directory::Directory;
use crate::etcd_process::Etcd;
use crate::seed;
use crate::stores::{Ground, new_root, on_etcd, small_files};

/// What the checks say of what happened on a store after a revision.
struct Verdict {
    search: Result<(), search::NotLinearizable>,
    revisions: Result<(), String>,
}

/// Judges by what the first of the stores tells; the others must tell the same.
async fn judge(history: &History, stores: &[Arc<dyn Store>], after: Revision) -> Verdict {
    let operations = history.operations();
    let log = clients::log(&*stores[0], after).await;
    for other in &stores[1..] {
        assert_eq!(clients::log(&**other, after).await, log, "two servers tell different stories");
    }
    Verdict {
        search: search::check(&operations, KEYS),
        revisions: revisions::check(&operations, &log),
    }
}

async fn latest(store: &dyn Store) -> Revision {
    store.range(RangeRequest::default()).await.unwrap().revision
}

/// Lets clients ask so many questions each, through any of these stores, which share their data.
async fn ask(stores: &[Arc<dyn Store>], questions: usize) -> Verdict {
    let (history, mut random) = (History::default(), seed::random());
    let start = latest(&*stores[0]).await;
    for client in clients::start(stores, &history, &mut random, questions) {
        client.await.unwrap();
    }
    judge(&history, stores, start).await
}

impl Verdict {
    fn assert_linearizable(&self) {
        if let Err(search::NotLinearizable { key, explained, left }) = &self.search {
            let last = &explained[explained.len().saturating_sub(10)..];
            let next = &left[..left.len().min(10)];
            panic!("no order explains key {key}: after {last:#?} nothing of {next:#?} fits");
        }
        self.revisions.as_ref().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_memory_see_one_order() {
    let store = Ground::Memory.store().await;
    ask(&[Arc::clone(&store)], 400).await.assert_linearizable();
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_a_disk_see_one_order() {
    let store = Ground::Disk.store().await;
    ask(&[Arc::clone(&store)], 150).await.assert_linearizable();
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_a_disk_see_one_order_over_restarts() {
    let (history, mut random) = (History::default(), seed::random());
    let directory = Directory::new();
    let mut start = None;
    for _ in 0..6 {
        let (store, _) = DiskStore::open(&directory, small_files()).await.unwrap();
        start.get_or_insert(store.stats().revision);
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let clients = clients::start(&[shared], &history, &mut random, 80);
        for (number, client) in clients.into_iter().enumerate() {
            // Half of them never hear the answer to their last question.
            if number % 2 == 0 {
                client.abort();
            }
            let _ = client.await;
        }
        store.close().await;
    }
    let (store, _) = DiskStore::open(&directory, small_files()).await.unwrap();
    judge(&history, &[Arc::new(store)], start.unwrap()).await.assert_linearizable();
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_two_servers_on_one_etcd_see_one_order() {
    let Ground::SharedEtcd(etcd) = Ground::of_shared_etcd().await else { unreachable!() };
    let root = new_root();
    let one: Arc<dyn Store> = Arc::new(on_etcd(etcd.endpoints(), &root).await);
    let other: Arc<dyn Store> = Arc::new(on_etcd(etcd.endpoints(), &root).await);
    ask(&[one, other], 200).await.assert_linearizable();
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_see_one_order_although_etcd_dies_and_comes_back() {
    let mut etcd = Etcd::start().await;
    let endpoints = [etcd.endpoints(), etcd.endpoints()];
    ask_while(endpoints, async |history| {
        for _ in 0..4 {
            history.grown_by(200).await;
            etcd.kill(0);
            etcd.restart(0).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_see_one_order_although_the_leader_of_three_dies() {
    let mut etcd = Etcd::builder().members(3).start().await;
    let [one, two, three] = etcd.endpoints().try_into().unwrap();
    // Each server prefers another member, so that they hear of things at different times.
    let endpoints = [vec![one.clone(), two.clone()], vec![two, three.clone()], vec![three, one]];
    ask_while(endpoints, async |history| {
        for _ in 0..2 {
            history.grown_by(300).await;
            let leader = etcd.leader().await;
            etcd.kill(leader);
            history.grown_by(100).await;
            etcd.restart(leader).await;
        }
    })
    .await;
}

/// Lets clients ask through servers with these endpoints while something happens to etcd, and
/// checks what they were told.
async fn ask_while<const N: usize>(
    endpoints: [Vec<String>; N],
    happens: impl AsyncFnOnce(&History),
) {
    let (history, mut random, root) = (History::default(), seed::random(), new_root());
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for endpoints in endpoints {
        stores.push(Arc::new(on_etcd(endpoints, &root).await));
    }
    let start = latest(&*stores[0]).await;
    let clients = clients::start(&stores, &history, &mut random, usize::MAX);
    let asked = async {
        happens(&history).await;
        history.grown_by(200).await;
        history.close();
        for client in clients {
            client.await.unwrap();
        }
    };
    tokio::time::timeout(TIMEOUT, asked).await.expect("etcd comes back");
    judge(&history, &stores, start).await.assert_linearizable();
}

/// Lets clients ask a broken store until they have been told something wrong.
async fn caught(fault: Fault) -> Verdict {
    for _ in 0..10 {
        let verdict = ask(&[Arc::new(Broken::new(fault))], 200).await;
        if verdict.search.is_err() || verdict.revisions.is_err() {
            return verdict;
        }
    }
    panic!("{fault:?} was not caught");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_serves_stale_gets_is_caught() {
    let verdict = caught(Fault::StaleGets).await;
    assert!(verdict.search.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_serves_stale_ranges_is_caught() {
    let verdict = caught(Fault::StaleRanges).await;
    assert!(verdict.revisions.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_loses_the_check_of_a_swap_is_caught() {
    let verdict = caught(Fault::LostChecks).await;
    assert!(verdict.search.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_loses_writes_is_caught() {
    let verdict = caught(Fault::LostWrites).await;
    assert!(verdict.search.is_err() && verdict.revisions.is_err());
}
