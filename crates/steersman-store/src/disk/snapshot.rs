//! Snapshots: the state at one revision in one file, so that the log before it can go.
//!
//! A snapshot is written beside the committer, in pages read from the index at the oldest revision
//! that is kept: watches resume over a restart with the history that was kept. It gets its name
//! once it is on disk, so that an unfinished one is never read. Its last frame has no entries and
//! says how many there were.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::commit::Committer;
use super::error::{OpenError, io_error};
use super::files::{File, Files};
use super::format::{self, Kind, Place};
use super::frame::{self, Contents, Next};
use super::ledger::{self, Ledger};
use super::reader::Reader;
use super::record::Record;
use super::ttl::Ttls;
use crate::index::Index;
use crate::{Entry, RangeRequest, Revision, StoreError};

/// How large a frame becomes before it is written.
const FRAME_BYTES: usize = 256 * 1024;
/// After so many bytes the disk is waited for: a long snapshot must not leave it with so much to
/// write that the log's small syncs wait behind it.
const SYNC_BYTES: u64 = 8 * 1024 * 1024;
/// Entries read from the index at once.
const PAGE: usize = 500;
/// How often to begin again when the index forgets the revision that is being written. That is
/// noticed at the next page, so an attempt that is in vain costs little.
const ATTEMPTS: usize = 8;

/// How many bytes of log a snapshot would let go.
pub(super) fn superseded(committer: &Committer) -> u64 {
    committer.log.ledger.superseded(committer.log.oldest())
}

/// Whether that outweighs the snapshot. A disk that has failed is left as it is.
pub(super) fn is_due(committer: &Committer) -> bool {
    committer.log.failed().is_none()
        && superseded(committer) > committer.space.live_bytes.max(committer.space.snapshot_bytes)
}

/// Writes one snapshot of a store that goes on.
pub(super) struct Snapshotter {
    files: Arc<dyn Files>,
    ledger: Arc<Ledger>,
    index: Arc<Index>,
    ttls: Ttls,
    store: u64,
    oldest: Revision,
    stop: Arc<AtomicBool>,
}

/// Why there is no snapshot.
#[derive(Debug)]
enum Unfinished {
    /// The index no longer knows the revision.
    PassedBy,
    /// The store is being closed.
    Stopped,
    Io(io::Error),
}

impl Snapshotter {
    pub(super) fn new(committer: &Committer, stop: Arc<AtomicBool>) -> Self {
        Self {
            files: Arc::clone(&committer.log.files),
            ledger: Arc::clone(&committer.log.ledger),
            index: Arc::clone(&committer.index),
            ttls: committer.ttls.clone(),
            store: committer.log.store(),
            oldest: committer.log.oldest(),
            stop,
        }
    }

    /// Writes the snapshot and removes what it makes superfluous; says whether it did. What fails
    /// is to be tried again when the log has grown further.
    pub(super) fn run(self) -> bool {
        match self.write_oldest().or_else(|unfinished| match unfinished {
            // Better without the history before it than a log that grows for ever.
            Unfinished::PassedBy => self.write_latest(),
            unfinished => Err(unfinished),
        }) {
            Ok(bytes) => {
                tracing::debug!(bytes, "snapshot written");
                true
            }
            Err(Unfinished::Io(error)) => {
                tracing::warn!(%error, "snapshot failed; the log keeps growing");
                false
            }
            Err(Unfinished::PassedBy | Unfinished::Stopped) => false,
        }
    }

    /// A snapshot of the oldest revision that is kept: history must outlive a restart. The index
    /// may forget that revision meanwhile, and whoever writes much makes it do so again and again.
    fn write_oldest(&self) -> Result<u64, Unfinished> {
        let mut at = self.oldest;
        for _ in 1..ATTEMPTS {
            let pages = |take: Take<'_>| each_page(&self.index, at, take);
            match self.write(at, pages) {
                Err(Unfinished::PassedBy) => at = self.index.stats().oldest,
                done => return done,
            }
        }
        Err(Unfinished::PassedBy)
    }

    /// A snapshot of the latest revision, whose entries are taken all at once. They share their
    /// values with the index, so what is replaced while they are written takes room as well; those that
    /// the index holds compressed are unpacked meanwhile.
    fn write_latest(&self) -> Result<u64, Unfinished> {
        let latest = self.index.range(&RangeRequest::default())?;
        self.write(latest.revision, |take| latest.entries.chunks(PAGE).try_for_each(take))
    }

    fn write(
        &self,
        at: Revision,
        pages: impl FnOnce(Take<'_>) -> Result<(), Unfinished>,
    ) -> Result<u64, Unfinished> {
        let place = Place { kind: Kind::Snapshot, store: self.store, revision: at };
        let written = self.write_as(place, pages);
        if written.is_err() {
            // Left behind, it would be removed at the next start.
            let _ = ledger::remove_in_pieces(&*self.files, &place.temporary_name());
        }
        let bytes = written?;
        self.ledger.superseded_by(&*self.files, at).map_err(Unfinished::Io)?;
        Ok(bytes)
    }

    fn write_as(
        &self,
        place: Place,
        pages: impl FnOnce(Take<'_>) -> Result<(), Unfinished>,
    ) -> Result<u64, Unfinished> {
        let mut writer = Writer::create(&*self.files, place).map_err(Unfinished::Io)?;
        pages(&mut |entries| {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Unfinished::Stopped);
            }
            entries.iter().try_for_each(|entry| {
                writer.entry(entry, self.ttls.of(entry)).map_err(Unfinished::Io)
            })
        })?;
        writer.finish(&place.name()).map_err(Unfinished::Io)
    }
}

/// Takes a page of entries.
type Take<'a> = &'a mut dyn FnMut(&[Entry]) -> Result<(), Unfinished>;

impl From<StoreError> for Unfinished {
    fn from(_: StoreError) -> Self {
        // The index answers a range with an error for no other reason.
        Self::PassedBy
    }
}

/// Reads the state at a revision, page by page.
pub(super) fn each_page<E: From<StoreError>>(
    index: &Index,
    at: Revision,
    mut take: impl FnMut(&[Entry]) -> Result<(), E>,
) -> Result<(), E> {
    let mut request = RangeRequest { at: Some(at), limit: PAGE, ..RangeRequest::default() };
    loop {
        let page = index.range(&request)?;
        take(&page.entries)?;
        let Some(last) = page.entries.last().filter(|_| page.more) else { return Ok(()) };
        request.start = Some(format!("{}\0", last.key));
    }
}

/// A snapshot that is being written, under a temporary name.
pub(super) struct Writer<'a> {
    files: &'a dyn Files,
    place: Place,
    temporary: String,
    file: Box<dyn File>,
    position: u64,
    synced: u64,
    frame: Vec<u8>,
    /// Entries in the frames before this one.
    written: u64,
    /// Entries in this one.
    count: u32,
}

impl<'a> Writer<'a> {
    pub(super) fn create(files: &'a dyn Files, place: Place) -> io::Result<Self> {
        let temporary = place.temporary_name();
        Self::create_as(files, place, temporary)
    }

    pub(super) fn create_as(
        files: &'a dyn Files,
        place: Place,
        temporary: String,
    ) -> io::Result<Self> {
        let mut file = files.create(&temporary)?;
        file.write_at(0, &place.header())?;
        let mut frame = Vec::new();
        frame::begin(&mut frame);
        let position = format::HEADER;
        let synced = 0;
        Ok(Self { files, place, temporary, file, position, synced, frame, written: 0, count: 0 })
    }

    /// Adds an entry; they come ordered by key.
    pub(super) fn entry(&mut self, entry: &Entry, ttl: Option<Duration>) -> io::Result<()> {
        let origin = Some((entry.created, entry.modified));
        self.record(&Record { key: &entry.key, value: Some(&entry.value), ttl, origin })
    }

    pub(super) fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        record.encode(&mut self.frame);
        self.count += 1;
        if self.frame.len() >= FRAME_BYTES { self.write_frame() } else { Ok(()) }
    }

    /// Ends the snapshot and gives it its name. Says how large it is.
    pub(super) fn finish(mut self, name: &str) -> io::Result<u64> {
        if self.count > 0 {
            self.write_frame()?;
        }
        self.write_frame()?;
        self.file.sync()?;
        self.files.rename(&self.temporary, name)?;
        self.files.sync()?;
        Ok(self.position)
    }

    fn write_frame(&mut self) -> io::Result<()> {
        let oldest = self.place.revision.0;
        let contents = Contents { first: self.written, oldest, count: self.count };
        frame::finish(&mut self.frame, contents, &self.place, self.position);
        self.file.write_at(self.position, &self.frame)?;
        self.position += self.frame.len() as u64;
        self.written += u64::from(self.count);
        self.count = 0;
        frame::begin(&mut self.frame);
        if self.position - self.synced > SYNC_BYTES {
            self.file.sync()?;
            self.synced = self.position;
        }
        Ok(())
    }
}

/// Reads a snapshot to its end and verifies all of it. Says what it was of, and how large.
pub(super) fn read(
    files: &dyn Files,
    name: &str,
    mut take: impl FnMut(&Record<'_>) -> Result<(), OpenError>,
) -> Result<(Place, u64), OpenError> {
    let path = files.path(name);
    let failed = |error| io_error("read", path.clone(), error);
    let corrupt = |offset, reason: &str| {
        Err(OpenError::Corrupt { file: path.clone(), offset, reason: reason.to_owned() })
    };
    let mut reader = Reader::open(files, name).map_err(failed)?;
    let place = Place::read(Kind::Snapshot, name, files, &mut reader)?;
    let mut offset = format::HEADER;
    let mut entries = 0;
    loop {
        let (header, mut payload) =
            match frame::next(&mut reader, &place, offset).map_err(failed)? {
                Next::Frame(header, payload) => (header, payload),
                Next::End => return corrupt(offset, "it ends too early"),
                Next::Bad(reason) => return corrupt(offset, reason),
            };
        if header.first != entries {
            return corrupt(offset, "a frame is missing");
        }
        for _ in 0..header.count {
            match Record::decode(&mut payload) {
                Some(record) => take(&record)?,
                None => return corrupt(offset, "a record cannot be read"),
            }
        }
        entries += u64::from(header.count);
        offset += (frame::HEADER as u64) + u64::from(header.length);
        if header.count == 0 {
            break;
        }
    }
    if offset < reader.size() {
        return corrupt(offset, "it goes on after its end");
    }
    Ok((place, reader.size()))
}
