//! The log: appends frames to the last segment, and begins another when it is full.
//!
//! The invariant that recovery rests on: a frame is written only after the one before it is on
//! disk. A disk without room leaves the log as it was and usable; a sync that failed ends it,
//! because nobody knows then what is on disk.

use std::io;
use std::sync::{Arc, OnceLock};

use super::files::{File, Files};
use super::format::{self, Kind, Place};
use super::frame::{self, Contents};
use super::ledger::{Ledger, Segment};
use crate::{Revision, StoreError};

/// The end of the log.
pub(super) struct Log {
    pub(super) files: Arc<dyn Files>,
    pub(super) ledger: Arc<Ledger>,
    /// The last segment.
    file: Box<dyn File>,
    place: Place,
    /// Where it ends.
    position: u64,
    /// How large a segment becomes before another is begun.
    segment_bytes: u64,
    /// How large this one becomes.
    full_at: u64,
    /// The revision of the last change in the log.
    revision: Revision,
    /// The oldest revision that is kept, as the log says.
    oldest: Revision,
    failure: Failure,
}

/// Why nothing can be written any more, once that is so; for everyone who has a handle.
#[derive(Clone, Debug, Default)]
pub(super) struct Failure(Arc<OnceLock<String>>);

impl Failure {
    pub(super) fn get(&self) -> Option<StoreError> {
        self.0.get().map(|reason| StoreError::Failed { reason: reason.clone() })
    }
}

/// Where a log goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) place: Place,
    pub(super) position: u64,
    pub(super) revision: Revision,
    pub(super) oldest: Revision,
}

impl Log {
    pub(super) fn new(
        files: Arc<dyn Files>,
        file: Box<dyn File>,
        end: End,
        ledger: Ledger,
        segment_bytes: u64,
    ) -> Self {
        let End { place, position, revision, oldest } = end;
        let ledger = Arc::new(ledger);
        let failure = Failure::default();
        Self {
            files,
            ledger,
            file,
            place,
            position,
            segment_bytes,
            full_at: segment_bytes,
            revision,
            oldest,
            failure,
        }
    }

    /// The store's identity.
    pub(super) fn store(&self) -> u64 {
        self.place.store
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// Where the last segment ends.
    #[cfg(test)]
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn oldest(&self) -> Revision {
        self.oldest
    }

    /// Why nothing can be written any more.
    pub(super) fn failed(&self) -> Option<StoreError> {
        self.failure.get()
    }

    /// Tells of it, from wherever.
    pub(super) fn failure(&self) -> Failure {
        self.failure.clone()
    }

    /// Appends a frame, begun by [`frame::begin`], and waits until it is on disk.
    pub(super) fn append(
        &mut self,
        frame: &mut [u8],
        count: u32,
        oldest: Revision,
    ) -> Result<(), StoreError> {
        if let Some(failed) = self.failed() {
            return Err(failed);
        }
        if self.position >= self.full_at && self.revision.0 + 1 > self.place.revision.0 {
            self.begin_segment()?;
        }
        let contents = Contents { first: self.revision.0 + 1, oldest: oldest.0, count };
        frame::finish(frame, contents, &self.place, self.position);
        if let Err(error) = self.file.write_at(self.position, frame) {
            return Err(self.cut_back(&error));
        }
        if let Err(error) = self.file.sync() {
            return Err(self.fail("sync", &self.place.name(), &error));
        }
        if self.file.is_removed() {
            return Err(self.fail("keep", &self.place.name(), &io::ErrorKind::NotFound.into()));
        }
        self.position += frame.len() as u64;
        self.ledger.grown(frame.len() as u64);
        self.revision.0 += u64::from(count);
        self.oldest = oldest;
        Ok(())
    }

    /// Ends the last segment and begins the next. Until the new one may have its name, the old one
    /// can go on: too many open files are no reason to take no more writes.
    fn begin_segment(&mut self) -> Result<(), StoreError> {
        let place = Place { revision: Revision(self.revision.0 + 1), ..self.place };
        let temporary = place.temporary_name();
        let name = place.name();
        let file = match prepare(&*self.files, &place) {
            Ok(file) => file,
            Err(error) => {
                tracing::warn!(%error, "log segment could not be started; the last one goes on");
                let _ = self.files.remove(&temporary);
                self.full_at = self.position + self.segment_bytes;
                return Ok(());
            }
        };
        match self.files.rename(&temporary, &name) {
            Ok(()) => {}
            Err(error) if is_full(&error) => return Err(full(&error)),
            Err(error) => return Err(self.fail("create", &name, &error)),
        }
        if let Err(error) = self.files.sync() {
            return Err(self.fail("sync the directory of", &place.name(), &error));
        }
        self.ledger.begun(Segment { first: place.revision, bytes: format::HEADER });
        (self.file, self.place, self.position) = (file, place, format::HEADER);
        self.full_at = self.segment_bytes;
        Ok(())
    }

    /// Takes back what was written of a frame, so that the next one follows the last whole one.
    fn cut_back(&mut self, error: &io::Error) -> StoreError {
        let cut = self.file.cut(self.position).and_then(|()| self.file.sync());
        match cut {
            Ok(()) if is_full(error) => full(error),
            _ => self.fail("write", &self.place.name(), error),
        }
    }

    fn fail(&mut self, action: &str, name: &str, error: &io::Error) -> StoreError {
        let file = self.files.path(name);
        tracing::error!(%error, file = %file.display(), "store is read-only from now on: cannot {action}");
        let reason = format!("cannot {action} {}: {error}; open the store again", file.display());
        // The first reason stays: nothing is written after it.
        let _ = self.failure.0.set(reason.clone());
        StoreError::Failed { reason }
    }
}

/// Makes a file with a header: under a name of its own until it is on disk. The directory is still
/// to be synced.
pub(super) fn create(files: &dyn Files, place: &Place) -> io::Result<Box<dyn File>> {
    let file = prepare(files, place)?;
    files.rename(&place.temporary_name(), &place.name())?;
    Ok(file)
}

/// Makes such a file, and leaves it under its temporary name.
fn prepare(files: &dyn Files, place: &Place) -> io::Result<Box<dyn File>> {
    let mut file = files.create(&place.temporary_name())?;
    file.write_at(0, &place.header())?;
    file.sync()?;
    Ok(file)
}

/// Makes the first segment of a store whose last change has this revision.
pub(super) fn create_first(
    files: &dyn Files,
    store: u64,
    after: Revision,
) -> io::Result<(Box<dyn File>, Place)> {
    let place = Place { kind: Kind::Log, store, revision: Revision(after.0 + 1) };
    let file = create(files, &place)?;
    files.sync()?;
    Ok((file, place))
}

pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull, WriteZero};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge | WriteZero)
}

fn full(error: &io::Error) -> StoreError {
    StoreError::Full { reason: format!("{error}; make room on the disk") }
}
