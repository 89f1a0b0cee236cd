//! What a writer is told when the answer to a write is lost.

use super::proxy::Proxy;
use super::*;

/// A store whose first member can go silent, another one that cannot, and an entry.
struct Trial {
    etcd: Etcd,
    way: Proxy,
    store: EtcdStore,
    other: EtcdStore,
    base: Revision,
}

const KEY: &str = "/registry/a";

async fn trial() -> Trial {
    let etcd = Etcd::builder().members(3).start().await;
    let endpoints = etcd.endpoints();
    let way = Proxy::to(&endpoints[0]).await;
    let other = connect(&etcd).await;
    let options = Options {
        endpoints: vec![way.endpoint.clone(), endpoints[1].clone()],
        request_timeout: Duration::from_secs(6),
        ..options(&etcd)
    };
    let store = EtcdStore::connect(options).await.unwrap();
    let base = put(&store, KEY, "base").await;
    Trial { etcd, way, store, other, base }
}

impl Trial {
    /// Writes over the way as it is now.
    async fn write(&self, expected: Expected) -> Result<Revision, StoreError> {
        let request = WriteRequest::put(KEY, "mine", expected);
        self.store.write(request).await.map(|written| written.revision)
    }

    async fn assert_found(&self, value: &str) {
        assert_eq!(self.store.get(KEY).await.unwrap().unwrap().value, value.to_owned());
        assert_equals_etcd(&self.store, &self.etcd).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_expects_a_revision_and_got_lost_is_made_elsewhere() {
    let trial = trial().await;
    trial.way.silence();
    let written = trial.write(Expected::Modified(trial.base)).await.unwrap();
    assert!(written > trial.base);
    trial.assert_found("mine").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_a_conflict_if_something_else_was_written_meanwhile() {
    let trial = trial().await;
    trial.way.silence();
    let theirs = WriteRequest::put(KEY, "theirs", Expected::Modified(trial.base));
    let (mine, theirs) =
        tokio::join!(trial.write(Expected::Modified(trial.base)), trial.other.write(theirs));
    let theirs = theirs.unwrap().revision;
    let conflict = mine.unwrap_err();
    let found = Some(theirs);
    assert!(
        matches!(conflict, StoreError::Conflict { found: at, .. } if at == found),
        "{conflict}"
    );
    trial.assert_found("theirs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_knows_whose_it_was_if_the_same_was_written() {
    let trial = trial().await;
    trial.way.mute();
    let unknown = trial.write(Expected::Modified(trial.base)).await.unwrap_err();
    assert!(matches!(unknown, StoreError::Unknown { .. }), "{unknown}");
    trial.assert_found("mine").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_expects_nothing_is_not_repeated() {
    let trial = trial().await;
    trial.way.mute();
    let unknown = trial.write(Expected::Any).await.unwrap_err();
    assert!(matches!(unknown, StoreError::Unknown { .. }), "{unknown}");
    trial.assert_found("mine").await;
    let changes = watch(&trial.store, trial.base).await.next().await.unwrap();
    assert_eq!(changes.len(), 1, "it was made once");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_connection_a_write_was_certainly_not_made() {
    let mut etcd = Etcd::start().await;
    let impatient = Options { request_timeout: Duration::from_secs(1), ..options(&etcd) };
    let store = EtcdStore::connect(impatient).await.unwrap();
    etcd.stop(0);
    // The connection's end may be noticed by a request only.
    let _ = store.get(KEY).await;
    let error = try_put(&store, KEY, "1").await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    etcd.restart(0).await;
    assert_eq!(store.get(KEY).await.unwrap(), None);
}
