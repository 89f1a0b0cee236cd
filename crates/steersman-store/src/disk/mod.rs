//! The store on disk: an append-only log with checksums beneath the index in memory.
//!
//! A write is seen and acknowledged only after it is on disk: one thread (`thread.rs`, `commit.rs`)
//! takes the writes that wait, appends them to the log as one frame (`log.rs`, `frame.rs`,
//! `record.rs`), waits for the disk, and then applies them to the index. Reads and watches never
//! touch the disk. Compaction is recorded in the log as well; once more of the log has been
//! compacted than a snapshot would take, `snapshot.rs` writes one and the log before it goes.
//! `open.rs` and `replay.rs` find all of it again; `format.rs` documents the files.
//!
//! What a disk must do: keep what was synced, and tear nothing that was. A frame damaged later is
//! found by its checksum and never served.

pub mod backup;
mod commit;
mod error;
mod files;
mod format;
mod frame;
mod ledger;
mod lock;
mod log;
mod open;
mod reader;
mod record;
mod replay;
mod request;
mod snapshot;
mod thread;
mod ttl;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::Arc;

use futures::future::{self, BoxFuture, FutureExt};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use self::commit::{BATCH_BYTES, Committer, Space};
pub use self::error::OpenError;
use self::error::io_error;
use self::files::{Directory, Files};
use self::lock::Lock;
use self::log::Failure;
pub use self::open::Opened;
use self::open::Recovered;
use self::request::Request;
use self::ttl::Ttls;
use crate::expiry::Expiry;
use crate::index::Index;
pub use crate::index::Stats;
use crate::room::Room;
use crate::{
    Entry, HISTORY_BYTES, RangeRequest, RangeResponse, Revision, Store, StoreError, Watch,
    WatchRequest, WriteRequest, Written,
};

/// How many requests may wait for the committer; who comes after waits for room.
const WAITING_MAX: usize = 1024;

/// How a store keeps what it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether to wait for the disk. Without, writes that were acknowledged survive the end of the
    /// process but not of the machine, after which the directory may be found damaged.
    pub sync: bool,
    /// How large a segment of the log becomes before another is begun. Disk space is given back
    /// by whole segments.
    pub segment_bytes: u64,
    /// How much of the log must have been compacted, at least, before a snapshot replaces it; it
    /// must also be more than the snapshot itself takes.
    pub snapshot_bytes: u64,
    /// How many bytes of the past are kept in memory at most. What is older is compacted, however
    /// young it is.
    pub history_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        let mebibyte = 1024 * 1024;
        Self {
            sync: true,
            segment_bytes: 16 * mebibyte,
            snapshot_bytes: 64 * mebibyte,
            history_bytes: HISTORY_BYTES,
        }
    }
}

/// A [`Store`] that keeps everything in a directory, and answers reads from memory.
///
/// Cloning is cheap and gives another handle to the same store. The last one dropped ends the
/// store after what was written is on disk; [`close`](Self::close) waits for that.
#[derive(Clone)]
pub struct DiskStore {
    shared: Arc<Shared>,
}

struct Shared {
    index: Arc<Index>,
    expiry: Arc<Expiry>,
    requests: mpsc::Sender<Request>,
    failure: Failure,
    files: Arc<dyn Files>,
    room: Room,
    /// Closed when the directory is free again.
    ended: watch::Receiver<()>,
}

impl DiskStore {
    /// Opens the store in a directory, which is made if it is not there. What a crash left behind
    /// is repaired; what is damaged is refused.
    pub async fn open(directory: &Path, options: Options) -> Result<(Self, Opened), OpenError> {
        let began = Instant::now();
        let path = directory.to_owned();
        let opening = tokio::task::spawn_blocking(move || open(&path, &options));
        let (recovered, lock, snapshot_bytes) = match opening.await {
            Ok(opened) => opened?,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        let (store, mut opened) = Self::start(recovered, lock, snapshot_bytes)
            .map_err(|error| io_error("start a thread for", directory.to_owned(), error))?;
        opened.taken = began.elapsed();
        Ok((store, opened))
    }

    /// How large the store is now.
    pub fn stats(&self) -> Stats {
        self.shared.index.stats()
    }

    /// Ends the store, for all its handles: what was sent is decided and made durable, then the
    /// directory is free again. Reads still work afterwards, writes fail.
    pub async fn close(self) {
        let mut ended = self.shared.ended.clone();
        self.shared.expiry.close();
        // It may have ended before.
        let _ = self.shared.requests.send(Request::Close).await;
        while ended.changed().await.is_ok() {}
    }

    fn start(
        recovered: Recovered,
        lock: Lock,
        snapshot_bytes: u64,
    ) -> std::io::Result<(Self, Opened)> {
        let Recovered { index, log, live_bytes, ttls: keys, opened } = recovered;
        let index = Arc::new(index);
        let expiry = Arc::<Expiry>::default();
        let (requests, received) = mpsc::channel(WAITING_MAX);
        let ttls = Ttls::new(Arc::clone(&expiry), Handle::current(), requests.downgrade());
        for (key, revision, ttl) in keys {
            ttls.written(&key, revision, Some(ttl));
        }
        let failure = log.failure();
        let files = Arc::clone(&log.files);
        let space = Space { live_bytes, snapshot_bytes };
        let committer = Committer::new(log, Arc::clone(&index), ttls, space);
        let ended = thread::start(committer, received, lock)?;
        let room = Room::default();
        let shared = Shared { index, expiry, requests, failure, files, room, ended };
        Ok((Self { shared: Arc::new(shared) }, opened))
    }
}

impl Shared {
    /// Whether the disk has room for what may be written next.
    fn check_disk(&self) -> Result<(), StoreError> {
        match self.files.available() {
            Some(left) if left < BATCH_BYTES as u64 => {
                let reason = format!("only {left} bytes are left; make room on the disk");
                Err(StoreError::Full { reason })
            }
            _ => Ok(()),
        }
    }
}

/// Takes the directory and reads what it holds.
fn open(path: &Path, options: &Options) -> Result<(Recovered, Lock, u64), OpenError> {
    files::create_directory(path, options.sync)
        .map_err(|error| io_error("create", path.to_owned(), error))?;
    let files: Arc<dyn Files> = Arc::new(Directory::new(path.to_owned(), options.sync));
    // Before the lock leaves its file in a directory that is somebody else's.
    open::refuse_foreign(&*files)?;
    let lock = Lock::take(path)?;
    let recovered = open::recover(&files, options, new_identity())?;
    Ok((recovered, lock, options.snapshot_bytes))
}

/// The identity of a store that comes to be. The standard library's hash seeds are random.
fn new_identity() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Asks the committer for a write, and waits for its answer.
async fn submit(
    requests: &mpsc::Sender<Request>,
    request: WriteRequest,
) -> Result<Written, StoreError> {
    let (answer, answered) = oneshot::channel();
    let sent = requests.send(Request::Write(request, answer)).await;
    sent.map_err(|_| closed())?;
    answered.await.unwrap_or_else(|_| Err(abandoned()))
}

fn closed() -> StoreError {
    StoreError::Failed { reason: "it is closed; open it again".to_owned() }
}

/// The committer took a request and ended without an answer: it panicked.
fn abandoned() -> StoreError {
    StoreError::Unknown { reason: "the store ended while it wrote; open it again".to_owned() }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.expiry.close();
    }
}

impl std::fmt::Debug for DiskStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DiskStore").field(&self.stats()).finish()
    }
}

impl Store for DiskStore {
    fn get(&self, key: &str) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        let entry = self.shared.index.get(key);
        future::ready(Ok(entry)).boxed()
    }

    fn known(
        &self,
        key: &str,
        at: Option<Revision>,
    ) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        future::ready(self.shared.index.at(key, at)).boxed()
    }

    fn modified(
        &self,
        key: &str,
        at: Revision,
    ) -> BoxFuture<'_, Result<Option<Revision>, StoreError>> {
        future::ready(self.shared.index.modified(key, at)).boxed()
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StoreError>> {
        async move { self.shared.index.range(&request) }.boxed()
    }

    fn write(&self, request: WriteRequest) -> BoxFuture<'_, Result<Written, StoreError>> {
        async move {
            let puts = request.value.is_some();
            let written = submit(&self.shared.requests, request).await;
            if puts {
                self.shared.room.note(&written);
            }
            written
        }
        .boxed()
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, StoreError>> {
        async move { self.shared.index.watch(request) }.boxed()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        async move {
            let (answer, answered) = oneshot::channel();
            let sent = self.shared.requests.send(Request::Compact(revision, answer)).await;
            sent.map_err(|_| closed())?;
            answered.await.unwrap_or_else(|_| Err(abandoned()))?;
            self.shared.index.compact(revision).await
        }
        .boxed()
    }

    fn hold_compactly(&self, folder: &str) {
        self.shared.index.hold_compactly(folder);
    }

    fn health(&self) -> Result<(), StoreError> {
        match self.shared.failure.get() {
            Some(failed) => Err(failed),
            None if self.shared.requests.is_closed() => Err(closed()),
            // A small value may yet find room on a disk that has none left.
            None => self.shared.room.check().and_then(|()| self.shared.check_disk()),
        }
    }
}

#[cfg(test)]
mod tests;
