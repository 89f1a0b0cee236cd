//! Recovery: from what a directory holds to a store that goes on where it ended.
//!
//! A crash can leave the end of a write, unfinished files, and files that a snapshot has made
//! superfluous; all of that is cut off or removed. Before anything is served, what was found is
//! made durable: it may never have been, and nobody may see what the next crash takes back.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Options;
use super::commit;
use super::error::{OpenError, io_error};
use super::files::{File, Files};
use super::format::{self, Kind, Place};
use super::ledger::{self, Ledger, Segment};
use super::log::{self, End, Log};
use super::replay::{self, EMPTY, Logged, Replayed, State, Survey, Walked};
use super::snapshot;
use crate::index::Index;
use crate::{Key, Revision, StoreError};

/// What was found when a directory was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// The revision of the snapshot that was read; `None` if there is none.
    pub snapshot: Option<Revision>,
    /// How many changes after it were read from the log.
    pub changes: u64,
    /// How many bytes were read, of snapshot and log.
    pub bytes: u64,
    /// How many bytes a crash had left of a write that was never acknowledged; they are gone.
    pub cut_off: u64,
    /// The revision that the store is at.
    pub revision: Revision,
    /// How many keys it holds.
    pub keys: usize,
    /// How long it took.
    pub taken: Duration,
}

impl fmt::Display for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { changes, revision, keys, .. } = self;
        let megabytes = self.bytes as f64 / 1e6;
        let seconds = self.taken.as_secs_f64();
        write!(f, "{keys} keys at revision {revision}: replayed {changes} changes")?;
        if let Some(snapshot) = self.snapshot {
            write!(f, " after the snapshot at {snapshot}")?;
        }
        write!(f, " ({megabytes:.1} MB) in {seconds:.2} s")?;
        match self.cut_off {
            0 => Ok(()),
            bytes => write!(f, "; cut off {bytes} bytes of a write that a crash had torn"),
        }
    }
}

/// A store as it was found.
pub(super) struct Recovered {
    pub(super) index: Index,
    pub(super) log: Log,
    /// What the latest state takes in a snapshot.
    pub(super) live_bytes: u64,
    /// Keys that go a while after the write of this revision.
    pub(super) ttls: Vec<(Key, Revision, Duration)>,
    /// All but the time it took.
    pub(super) opened: Opened,
}

/// Refuses a directory that holds files, and none of a store. What else may be wrong with it is not
/// looked at: another process may be using it.
pub(super) fn refuse_foreign(files: &dyn Files) -> Result<(), OpenError> {
    match Survey::of(files) {
        Ok(Survey { segments, other: Some(found), .. }) if segments.is_empty() => {
            Err(OpenError::NotAStore { directory: files.path(""), found })
        }
        _ => Ok(()),
    }
}

/// Opens what is there, or begins a store where nothing is.
pub(super) fn recover(
    files: &Arc<dyn Files>,
    options: &Options,
    new_store: u64,
) -> Result<Recovered, OpenError> {
    refuse_foreign(&**files)?;
    let survey = Survey::of(&**files)?;
    let mut loading = Loading::begin(&**files, &survey, options.history_bytes)?;
    let replayed = replay::replay(&**files, &survey, |batch| loading.take(batch))?;
    let index = loading.finish();
    let failed = |error| io_error("repair", files.path(""), error);
    // Only now that everything is known to be whole is anything changed.
    let (file, last, segments) = match &replayed {
        Some(replayed) => go_on(&**files, replayed, loading.store)?,
        None => begin(&**files, new_store)?,
    };
    // In this order: the name of the snapshot that replaces them may not be durable yet.
    files.sync().map_err(failed)?;
    ledger::remove(&**files, survey.leftovers).map_err(failed)?;
    let stats = index.stats();
    let live_bytes = live_bytes(&index);
    let ttls = loading.state.take_ttls().into_iter();
    let opened = Opened {
        snapshot: survey.snapshot,
        changes: replayed.as_ref().map_or(0, |replayed| replayed.changes),
        bytes: loading.bytes + replayed.as_ref().map_or(0, |replayed| replayed.bytes),
        cut_off: last.size - last.end,
        revision: stats.revision,
        keys: stats.keys,
        taken: Duration::ZERO,
    };
    let position = last.end;
    let revision = stats.revision;
    let oldest = stats.oldest;
    let end = End { place: last.place, position, revision, oldest };
    let ledger = Ledger::new(segments, survey.snapshot);
    Ok(Recovered {
        log: Log::new(Arc::clone(files), file, end, ledger, options.segment_bytes),
        index,
        live_bytes,
        ttls: ttls.map(|(key, (revision, ttl))| (key, revision, ttl)).collect(),
        opened,
    })
}

type LastSegment = (Box<dyn File>, Walked, Vec<Segment>);

/// Cuts off a torn end, and makes the rest durable. A sync alone would not do for the last frame:
/// if the sync before it failed, the system has given it up, and only still shows it.
fn go_on(
    files: &dyn Files,
    replayed: &Replayed,
    snapshot_of: Option<u64>,
) -> Result<LastSegment, OpenError> {
    let last = replayed.last;
    let path = files.path(&last.place.name());
    if snapshot_of.is_some_and(|store| store != last.place.store) {
        let reason = "the snapshot beside it belongs to another store".to_owned();
        return Err(OpenError::Corrupt { file: path, offset: 0, reason });
    }
    let repair = || {
        let mut file = files.open_to_write(&last.place.name())?;
        if last.size > last.end {
            file.cut(last.end)?;
        }
        let mut frame = vec![0; (last.end - last.last) as usize];
        file.read_at(last.last, &mut frame)?;
        match file.write_at(last.last, &frame) {
            // Some file systems need room for that. A full disk can still be read.
            Err(error) if log::is_full(&error) => {}
            written => written?,
        }
        file.sync()?;
        Ok(file)
    };
    let file = repair().map_err(|error| io_error("repair", path, error))?;
    Ok((file, last, replayed.segments.clone()))
}

/// Begins a new store.
fn begin(files: &dyn Files, store: u64) -> Result<LastSegment, OpenError> {
    let created = log::create_first(files, store, EMPTY);
    let place = Place { kind: Kind::Log, store, revision: Revision(EMPTY.0 + 1) };
    let path = files.path(&place.name());
    let (file, place) = created.map_err(|error| io_error("create", path, error))?;
    let end = format::HEADER;
    let walked = Walked { place, last: end, end, size: end, revision: EMPTY, oldest: None };
    Ok((file, walked, vec![Segment { first: place.revision, bytes: end }]))
}

/// An index that is being filled. Up to the oldest revision kept only the last state of each key
/// matters, after it every change does.
struct Loading {
    state: State,
    index: Index,
    /// The state up to here goes into the index at once.
    oldest: Revision,
    filled: bool,
    /// The store that the snapshot is of.
    store: Option<u64>,
    bytes: u64,
}

impl Loading {
    fn begin(files: &dyn Files, survey: &Survey, history_bytes: u64) -> Result<Self, OpenError> {
        let oldest = replay::oldest(files, survey)?;
        let (state, snapshot) = State::load(files, survey)?;
        let index = Index::new(history_bytes);
        let (store, bytes) = snapshot.map(|(place, bytes)| (place.store, bytes)).unzip();
        // A store that was never compacted has its history from the beginning.
        let filled = oldest < EMPTY;
        Ok(Self { state, index, oldest, filled, store, bytes: bytes.unwrap_or(0) })
    }

    fn take(&mut self, batch: Vec<Logged>) {
        let mut batch = batch.into_iter().peekable();
        while let Some(logged) = batch.next_if(|logged| logged.change.revision <= self.oldest) {
            self.state.apply(logged);
        }
        if batch.peek().is_none() {
            return;
        }
        self.fill();
        let Self { state, index, .. } = self;
        index.apply(batch.map(|Logged { change, ttl }| {
            state.note_ttl(&change.key, change.revision, ttl);
            change
        }));
    }

    fn fill(&mut self) {
        if !std::mem::replace(&mut self.filled, true) {
            self.index.reset(self.state.take_entries(), self.oldest);
        }
    }

    fn finish(&mut self) -> Index {
        self.fill();
        std::mem::replace(&mut self.index, Index::new(0))
    }
}

/// What a snapshot of the latest state would take.
fn live_bytes(index: &Index) -> u64 {
    let mut bytes = 0;
    let pages: Result<(), StoreError> = snapshot::each_page(index, index.revision(), |entries| {
        bytes += entries.iter().map(|entry| commit::size(entry) as u64).sum::<u64>();
        Ok(())
    });
    // Nobody compacts an index that nobody else has.
    pages.map_or(0, |()| bytes)
}
