//! Members that die, stand still, or cannot be reached.

use super::load::Load;
use super::proxy::Proxy;
use super::*;

const WRITERS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn writes_and_watches_go_on_when_the_only_member_was_killed() {
    let mut etcd = Etcd::start().await;
    let store = connect(&etcd).await;
    let load = Load::start(&store, WRITERS).await;
    for _ in 0..3 {
        load.more(100).await;
        etcd.kill(0);
        etcd.restart(0).await;
    }
    load.more(100).await;
    load.assert_true(&store).await;
    assert_equals_etcd(&store, &etcd).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_and_watches_go_on_when_leaders_of_three_are_killed() {
    let mut etcd = Etcd::builder().members(3).start().await;
    let store = connect(&etcd).await;
    let load = Load::start(&store, WRITERS).await;
    for _ in 0..3 {
        load.more(100).await;
        let leader = etcd.leader().await;
        etcd.kill(leader);
        load.more(100).await;
        etcd.restart(leader).await;
    }
    load.assert_true(&store).await;
    assert_equals_etcd(&store, &etcd).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_member_of_three_stands_still_another_is_asked_within_seconds() {
    let etcd = Etcd::builder().members(3).start().await;
    let store = connect(&etcd).await;
    let load = Load::start(&store, WRITERS).await;
    load.more(100).await;
    // The first one named is the one that is asked.
    etcd.pause(0);
    let paused = tokio::time::Instant::now();
    store.range(RangeRequest::default()).await.unwrap();
    // Sooner than the silence of its connection would tell.
    assert!(paused.elapsed() < Duration::from_secs(7), "took {:?}", paused.elapsed());
    load.more(100).await;
    etcd.resume(0);
    load.more(100).await;
    load.assert_true(&store).await;
    assert_equals_etcd(&store, &etcd).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_wait_for_an_etcd_that_stands_still_and_say_so_when_it_takes_too_long() {
    let etcd = Etcd::start().await;
    let patient = connect(&etcd).await;
    let impatient = Options { request_timeout: Duration::from_secs(1), ..options(&etcd) };
    let impatient = EtcdStore::connect(impatient).await.unwrap();
    let written = put(&patient, "/registry/a", "1").await;
    let load = Load::start(&patient, WRITERS).await;
    load.more(100).await;
    // What a store has not heard before the silence, it cannot tell during it.
    assert_eq!(impatient.get("/registry/a").await.unwrap().unwrap().value, "1");
    etcd.pause(0);

    let read = tokio::spawn({
        let store = patient.clone();
        async move { store.get("/registry/a").await }
    });
    let error = impatient.get("/registry/a").await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    let error = try_put(&impatient, "/registry/b", "1").await.unwrap_err();
    assert!(matches!(error, StoreError::Unknown { .. }), "{error}");
    let stale = RangeRequest { stale: true, ..RangeRequest::default() };
    assert!(!impatient.range(stale).await.unwrap().entries.is_empty(), "needs no etcd");
    let at = RangeRequest { at: Some(written), ..RangeRequest::default() };
    assert_eq!(impatient.range(at).await.unwrap().entries.len(), 1, "nor does this");

    let five_seconds = tokio::time::timeout(Duration::from_secs(5), std::future::pending::<()>());
    assert!(five_seconds.await.is_err());
    assert!(!read.is_finished(), "nobody could know the answer");
    etcd.resume(0);
    assert_eq!(read.await.unwrap().unwrap().unwrap().value, "1");
    load.more(100).await;
    load.assert_true(&patient).await;
    assert_equals_etcd(&patient, &etcd).await;
    assert_equals_etcd(&impatient, &etcd).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_goes_silent_is_replaced() {
    let etcd = Etcd::builder().members(3).start().await;
    let endpoints = etcd.endpoints();
    let silent = Proxy::to(&endpoints[0]).await;
    let mut options = options(&etcd);
    options.endpoints = vec![silent.endpoint.clone(), endpoints[1].clone()];
    let store = EtcdStore::connect(options).await.unwrap();
    let mut watch = watch(&store, Revision(1)).await;
    etcd.ctl(&["put", "/registry/before", "1"]);
    assert_eq!(&*watch.next().await.unwrap()[0].key, "/registry/before");
    silent.silence();
    // Nobody reads: only the connection itself can tell that it is dead.
    etcd.ctl(&["put", "/registry/a", "1"]);
    let batch = tokio::time::timeout(Duration::from_secs(15), watch.next()).await;
    assert_eq!(&*batch.expect("the watch has moved on").unwrap()[0].key, "/registry/a");
    assert_equals_etcd(&store, &etcd).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_that_is_not_there_is_named() {
    let endpoint = Etcd::start().await.endpoints().remove(0);
    let mut options = Options::new([endpoint.as_str()]);
    options.request_timeout = Duration::from_millis(500);
    let error = EtcdStore::connect(options).await.unwrap_err();
    assert!(error.to_string().contains(&endpoint), "{error}");
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("refused"), "{reason}");
}
