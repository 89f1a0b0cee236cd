//! The state of a store in memory, with its history: what all stores read from.
//!
//! `State` is plain, synchronous data and makes every decision; [`Index`] puts it behind a lock
//! that is never held across an await, and wakes the watches that a change concerns. A watch is a
//! cursor into the state's log (see `watch.rs`), so neither the number nor the speed of readers
//! changes what is kept: only compaction does, and the bytes that history may take.
//!
//! What is here is seen. A store that must make a write durable first does that, and then
//! [`Index::apply`]s it.

mod compact;
mod folders;
mod state;
mod topics;
mod versions;
mod watch;

use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;

use self::compact::Compact;
use self::state::State;
use self::topics::Topic;
use self::watch::Cursor;
use crate::{
    Entry, Key, RangeRequest, RangeResponse, Revision, StoreError, Watch, WatchRequest,
    WriteRequest, Written,
};

/// How large a store is at this moment; for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Keys that exist at the latest revision.
    pub keys: usize,
    /// Changes that watches can still resume from.
    pub history: usize,
    /// How many bytes they keep in memory that the latest state does not need.
    pub history_bytes: usize,
    /// The oldest revision that can still be read.
    pub oldest: Revision,
    /// The latest revision.
    pub revision: Revision,
}

/// Entries that one look at the state returns at most: bounds the time that writers wait.
const STEP_MAX: usize = 1024;

/// A write that has been decided: this key has this value from this revision on.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) revision: Revision,
    pub(crate) key: Key,
    /// `None` deletes the key.
    pub(crate) value: Option<Bytes>,
}

/// The state of a store and its history, for many readers.
pub(crate) struct Index {
    /// Never held across an await, nor while watches are woken.
    state: RwLock<State>,
    compact: Compact,
}

impl Index {
    /// Without any key, at revision 1. Of the past it keeps at most so many bytes.
    pub(crate) fn new(history_bytes: u64) -> Self {
        let history_max = usize::try_from(history_bytes).unwrap_or(usize::MAX);
        Self { state: RwLock::new(State::new(history_max)), compact: Compact::default() }
    }

    /// A copy that goes its own way; values are shared, so it costs a few words a key.
    pub(crate) fn fork(&self) -> Self {
        Self { state: RwLock::new(self.read().fork()), compact: self.compact.fork() }
    }

    /// Holds the values of a folder compressed from now on, those that are there included.
    pub(crate) fn hold_compactly(&self, folder: &str) {
        // What is compressed is so only after this.
        let mut state = self.write();
        if self.compact.add(folder) {
            state.replace_values(folder, |entry| self.compact.held(&entry.key, entry.value));
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        self.read().stats()
    }

    /// The latest revision.
    pub(crate) fn revision(&self) -> Revision {
        self.read().revision()
    }

    pub(crate) fn get(&self, key: &str) -> Option<Entry> {
        let entry = self.read().get(key);
        entry.map(|entry| self.compact.restored(entry))
    }

    /// The entry of a key at a revision, or the latest.
    pub(crate) fn at(
        &self,
        key: &str,
        revision: Option<Revision>,
    ) -> Result<Option<Entry>, StoreError> {
        let Some(revision) = revision else { return Ok(self.get(key)) };
        let entry = self.read().at(key, revision)?;
        Ok(entry.map(|entry| self.compact.restored(entry)))
    }

    /// When a key was last written, as of a revision.
    pub(crate) fn modified(
        &self,
        key: &str,
        revision: Revision,
    ) -> Result<Option<Revision>, StoreError> {
        Ok(self.read().at(key, revision)?.map(|entry| entry.modified))
    }

    /// Reads the entries that are asked for, in short steps that let writers in between: the
    /// revision of the first step is kept to. If history passes it by meanwhile, or is replaced by
    /// another, a request for the latest state reads a later one, in one step.
    pub(crate) fn range(&self, request: &RangeRequest) -> Result<RangeResponse, StoreError> {
        let mut answer = match self.range_by_steps(request) {
            Err(StoreError::Compacted { .. } | StoreError::Future { .. })
                if request.at.is_none() =>
            {
                self.read().range(request)
            }
            answer => answer,
        }?;
        if !request.keys_only {
            let entries = answer.entries.into_iter();
            answer.entries = entries.map(|entry| self.compact.restored(entry)).collect();
        }
        Ok(answer)
    }

    fn range_by_steps(&self, request: &RangeRequest) -> Result<RangeResponse, StoreError> {
        let limit = if request.limit == 0 { usize::MAX } else { request.limit };
        let mut step = RangeRequest { limit: limit.min(STEP_MAX), ..request.clone() };
        step.count &= limit <= STEP_MAX;
        let mut answer = self.read().range(&step)?;
        while answer.more && answer.entries.len() < limit {
            let left = limit - answer.entries.len();
            step.at = Some(answer.revision);
            step.start = answer.entries.last().map(|last| format!("{}\0", last.key));
            step.limit = left.min(STEP_MAX);
            step.count = request.count && left <= STEP_MAX;
            let next = self.read().range(&step)?;
            answer.entries.extend(next.entries);
            (answer.more, answer.remaining) = (next.more, next.remaining);
        }
        if request.count && answer.remaining.is_none() {
            answer.remaining = Some(0);
        }
        Ok(answer)
    }

    pub(crate) fn watch(
        self: &Arc<Self>,
        request: WatchRequest,
    ) -> Result<Box<dyn Watch>, StoreError> {
        Ok(Box::new(Cursor::new(Arc::clone(self), request)?))
    }

    /// Decides about a write and applies it, in one step.
    pub(crate) fn decide(&self, request: WriteRequest) -> Result<Written, StoreError> {
        let request = self.held(request);
        let mut state = self.write();
        let found = state.get(&request.key).map(|entry| entry.modified);
        request.check(found)?;
        let revision = Revision(state.revision().0 + 1);
        let change = Change { revision, key: request.key, value: request.value };
        let (previous, concerned) = state.apply(change);
        drop(state);
        concerned.iter().for_each(|topic| topic.wake());
        let previous = previous.map(|previous| self.compact.restored(previous));
        Ok(Written { revision, previous })
    }

    /// Applies changes that were decided elsewhere, all at once. They come ordered by revision,
    /// after everything applied before.
    pub(crate) fn apply(&self, changes: impl IntoIterator<Item = Change>) {
        let mut concerned: Vec<Arc<Topic>> = Vec::new();
        let held = |change: Change| {
            let value = change.value.map(|value| self.compact.held(&change.key, value));
            Change { value, ..change }
        };
        let changes: Vec<Change> = changes.into_iter().map(held).collect();
        let mut state = self.write();
        for change in changes {
            for topic in state.apply(change).1 {
                if !concerned.iter().any(|known| Arc::ptr_eq(known, &topic)) {
                    concerned.push(topic);
                }
            }
        }
        drop(state);
        concerned.iter().for_each(|topic| topic.wake());
    }

    /// Nothing changed until this revision.
    pub(crate) fn advance(&self, revision: Revision) {
        self.write().advance(revision);
    }

    /// Replaces everything by what is given, ordered by key, as of a revision. There is no
    /// history before it, and every watch ends with [`StoreError::Compacted`].
    pub(crate) fn reset(&self, entries: Vec<Entry>, revision: Revision) {
        let held = |mut entry: Entry| {
            entry.value = self.compact.held(&entry.key, entry.value);
            entry
        };
        let entries = entries.into_iter().map(held).collect();
        let mut state = self.write();
        state.reset(entries, revision);
        let concerned = state.watched();
        drop(state);
        concerned.iter().for_each(|topic| topic.wake());
    }

    /// Forgets history before a revision, in short steps that let others in between, so that a
    /// long history does not stop the store. Cancelled half-way it has compacted to an earlier
    /// revision.
    pub(crate) async fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        // The guard must be gone before the await, hence no `while` on the call itself.
        loop {
            let finished = self.write().compact_step(revision)?;
            if finished {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }

    fn held(&self, request: WriteRequest) -> WriteRequest {
        let value = request.value.map(|value| self.compact.held(&request.key, value));
        WriteRequest { value, ..request }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().expect("nothing panics under the lock")
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().expect("nothing panics under the lock")
    }
}

#[cfg(test)]
mod tests;
