//! What lies in the directory: the segments of the log, and the snapshot before them.
//!
//! The committer adds segments at one end, and whoever wrote a snapshot takes those off the other
//! end that it made superfluous. Names are removed only after the snapshot is on disk under its
//! own name, and what a crash leaves behind is found and removed at the next start.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use super::files::{Files, Pieces};
use super::format::Kind;
use crate::Revision;

/// The files of a store and their sizes.
#[derive(Debug)]
pub(super) struct Ledger(Mutex<Contents>);

#[derive(Debug)]
pub(super) struct Contents {
    /// Ordered, contiguous, never empty: the last is the one that is written to.
    pub(super) segments: Vec<Segment>,
    pub(super) snapshot: Option<Revision>,
}

/// One segment of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The revision of its first change.
    pub(super) first: Revision,
    pub(super) bytes: u64,
}

impl Ledger {
    pub(super) fn new(segments: Vec<Segment>, snapshot: Option<Revision>) -> Self {
        Self(Mutex::new(Contents { segments, snapshot }))
    }

    /// A segment was begun.
    pub(super) fn begun(&self, segment: Segment) {
        self.lock().segments.push(segment);
    }

    /// The last segment grew.
    pub(super) fn grown(&self, bytes: u64) {
        if let Some(last) = self.lock().segments.last_mut() {
            last.bytes += bytes;
        }
    }

    /// How many bytes of log a snapshot at a revision would make superfluous.
    pub(super) fn superseded(&self, at: Revision) -> u64 {
        let contents = self.lock();
        contents.segments[..contents.superseded(at)].iter().map(|segment| segment.bytes).sum()
    }

    /// Removes what a snapshot, which is on disk, makes superfluous; slowly, beside those who write.
    pub(super) fn superseded_by(&self, files: &dyn Files, at: Revision) -> io::Result<()> {
        let names = {
            let mut contents = self.lock();
            let before = contents.snapshot.replace(at).filter(|before| *before != at);
            let superseded = contents.superseded(at);
            let segments = contents.segments.drain(..superseded);
            let segments = segments.map(|segment| Kind::Log.name(segment.first));
            before.map(|before| Kind::Snapshot.name(before)).into_iter().chain(segments).collect()
        };
        remove(files, names)
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    /// How many segments hold nothing but changes up to a revision.
    fn superseded(&self, at: Revision) -> usize {
        let needed = self.segments.iter().rposition(|segment| segment.first.0 <= at.0 + 1);
        needed.unwrap_or(0)
    }
}

/// Removes files, and makes that durable. Whoever is cut off meanwhile leaves a part of a file that
/// nobody needs any more, under the name by which the next start finds it.
pub(super) fn remove(files: &dyn Files, names: Vec<String>) -> io::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    for name in names {
        match remove_in_pieces(files, &name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    files.sync()
}

/// Removes a file from its end on. A file system that gives up a large file at once lets every
/// sync of another file wait for it: 30 ms for 16 MiB on ext4 that discards what it frees.
pub(super) fn remove_in_pieces(files: &dyn Files, name: &str) -> io::Result<()> {
    let Pieces { bytes, pause } = files.pieces();
    let mut file = files.open_to_write(name)?;
    let mut size = file.size()?;
    while size > bytes {
        size -= bytes;
        file.cut(size)?;
        // On a thread of its own, and a disk takes real time, whatever the clock of a cluster says.
        thread::park_timeout(pause);
    }
    drop(file);
    files.remove(name)
}
