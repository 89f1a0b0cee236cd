//! What etcd has no room for, and what goes by itself.

use super::*;

const LARGE: usize = 200 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_etcd_is_read_and_emptied_and_takes_writes_again_once_there_is_room() {
    let etcd = Etcd::builder().quota(4 * 1024 * 1024).start().await;
    let store = connect(&etcd).await;
    let large = "x".repeat(LARGE);
    let mut replay = Replay::new(&store).await;
    let full = loop {
        match try_put(&store, "/registry/large", &large).await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(full, StoreError::Full { .. }), "{full}");
    assert!(full.to_string().contains("quota"), "{full}");
    assert_eq!(store.health().unwrap_err(), full);
    assert_eq!(store.get("/registry/large").await.unwrap().unwrap().value.len(), LARGE);
    let request = WriteRequest::delete("/registry/large", Expected::Any);
    let deleted = store.write(request).await.unwrap().revision;
    assert!(matches!(try_put(&store, "/registry/a", "1").await, Err(StoreError::Full { .. })));

    store.compact(deleted).await.unwrap();
    etcd.ctl(&["defrag"]);
    etcd.ctl(&["alarm", "disarm"]);
    put(&store, "/registry/a", "2").await;
    assert_equals_etcd(&store, &etcd).await;
    let passed_by = replay.until(deleted).await.unwrap_err();
    assert!(matches!(passed_by, StoreError::Compacted { .. }), "{passed_by}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_is_too_large_is_refused_with_the_reason() {
    let etcd = Etcd::start().await;
    let store = connect(&etcd).await;
    let error = try_put(&store, "/registry/a", &"x".repeat(3 << 20)).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("larg"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_values_are_loaded_in_pages_and_watched_in_pieces() {
    let etcd = Etcd::start().await;
    let store = connect(&etcd).await;
    let mut replay = Replay::new(&store).await;
    let large = "x".repeat(1 << 20);
    for n in 0..24 {
        put(&store, &format!("/registry/{n}"), &large).await;
    }
    replay.assert_complete(&store).await;
    // One watch from the beginning is told of all of it in one response.
    assert_equals_etcd(&store, &etcd).await;
    let at_once = EtcdStore::connect(Options { history: 0, ..options(&etcd) }).await.unwrap();
    assert_eq!(list(&at_once).await, list(&store).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_go_when_their_time_is_over_and_share_leases() {
    let etcd = Etcd::start().await;
    let store = connect(&etcd).await;
    let mut replay = Replay::new(&store).await;
    let expiring = |key: &str, ttl| {
        WriteRequest::put(key, "1", Expected::Any).expiring(Duration::from_secs(ttl))
    };
    let begun = tokio::time::Instant::now();
    for n in 0..10 {
        store.write(expiring(&format!("/registry/soon/{n}"), 1)).await.unwrap();
    }
    store.write(expiring("/registry/later", 60)).await.unwrap();
    store.write(expiring("/registry/for-ever", 1)).await.unwrap();
    put(&store, "/registry/for-ever", "2").await;
    let leases = etcd.ctl(&["lease", "list"]).lines().count() - 1;
    assert!((2..=3).contains(&leases), "ten keys shared {leases} leases");

    let gone = async {
        while replay.state.keys().any(|key| key.starts_with("/registry/soon/"))
            || replay.told.len() < 13
        {
            for event in replay.watch.next().await.unwrap() {
                replay.take(&event);
            }
        }
    };
    tokio::time::timeout(LONG, gone).await.expect("they go");
    assert!(begun.elapsed() >= Duration::from_secs(1), "none goes too early");
    assert_eq!(list(&store).await.0.len(), 2);
    assert_equals_etcd(&store, &etcd).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_has_vanished_is_granted_anew() {
    let etcd = Etcd::start().await;
    let store = connect(&etcd).await;
    let ttl = Duration::from_secs(600);
    let request = WriteRequest::put("/registry/a", "1", Expected::Any).expiring(ttl);
    store.write(request.clone()).await.unwrap();
    let leases = etcd.ctl(&["lease", "list"]);
    etcd.ctl(&["lease", "revoke", leases.lines().last().unwrap()]);
    assert_eq!(store.get("/registry/a").await.unwrap(), None);
    store.write(request).await.unwrap();
    assert!(store.get("/registry/a").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn history_in_memory_is_bounded_by_bytes_though_etcd_keeps_more() {
    let etcd = Etcd::start().await;
    let bounded = Options { history_bytes: 4 * LARGE as u64, ..options(&etcd) };
    let store = EtcdStore::connect(bounded.clone()).await.unwrap();
    let large = "x".repeat(LARGE);
    let first = put(&store, "/registry/a", &large).await;
    for n in 0..40 {
        put(&store, &format!("/registry/{}", n % 2), &large).await;
    }
    list(&store).await;
    assert!(store.stats().history_bytes <= 4 * LARGE, "{:?}", store.stats());
    assert!(store.stats().history >= 3, "{:?}", store.stats());
    let request = WatchRequest { prefix: "/registry/".into(), after: first };
    let passed_by = store.watch(request.clone()).await.err().expect("it is long ago");
    assert!(matches!(passed_by, StoreError::Compacted { .. }), "{passed_by}");
    assert_equals_etcd(&store, &etcd).await;
    // What another one reads at its start it may not keep either.
    let late = EtcdStore::connect(bounded).await.unwrap();
    assert_eq!(list(&late).await, list(&store).await);
    assert!(late.stats().history_bytes <= 4 * LARGE, "{:?}", late.stats());
    let whole = connect(&etcd).await;
    let mut watch = whole.watch(request).await.unwrap();
    assert_eq!(watch.next().await.unwrap()[0].revision, Revision(first.0 + 1));
}
