//! Keys that go after a while, for the committer: tells the store's expiry of durable writes.

use std::sync::Arc;
use std::time::Duration;

use futures::future::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::request::Request;
use super::submit;
use crate::expiry::{Delete, Expiry};
use crate::{Entry, Expected, Key, Revision, WriteRequest};

/// The way from the committer's thread to the expiry and its task.
#[derive(Clone)]
pub(super) struct Ttls {
    expiry: Arc<Expiry>,
    /// Where the task runs.
    runtime: Handle,
    /// Where it deletes. Weak: what waits to be deleted does not keep the store open.
    requests: mpsc::WeakSender<Request>,
}

impl Ttls {
    pub(super) fn new(
        expiry: Arc<Expiry>,
        runtime: Handle,
        requests: mpsc::WeakSender<Request>,
    ) -> Self {
        Self { expiry, runtime, requests }
    }

    /// Notes a write. This must come before the index knows of it: a snapshot that sees a write
    /// must find its time to live as well.
    pub(super) fn written(&self, key: &Key, revision: Revision, ttl: Option<Duration>) {
        let _entered = self.runtime.enter();
        self.expiry.written(key, revision, ttl, || self.delete());
    }

    /// How long an entry stays, if it is the latest of its key.
    pub(super) fn of(&self, entry: &Entry) -> Option<Duration> {
        let expiring = self.expiry.of(&entry.key)?;
        (expiring.revision == entry.modified).then_some(expiring.ttl)
    }

    /// Deletes what has expired, as long as the store is there.
    fn delete(&self) -> Delete {
        let requests = self.requests.clone();
        Arc::new(move |key, modified| {
            let requests = requests.upgrade()?;
            let request = WriteRequest::delete(key, Expected::Modified(modified));
            Some(async move { submit(&requests, request).await.map(drop) }.boxed())
        })
    }
}
