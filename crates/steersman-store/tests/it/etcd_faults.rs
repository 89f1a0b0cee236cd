//! The store on a real etcd: what it does in fair weather that only etcd can show, and that every
//! fault leaves it equal to etcd, with no change lost or told twice.

mod access;
mod basics;
mod fate;
mod history;
mod limits;
mod load;
mod members;
mod proxy;
mod sharing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steersman_store::etcd::{EtcdStore, Options};
use steersman_store::{
    Entry, Event, Expected, RangeRequest, Revision, Store, StoreError, Watch, WatchRequest,
    WriteRequest,
};
use tokio::sync::oneshot;

use crate::etcd_process::Etcd;

/// Long enough for anything that happens at all.
const LONG: Duration = Duration::from_secs(30);

/// A store on the cluster, without a compactor.
async fn connect(etcd: &Etcd) -> EtcdStore {
    EtcdStore::connect(options(etcd)).await.unwrap()
}

fn options(etcd: &Etcd) -> Options {
    Options { compaction: None, ..Options::new(etcd.endpoints()) }
}

async fn put(store: &EtcdStore, key: &str, value: &str) -> Revision {
    try_put(store, key, value).await.unwrap()
}

async fn try_put(store: &EtcdStore, key: &str, value: &str) -> Result<Revision, StoreError> {
    let value = Bytes::copy_from_slice(value.as_bytes());
    let request = WriteRequest::put(key, value, Expected::Any);
    Ok(store.write(request).await?.revision)
}

/// The latest of everything, and its revision.
async fn list(store: &EtcdStore) -> (Vec<Entry>, Revision) {
    let response = store.range(RangeRequest::default()).await.unwrap();
    (response.entries, response.revision)
}

/// That a store shows exactly what etcd holds.
async fn assert_equals_etcd(store: &EtcdStore, etcd: &Etcd) {
    let fresh = connect(etcd).await;
    assert_eq!(list(store).await, list(&fresh).await);
}

async fn watch(store: &EtcdStore, after: Revision) -> Box<dyn Watch> {
    store.watch(WatchRequest { prefix: "/registry/".into(), after }).await.unwrap()
}

/// Everything that a watch has told of, put together again. Panics when it tells of something
/// twice, or of what cannot follow.
struct Replay {
    watch: Box<dyn Watch>,
    state: BTreeMap<Arc<str>, Entry>,
    /// Every value that was told, and when it was written.
    told: Vec<(String, Revision)>,
    last: Revision,
}

impl Replay {
    /// Begins with all that is there.
    async fn new(store: &EtcdStore) -> Self {
        let (entries, last) = list(store).await;
        let state = entries.into_iter().map(|entry| (Arc::clone(&entry.key), entry)).collect();
        Self { watch: watch(store, last).await, state, told: Vec::new(), last }
    }

    /// Reads until everything up to a revision has been told.
    async fn until(&mut self, revision: Revision) -> Result<(), StoreError> {
        let read = tokio::time::timeout(LONG, async {
            while self.watch.delivered() < revision {
                let batch = self.watch.next().await?;
                assert!(batch[0].revision > self.last, "a revision is in one batch only");
                batch.iter().for_each(|event| self.take(event));
            }
            Ok(())
        });
        read.await.expect("the watch tells of everything")
    }

    /// Reads until it is told to stop.
    async fn follow(mut self, mut stop: oneshot::Receiver<()>) -> Self {
        loop {
            tokio::select! {
                batch = self.watch.next() => batch.unwrap().iter().for_each(|event| self.take(event)),
                _ = &mut stop => return self,
            }
        }
    }

    fn take(&mut self, event: &Event) {
        assert!(event.revision >= self.last, "changes come in order");
        self.last = event.revision;
        if let Some(entry) = &event.current {
            let value = String::from_utf8_lossy(&entry.value).into_owned();
            self.told.push((value, event.revision));
        }
        let before = match &event.current {
            Some(entry) => self.state.insert(Arc::clone(&event.key), entry.clone()),
            None => self.state.remove(&event.key),
        };
        assert_eq!(before, event.previous, "the change follows what was told before: {event:?}");
    }

    /// That all that was told adds up to what the store holds.
    async fn assert_complete(&mut self, store: &EtcdStore) {
        let (entries, revision) = list(store).await;
        self.until(revision).await.unwrap();
        assert_eq!(self.state.values().cloned().collect::<Vec<_>>(), entries);
    }
}
