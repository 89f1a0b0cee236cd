//! A versioned key-value store, the ground the API server stands on.
//!
//! One global [`Revision`] counts every write. Each key remembers the revision that
//! created it and the one that last modified it; writes compare against the latter. The
//! store keeps history until it is compacted, so that ranges can be read *at* a revision
//! and watches can resume *after* one, in order and without gaps.
//!
//! This crate knows keys, bytes and revisions. It does not know what an object is.
//! Start with [`Store`], then [`memory::MemoryStore`]. All stores answer reads and watches from
//! the same index in memory (`index/`); they differ in what a write must do before it is seen.

pub mod disk;
pub mod encryption;
pub mod etcd;
mod expiry;
mod index;
pub mod memory;
mod room;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

/// How many bytes of the past a store keeps in memory unless it is told otherwise. An allocator
/// takes up to a third more for them.
pub const HISTORY_BYTES: u64 = 64 * 1024 * 1024;

/// A key: a slash-separated path such as `/registry/pods/default/web-0`.
pub type Key = Arc<str>;

/// A point in the store's single, totally ordered history. Zero is before every write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl std::fmt::Display for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A key with its value, as of some revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is stored.
    pub key: Key,
    /// What is stored.
    pub value: Bytes,
    /// The revision that created the key (after its last deletion).
    pub created: Revision,
    /// The revision of the last write to the key; compare-and-swap compares with it.
    pub modified: Revision,
}

/// Which entries to read, and when. Entries come ordered by key.
#[derive(Clone, Debug, Default)]
pub struct RangeRequest {
    /// Only keys that start with this.
    pub prefix: String,
    /// Only keys at or after this one; for paging.
    pub start: Option<String>,
    /// Read the state as of this revision; `None` is the latest.
    pub at: Option<Revision>,
    /// At most this many entries; zero is no limit.
    pub limit: usize,
    /// Whether to count the entries that the limit cuts off. Cheap for the first page of a
    /// folder (a prefix that ends with a slash) at the latest revision; else it walks them all.
    pub count: bool,
    /// Whether what this process has heard of is enough. Else the answer shows every write that
    /// was acknowledged before the request, by whatever process. Only a store that is shared
    /// between processes tells the two apart.
    pub stale: bool,
    /// Whether only keys and revisions are wanted; values are empty then.
    pub keys_only: bool,
}

/// The answer to a [`RangeRequest`].
#[derive(Clone, Debug)]
pub struct RangeResponse {
    /// The entries, ordered by key.
    pub entries: Vec<Entry>,
    /// The revision whose state this is.
    pub revision: Revision,
    /// Whether the limit cut entries off.
    pub more: bool,
    /// How many entries the limit cut off, if the request wanted them counted.
    pub remaining: Option<usize>,
}

/// What a write requires of the key before it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nothing.
    Any,
    /// The key does not exist.
    Absent,
    /// The key exists and was last modified at this revision.
    Modified(Revision),
}

/// One write to one key.
#[derive(Clone, Debug)]
pub struct WriteRequest {
    /// The key to write.
    pub key: Key,
    /// The new value; `None` deletes the key.
    pub value: Option<Bytes>,
    /// What must hold for the write to happen.
    pub expected: Expected,
    /// How long the key stays unless it is written again; `None` is until it is deleted. It goes
    /// no earlier than that, and a store that starts again may let the time start again, too.
    pub ttl: Option<Duration>,
}

impl WriteRequest {
    /// Puts a value that stays.
    pub fn put(key: impl Into<Key>, value: impl Into<Bytes>, expected: Expected) -> Self {
        Self { key: key.into(), value: Some(value.into()), expected, ttl: None }
    }

    /// Deletes a key.
    pub fn delete(key: impl Into<Key>, expected: Expected) -> Self {
        Self { key: key.into(), value: None, expected, ttl: None }
    }

    /// The same write of a value that goes after a while.
    #[must_use]
    pub fn expiring(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    /// Whether a key last modified at `found`, if it exists, is as the write requires it. A
    /// deletion requires that it exists.
    pub(crate) fn check(&self, found: Option<Revision>) -> Result<(), StoreError> {
        let as_expected = match self.expected {
            Expected::Any => true,
            Expected::Absent => found.is_none(),
            Expected::Modified(revision) => found == Some(revision),
        };
        if as_expected && (self.value.is_some() || found.is_some()) {
            return Ok(());
        }
        let key = Key::clone(&self.key);
        let expected = self.expected;
        Err(StoreError::Conflict { key, expected, found })
    }
}

/// The outcome of a successful write.
#[derive(Clone, Debug)]
pub struct Written {
    /// The revision of this write.
    pub revision: Revision,
    /// What the key held before.
    pub previous: Option<Entry>,
}

/// A change of one key.
#[derive(Clone, Debug)]
pub struct Event {
    /// The revision of the write. Several keys can change at one revision where another program
    /// writes to the store as well; their changes are never in two batches of a [`Watch`].
    pub revision: Revision,
    /// The key that was written.
    pub key: Key,
    /// The new entry; `None` when the key was deleted.
    pub current: Option<Entry>,
    /// The entry that the write replaced or deleted.
    pub previous: Option<Entry>,
}

/// Which changes to watch.
#[derive(Clone, Debug)]
pub struct WatchRequest {
    /// Only keys that start with this.
    pub prefix: String,
    /// Only changes strictly after this revision.
    pub after: Revision,
}

/// A running watch. Dropping it ends it.
///
/// A watch buffers nothing of its own: it is a cursor into the store's history, so a slow
/// reader costs no memory and is told [`StoreError::Compacted`] once history passed it by.
pub trait Watch: Send {
    /// Waits for changes and returns them in order; never an empty batch. Cancel-safe: a
    /// change is either returned or still to come.
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>>;

    /// Everything up to this revision that matches has been returned by `next`, or did not exist.
    fn delivered(&mut self) -> Revision;
}

/// A versioned key-value store. See the crate's documentation for the model.
pub trait Store: Send + Sync + 'static {
    /// Reads the latest entry of one key: every write that was acknowledged before is seen.
    fn get(&self, key: &str) -> BoxFuture<'_, Result<Option<Entry>, StoreError>>;

    /// Reads one key as it was at a revision, or as far as this store has heard: the latest may be
    /// elsewhere, where several processes write. Costs no wait for that which has been heard.
    fn known(
        &self,
        key: &str,
        at: Option<Revision>,
    ) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        let prefix = key.to_owned();
        let request = RangeRequest { prefix, limit: 1, at, stale: true, ..RangeRequest::default() };
        let key = Key::from(key);
        Box::pin(async move {
            let first = self.range(request).await?.entries.pop();
            Ok(first.filter(|entry| entry.key == key))
        })
    }

    /// The revision at which a key was last written, as of a revision; `None` if it was not there.
    /// Like [`known`](Self::known), without its value.
    fn modified(
        &self,
        key: &str,
        at: Revision,
    ) -> BoxFuture<'_, Result<Option<Revision>, StoreError>> {
        let known = self.known(key, Some(at));
        Box::pin(async move { Ok(known.await?.map(|entry| entry.modified)) })
    }

    /// Reads the entries under a prefix, at a revision.
    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StoreError>>;

    /// Puts or deletes one key if it is as expected, as one atomic step. Deleting a key that
    /// does not exist is a [`StoreError::Conflict`].
    fn write(&self, request: WriteRequest) -> BoxFuture<'_, Result<Written, StoreError>>;

    /// Watches the changes under a prefix after a revision, which may be the latest one.
    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, StoreError>>;

    /// Forgets history before `revision`: the state at it stays readable and a watch can
    /// resume after it; older states and changes are gone. Compacting what is already
    /// compacted does nothing; compacting the future is a [`StoreError::Future`].
    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Whether the latest value of a key should be written again, though it does not change: it is
    /// [encrypted](encryption) with a key that is to go.
    fn is_stale(&self, key: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
        let _ = key;
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Holds the values of a folder compressed in memory from now on: they are long, and read
    /// seldom. Nobody sees a difference but in what it takes.
    fn hold_compactly(&self, folder: &str) {
        let _ = folder;
    }

    /// Whether the store would take a write, as far as it knows without trying: reads may go on
    /// after a disk has failed. [`StoreError::Full`] says that the last value found no room; the
    /// next that does ends it. A store that is merely busy is healthy.
    fn health(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Why an operation on a store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The key was not as the write expected it.
    #[error("{key}: expected {expected:?}, found {found:?}")]
    Conflict {
        /// The key of the write.
        key: Key,
        /// What the write required.
        expected: Expected,
        /// The revision of the key's last write; `None` if it does not exist.
        found: Option<Revision>,
    },
    /// The revision asked for is older than the history that is kept.
    #[error("revision {requested} has been compacted, the oldest kept is {oldest}")]
    Compacted {
        /// The revision asked for.
        requested: Revision,
        /// The oldest revision that can still be read.
        oldest: Revision,
    },
    /// The revision asked for has not happened yet.
    #[error("revision {requested} is in the future, the store is at {current}")]
    Future {
        /// The revision asked for.
        requested: Revision,
        /// The latest revision.
        current: Revision,
    },
    /// The store cannot be reached or does not answer. Nothing was written.
    #[error("the store cannot be reached: {reason}")]
    Unavailable {
        /// What happened.
        reason: String,
    },
    /// The store was asked to write and did not answer: nobody knows whether it did.
    #[error("the write may or may not have happened: {reason}")]
    Unknown {
        /// What happened.
        reason: String,
    },
    /// There is no room for another write; reads and deletions may still work.
    #[error("the store is full: {reason}")]
    Full {
        /// What is full, and what to do about it.
        reason: String,
    },
    /// The store refuses this request and would do so again: too large, not permitted.
    #[error("the store refuses the request: {reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// A value is there and cannot be decrypted.
    #[error("unable to transform key {key:?}: {reason}")]
    Unreadable {
        /// The key of the value.
        key: Key,
        /// Why not.
        reason: String,
    },
    /// The store is broken and takes no more writes until it is opened again. A write that was
    /// under way when it broke may be there then.
    #[error("the store has failed and takes no more writes: {reason}")]
    Failed {
        /// What broke, and where.
        reason: String,
    },
}
