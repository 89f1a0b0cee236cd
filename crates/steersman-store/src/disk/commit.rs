//! The committer: decides writes in their order, makes them durable, and only then lets them be
//! seen and answers.
//!
//! It takes what waits as one batch: each write is decided against the index and the batch so far,
//! the batch becomes one frame of the log, and one sync serves all of it (group commit). A conflict
//! with a write of the same batch is true only once that write is durable, so it is answered
//! after the sync as well. [`Committer`] is synchronous; `thread.rs` feeds it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::frame;
use super::log::Log;
use super::record::{OVERHEAD, Record, SIZE_MAX};
use super::request::{Answer, Request};
use super::ttl::Ttls;
use crate::expiry::TTL_MAX;
use crate::index::{Change, Index};
use crate::{Entry, Key, Revision, StoreError, WriteRequest, Written};

/// A batch takes no more writes when its records are as large as this.
pub(super) const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Values of this size are kept where no other thread has put anything.
const LARGE: usize = 32 * 1024;

/// Decides and commits.
pub(super) struct Committer {
    pub(super) log: Log,
    pub(super) index: Arc<Index>,
    pub(super) ttls: Ttls,
    pub(super) space: Space,
    /// The frame that is being built, kept for its memory.
    frame: Vec<u8>,
}

/// What decides when a snapshot is worth its while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    /// What the latest state takes in a snapshot.
    pub(super) live_bytes: u64,
    /// How much of the log a snapshot must replace, at least.
    pub(super) snapshot_bytes: u64,
}

/// Writes that are decided but not yet durable.
struct Batch {
    changes: Vec<Change>,
    ttls: Vec<Option<Duration>>,
    /// What the keys of the batch hold after it.
    overlay: HashMap<Key, Option<Entry>>,
    writes: Vec<(Answer<Written>, Result<Written, StoreError>)>,
    compactions: Vec<(Answer<()>, Result<(), StoreError>)>,
    revision: Revision,
    oldest: Revision,
    /// How much larger the latest state became, which may be less than nothing.
    grown: i64,
}

impl Committer {
    pub(super) fn new(log: Log, index: Arc<Index>, ttls: Ttls, space: Space) -> Self {
        Self { log, index, ttls, space, frame: Vec::new() }
    }

    /// Takes as many of the waiting requests as one batch may have, and answers them. At least
    /// one is taken.
    pub(super) fn commit(&mut self, waiting: &mut VecDeque<Request>) {
        let mut batch = self.begin();
        while self.frame.len() < BATCH_BYTES
            && let Some(request) = waiting.pop_front()
        {
            match request {
                Request::Write(request, answer) if !answer.is_closed() => {
                    let decided = self.decide(request, &mut batch);
                    batch.writes.push((answer, decided));
                }
                Request::Compact(revision, answer) => {
                    let decided = batch.compact(revision);
                    batch.compactions.push((answer, decided));
                }
                Request::Write(..) | Request::Close => {}
            }
        }
        let changed = !batch.changes.is_empty() || batch.oldest > self.log.oldest();
        let count = batch.changes.len() as u32;
        let done = match changed {
            true => self.log.append(&mut self.frame, count, batch.oldest),
            false => self.log.failed().map_or(Ok(()), Err),
        };
        match done {
            Ok(()) => self.finish(batch),
            Err(error) => batch.abandon(&error),
        }
    }

    fn begin(&mut self) -> Batch {
        if self.frame.capacity() > 2 * BATCH_BYTES {
            self.frame = Vec::new();
        }
        frame::begin(&mut self.frame);
        Batch {
            changes: Vec::new(),
            ttls: Vec::new(),
            overlay: HashMap::new(),
            writes: Vec::new(),
            compactions: Vec::new(),
            revision: self.log.revision(),
            // The index forgets by itself when its history becomes too large.
            oldest: self.log.oldest().max(self.index.stats().oldest),
            grown: 0,
        }
    }

    /// Decides about one write, as if those before it in the batch had happened.
    fn decide(
        &mut self,
        mut request: WriteRequest,
        batch: &mut Batch,
    ) -> Result<Written, StoreError> {
        let size = request.key.len() + request.value.as_ref().map_or(0, Bytes::len);
        if size + OVERHEAD > SIZE_MAX {
            let reason = format!(
                "too large: key and value have {size} bytes, at most {SIZE_MAX} are stored"
            );
            return Err(StoreError::Refused { reason });
        }
        let previous = match batch.overlay.get(&request.key) {
            Some(entry) => entry.clone(),
            None => self.index.get(&request.key),
        };
        request.check(previous.as_ref().map(|entry| entry.modified))?;
        request.ttl = request.ttl.filter(|_| request.value.is_some()).map(|ttl| ttl.min(TTL_MAX));
        let ttl = request.ttl;
        let value = request.value.as_deref();
        Record { key: &request.key, value, ttl, origin: None }.encode(&mut self.frame);
        Ok(batch.write(request, previous))
    }

    /// Lets a durable batch be seen, and answers.
    fn finish(&mut self, batch: Batch) {
        for (change, ttl) in batch.changes.iter().zip(&batch.ttls) {
            self.ttls.written(&change.key, change.revision, *ttl);
        }
        self.index.apply(batch.changes);
        let live = &mut self.space.live_bytes;
        *live = live.saturating_add_signed(batch.grown);
        // Whoever has given up does not hear of it.
        batch.writes.into_iter().for_each(|(answer, decided)| drop(answer.send(decided)));
        batch.compactions.into_iter().for_each(|(answer, decided)| drop(answer.send(decided)));
    }
}

impl Batch {
    /// Adds a write that may happen.
    fn write(&mut self, request: WriteRequest, previous: Option<Entry>) -> Written {
        self.revision.0 += 1;
        let revision = self.revision;
        let WriteRequest { key, value, ttl, .. } = request;
        let value = value.map(kept);
        let created = previous.as_ref().map_or(revision, |previous| previous.created);
        let entry = value.clone().map(|value| {
            let key = Key::clone(&key);
            Entry { key, value, created, modified: revision }
        });
        let size = |entry: &Option<Entry>| entry.as_ref().map_or(0, size) as i64;
        self.grown += size(&entry) - size(&previous);
        self.overlay.insert(Key::clone(&key), entry);
        self.ttls.push(ttl);
        self.changes.push(Change { revision, key, value });
        Written { revision, previous }
    }

    fn compact(&mut self, revision: Revision) -> Result<(), StoreError> {
        if revision > self.revision {
            return Err(StoreError::Future { requested: revision, current: self.revision });
        }
        self.oldest = self.oldest.max(revision);
        Ok(())
    }

    /// Nothing of the batch happened.
    fn abandon(self, error: &StoreError) {
        let writes = self.writes.into_iter();
        writes.for_each(|(answer, _)| drop(answer.send(Err(error.clone()))));
        let compactions = self.compactions.into_iter();
        compactions.for_each(|(answer, _)| drop(answer.send(Err(error.clone()))));
    }
}

/// A value as it is kept for as long as history lasts. Allocators give memory back by the page, and
/// pages belong to threads: between what the threads of requests need for moments, a large value
/// would keep several times its size. Here, values lie beside values, and go in the order they came.
fn kept(value: Bytes) -> Bytes {
    if value.len() < LARGE { value } else { Bytes::copy_from_slice(&value) }
}

/// What an entry takes in a snapshot.
pub(super) fn size(entry: &Entry) -> usize {
    entry.key.len() + entry.value.len() + OVERHEAD
}
