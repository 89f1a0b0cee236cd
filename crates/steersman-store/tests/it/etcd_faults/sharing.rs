//! Several stores on one etcd.

use super::load::Load;
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_was_acknowledged_is_seen_by_whoever_reads_afterwards() {
    let etcd = Etcd::builder().members(3).start().await;
    let endpoints = etcd.endpoints();
    let at = |member: usize| {
        let options = Options { endpoints: vec![endpoints[member].clone()], ..options(&etcd) };
        async { EtcdStore::connect(options).await.unwrap() }
    };
    let (writer, reader) = (at(0).await, at(1).await);
    for n in 0..200 {
        let value = n.to_string();
        let revision = put(&writer, "/registry/a", &value).await;
        if n % 2 == 0 {
            assert_eq!(reader.get("/registry/a").await.unwrap().unwrap().value, value);
        } else {
            let after = watch(&reader, revision).await.delivered();
            assert!(after >= revision, "a revision that was not heard of yet is waited for");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_hears_of_the_others_writes_once_and_in_order() {
    let etcd = Etcd::start().await;
    let (one, other) = (connect(&etcd).await, connect(&etcd).await);
    let mut replay = Replay::new(&other).await;
    let load = Load::start(&one, 8).await;
    for n in 0..300 {
        let key = format!("/registry/other/{}", n % 7);
        put(&other, &key, &n.to_string()).await;
        if n % 5 == 0 {
            other.write(WriteRequest::delete(key.as_str(), Expected::Any)).await.unwrap();
        }
    }
    load.more(100).await;
    load.assert_true(&one).await;
    replay.assert_complete(&other).await;
    assert_eq!(list(&one).await, list(&other).await);
    assert_equals_etcd(&one, &etcd).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn increments_by_two_stores_are_never_lost() {
    let etcd = Etcd::start().await;
    let stores = [connect(&etcd).await, connect(&etcd).await];
    put(&stores[0], "/registry/counter", "0").await;
    let increments = stores.clone().into_iter().chain(stores).map(|store| {
        tokio::spawn(async move {
            for _ in 0..25 {
                loop {
                    let entry = store.get("/registry/counter").await.unwrap().unwrap();
                    let count: u64 = std::str::from_utf8(&entry.value).unwrap().parse().unwrap();
                    let expected = Expected::Modified(entry.modified);
                    let value = (count + 1).to_string();
                    let request = WriteRequest::put("/registry/counter", value, expected);
                    match store.write(request).await {
                        Ok(_) => break,
                        Err(StoreError::Conflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        })
    });
    for increment in increments.collect::<Vec<_>>() {
        increment.await.unwrap();
    }
    assert_eq!(etcd.ctl(&["get", "/registry/counter", "--print-value-only"]), "100\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tasks_end_with_the_last_handle() {
    let etcd = Etcd::start().await;
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let store = connect(&etcd).await;
    put(&store, "/registry/a", "1").await;
    let another = store.clone();
    drop(store);
    put(&another, "/registry/a", "2").await;
    drop(another);
    let ended = tokio::time::timeout(LONG, async {
        while tokio::runtime::Handle::current().metrics().num_alive_tasks() > before {
            tokio::task::yield_now().await;
        }
    });
    ended.await.expect("nothing is left running");
}
