//! A store whose values are encrypted.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};

use super::Encryption;
use super::watch::Opening;
use crate::{
    Entry, RangeRequest, RangeResponse, Revision, Store, StoreError, Watch, WatchRequest,
    WriteRequest, Written,
};

/// After so many bytes a long range lets others have their turn.
const TURN_BYTES: usize = 1024 * 1024;

/// A [`Store`] over another one, which sees no value but as [`Encryption`] made it. Each reader
/// gets a copy of what was decrypted; what is not encrypted is shared as ever.
pub struct EncryptedStore {
    inner: Arc<dyn Store>,
    encryption: Arc<Encryption>,
}

impl EncryptedStore {
    /// Encrypts what is written to a store from now on, and decrypts what is read from it.
    pub fn new(inner: Arc<dyn Store>, encryption: Encryption) -> Self {
        Self { inner, encryption: Arc::new(encryption) }
    }

    fn open(&self, entry: Option<Entry>) -> Result<Option<Entry>, StoreError> {
        let open = |mut entry| self.encryption.open(&mut entry).map(|()| entry);
        entry.map(open).transpose()
    }

    async fn open_all(&self, entries: &mut [Entry]) -> Result<(), StoreError> {
        let mut bytes = 0;
        for entry in entries {
            bytes += entry.value.len();
            self.encryption.open(entry)?;
            if bytes > TURN_BYTES {
                bytes = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for EncryptedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("EncryptedStore").field(&self.encryption).finish()
    }
}

impl Store for EncryptedStore {
    fn get(&self, key: &str) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        let found = self.inner.get(key);
        async move { self.open(found.await?) }.boxed()
    }

    fn modified(
        &self,
        key: &str,
        at: Revision,
    ) -> BoxFuture<'_, Result<Option<Revision>, StoreError>> {
        self.inner.modified(key, at)
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StoreError>> {
        async move {
            let keys_only = request.keys_only;
            let mut found = self.inner.range(request).await?;
            if !keys_only {
                self.open_all(&mut found.entries).await?;
            }
            Ok(found)
        }
        .boxed()
    }

    fn write(&self, mut request: WriteRequest) -> BoxFuture<'_, Result<Written, StoreError>> {
        async move {
            if let Some(value) = request.value.take() {
                request.value = Some(self.encryption.seal(&request.key, value)?);
            }
            let Written { revision, previous } = self.inner.write(request).await?;
            // It is written, whether or not anybody can still read what was there before.
            Ok(Written { revision, previous: self.open(previous).unwrap_or(None) })
        }
        .boxed()
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, StoreError>> {
        async move {
            let inner = self.inner.watch(request).await?;
            Ok(Box::new(Opening::new(inner, Arc::clone(&self.encryption))) as Box<dyn Watch>)
        }
        .boxed()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.compact(revision)
    }

    fn is_stale(&self, key: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
        let found = self.inner.get(key);
        async move {
            let stale = |entry: Entry| self.encryption.is_stale(&entry.key, &entry.value);
            Ok(found.await?.is_some_and(stale))
        }
        .boxed()
    }

    fn hold_compactly(&self, folder: &str) {
        self.inner.hold_compactly(folder);
    }

    fn health(&self) -> Result<(), StoreError> {
        self.inner.health()
    }
}
