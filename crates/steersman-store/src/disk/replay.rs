//! Reads a directory from its snapshot to the end of its log, and verifies all of it.
//!
//! [`Survey`] says from their names which files there must be. One thread reads segments, verifies
//! and decodes them, another takes the changes in large batches. What is damaged is an error, with
//! one exception: the end of the last segment may be what a crash left of a write.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use bytes::Bytes;

use super::error::{OpenError, io_error};
use super::files::Files;
use super::format::{self, Kind, Name, Place};
use super::frame::{self, Header, Next};
use super::ledger::Segment;
use super::lock;
use super::reader::Reader;
use super::record::Record;
use super::snapshot;
use crate::index::Change;
use crate::{Entry, Key, Revision};

/// The revision of a store without any write.
pub(super) const EMPTY: Revision = Revision(1);
/// What a file system of its own has in its first directory.
pub(super) const LOST_AND_FOUND: &str = "lost+found";
/// Changes that one batch has at most.
const BATCH: usize = 4096;

/// What a directory holds, by name.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) snapshot: Option<Revision>,
    /// The first revisions of the segments from the snapshot on. Without any, there is no store.
    pub(super) segments: Vec<Revision>,
    /// What a crash left behind: unfinished files, and those that the snapshot made superfluous.
    pub(super) leftovers: Vec<String>,
    /// A file that is not the store's.
    pub(super) other: Option<String>,
}

impl Survey {
    pub(super) fn of(files: &dyn Files) -> Result<Self, OpenError> {
        let names = files.list().map_err(|error| io_error("list", files.path(""), error))?;
        let mut survey = Self::default();
        let mut snapshots = Vec::new();
        for name in names {
            match Name::parse(&name) {
                Name::Finished(Kind::Log, revision) => survey.segments.push(revision),
                Name::Finished(Kind::Snapshot, revision) => snapshots.push(revision),
                Name::Temporary => survey.leftovers.push(name),
                Name::Other if name == lock::NAME || name == LOST_AND_FOUND => {}
                Name::Other => survey.other = Some(name),
            }
        }
        survey.segments.sort_unstable();
        snapshots.sort_unstable();
        survey.snapshot = snapshots.pop();
        survey.leftovers.extend(snapshots.into_iter().map(|at| Kind::Snapshot.name(at)));
        survey.drop_superseded(files)?;
        Ok(survey)
    }

    /// The revision whose state the log goes on from.
    pub(super) fn start(&self) -> Revision {
        self.snapshot.unwrap_or(EMPTY)
    }

    /// Segments that end before the snapshot are not read any more.
    fn drop_superseded(&mut self, files: &dyn Files) -> Result<(), OpenError> {
        let next = Revision(self.start().0 + 1);
        let missing = |name: String, found: &str| {
            let reason = format!("the changes from revision {next} on are missing, {found}");
            Err(OpenError::Corrupt { file: files.path(&name), offset: 0, reason })
        };
        match (self.segments.iter().rposition(|first| *first <= next), self.segments.first()) {
            (Some(needed), _) => {
                let superseded = self.segments.drain(..needed);
                self.leftovers.extend(superseded.map(|first| Kind::Log.name(first)));
                Ok(())
            }
            (None, Some(first)) => missing(Kind::Log.name(*first), "this is the first file"),
            (None, None) => match self.snapshot {
                Some(at) => missing(Kind::Snapshot.name(at), "there is no log"),
                None => Ok(()),
            },
        }
    }
}

/// A change as the log has it.
pub(super) struct Logged {
    pub(super) change: Change,
    pub(super) ttl: Option<Duration>,
}

/// What was found in one segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walked {
    pub(super) place: Place,
    /// Where its last whole frame begins; at `end` if it has none.
    pub(super) last: u64,
    /// Where its last whole frame ends.
    pub(super) end: u64,
    /// How large the file is; more than `end` if a crash tore the last write.
    pub(super) size: u64,
    /// The revision of the last change.
    pub(super) revision: Revision,
    /// The oldest revision kept, as the last frame says.
    pub(super) oldest: Option<Revision>,
}

/// Reads one segment and verifies it.
fn walk(
    files: &dyn Files,
    first: Revision,
    is_last: bool,
    mut take: impl FnMut(&Header, &[u8]) -> Result<(), &'static str>,
) -> Result<Walked, OpenError> {
    let name = Kind::Log.name(first);
    let path = files.path(&name);
    let failed = |error| io_error("read", path.clone(), error);
    let corrupt = |offset, reason: &str| {
        Err(OpenError::Corrupt { file: path.clone(), offset, reason: reason.to_owned() })
    };
    let mut reader = Reader::open(files, &name).map_err(failed)?;
    let place = Place::read(Kind::Log, &name, files, &mut reader)?;
    if place.revision != first {
        return corrupt(0, "it has the name of another file");
    }
    let mut last = format::HEADER;
    let mut end = format::HEADER;
    let mut revision = Revision(first.0 - 1);
    let mut oldest = None;
    loop {
        match frame::next(&mut reader, &place, end).map_err(failed)? {
            Next::Frame(header, payload) => {
                if header.first != revision.0 + 1 {
                    return corrupt(end, "its revisions do not follow each other");
                }
                if let Err(reason) = take(&header, payload) {
                    return corrupt(end, reason);
                }
                last = end;
                end += frame::HEADER as u64 + u64::from(header.length);
                revision.0 += u64::from(header.count);
                oldest = Some(Revision(header.oldest));
            }
            Next::Bad(reason) if !is_last => return corrupt(end, reason),
            Next::Bad(reason) => {
                let following = frame::following(&mut reader, &place, end).map_err(failed)?;
                if let Some(following) = following {
                    let reason = format!("{reason}, and another follows at byte {following}");
                    return corrupt(end, &reason);
                }
                return Ok(Walked { place, last, end, size: reader.size(), revision, oldest });
            }
            Next::End => return Ok(Walked { place, last, end, size: end, revision, oldest }),
        }
    }
}

/// The oldest revision that is kept, as the end of the log says.
pub(super) fn oldest(files: &dyn Files, survey: &Survey) -> Result<Revision, OpenError> {
    let snapshot = survey.snapshot.unwrap_or_default();
    for (back, first) in survey.segments.iter().rev().enumerate() {
        if let Some(oldest) = walk(files, *first, back == 0, |_, _| Ok(()))?.oldest {
            return Ok(oldest.max(snapshot));
        }
    }
    Ok(snapshot)
}

/// What was read.
#[derive(Debug)]
pub(super) struct Replayed {
    pub(super) segments: Vec<Segment>,
    pub(super) last: Walked,
    /// Changes after the snapshot.
    pub(super) changes: u64,
    pub(super) bytes: u64,
}

/// Reads the segments and gives away every change after the snapshot, in order.
pub(super) fn replay(
    files: &dyn Files,
    survey: &Survey,
    take: impl FnMut(Vec<Logged>),
) -> Result<Option<Replayed>, OpenError> {
    std::thread::scope(|scope| {
        let (batches, received) = sync_channel(4);
        let reading = scope.spawn(move || read_segments(files, survey, &batches));
        received.iter().for_each(take);
        reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn read_segments(
    files: &dyn Files,
    survey: &Survey,
    batches: &SyncSender<Vec<Logged>>,
) -> Result<Option<Replayed>, OpenError> {
    let mut before: Option<Walked> = None;
    let mut segments = Vec::new();
    let mut changes = 0;
    let mut bytes = 0;
    let mut batch = Vec::with_capacity(BATCH);
    for (position, first) in survey.segments.iter().enumerate() {
        let is_last = position + 1 == survey.segments.len();
        let walked = walk(files, *first, is_last, |header, payload| {
            changes += decode(header, payload, survey.start(), &mut batch)?;
            if batch.len() >= BATCH {
                // Nobody takes it any more only if the other side panics, and then it is told.
                let _ = batches.send(std::mem::replace(&mut batch, Vec::with_capacity(BATCH)));
            }
            Ok(())
        })?;
        if let Some(before) = before {
            check_follows(files, &before, &walked)?;
        }
        bytes += walked.end;
        segments.push(Segment { first: *first, bytes: walked.end });
        before = Some(walked);
    }
    let _ = batches.send(batch);
    Ok(before.map(|last| Replayed { segments, last, changes, bytes }))
}

/// Whether two segments belong together, and nothing between them is missing.
fn check_follows(files: &dyn Files, before: &Walked, after: &Walked) -> Result<(), OpenError> {
    let reason = if before.place.store != after.place.store {
        "it belongs to another store".to_owned()
    } else if before.revision.0 + 1 != after.place.revision.0 {
        format!("the log before it ends with revision {}", before.revision)
    } else {
        return Ok(());
    };
    Err(OpenError::Corrupt { file: files.path(&after.place.name()), offset: 0, reason })
}

/// Takes a frame apart, and adds the changes after a revision to a batch.
fn decode(
    header: &Header,
    mut payload: &[u8],
    after: Revision,
    batch: &mut Vec<Logged>,
) -> Result<u64, &'static str> {
    let mut taken = 0;
    for revision in header.first..header.first + u64::from(header.count) {
        let record = Record::decode(&mut payload).ok_or("a record cannot be read")?;
        if revision > after.0 {
            let revision = Revision(revision);
            let key = Key::from(record.key);
            let change = Change { revision, key, value: record.value.map(Bytes::copy_from_slice) };
            batch.push(Logged { change, ttl: record.ttl });
            taken += 1;
        }
    }
    if payload.is_empty() { Ok(taken) } else { Err("a frame has more than its records") }
}

/// The state at a revision, built from a snapshot and changes after it.
#[derive(Default)]
pub(super) struct State {
    /// What the snapshot has, ordered by key, until something changes.
    snapshot: Vec<Entry>,
    entries: HashMap<Key, Entry>,
    ttls: HashMap<Key, (Revision, Duration)>,
}

impl State {
    /// Begins with the snapshot, if there is one. Says which store it is of, and its size.
    pub(super) fn load(
        files: &dyn Files,
        survey: &Survey,
    ) -> Result<(Self, Option<(Place, u64)>), OpenError> {
        let mut state = Self::default();
        let Some(at) = survey.snapshot else { return Ok((state, None)) };
        let name = Kind::Snapshot.name(at);
        let read = snapshot::read(files, &name, |record| {
            state.insert(record);
            Ok(())
        })?;
        if read.0.revision == at {
            return Ok((state, Some(read)));
        }
        let reason = "it has the name of another file".to_owned();
        Err(OpenError::Corrupt { file: files.path(&name), offset: 0, reason })
    }

    fn insert(&mut self, record: &Record<'_>) {
        let (created, modified) = record.origin.unwrap_or_default();
        let key = Key::from(record.key);
        self.note_ttl(&key, modified, record.ttl);
        let value = Bytes::copy_from_slice(record.value.unwrap_or_default());
        self.snapshot.push(Entry { key, value, created, modified });
    }

    /// The state after one more change.
    pub(super) fn apply(&mut self, logged: Logged) {
        let Logged { change: Change { revision, key, value }, ttl } = logged;
        self.note_ttl(&key, revision, ttl);
        let snapshot = self.snapshot.drain(..);
        self.entries.extend(snapshot.map(|entry| (Key::clone(&entry.key), entry)));
        match (self.entries.entry(key), value) {
            (Slot::Occupied(mut slot), Some(value)) => {
                let entry = slot.get_mut();
                (entry.value, entry.modified) = (value, revision);
            }
            (Slot::Occupied(slot), None) => drop(slot.remove()),
            (Slot::Vacant(slot), Some(value)) => {
                let key = Key::clone(slot.key());
                slot.insert(Entry { key, value, created: revision, modified: revision });
            }
            (Slot::Vacant(_), None) => {}
        }
    }

    /// Notes how long a key stays, if not for ever. The entry itself may be elsewhere.
    pub(super) fn note_ttl(&mut self, key: &Key, revision: Revision, ttl: Option<Duration>) {
        match ttl {
            Some(ttl) => drop(self.ttls.insert(Key::clone(key), (revision, ttl))),
            None if self.ttls.is_empty() => {}
            None => drop(self.ttls.remove(key)),
        }
    }

    /// The keys that go after a while.
    pub(super) fn take_ttls(&mut self) -> HashMap<Key, (Revision, Duration)> {
        std::mem::take(&mut self.ttls)
    }

    /// Takes the entries away, ordered by key.
    pub(super) fn take_entries(&mut self) -> Vec<Entry> {
        if self.entries.is_empty() {
            return std::mem::take(&mut self.snapshot);
        }
        let mut entries: Vec<Entry> = std::mem::take(&mut self.entries).into_values().collect();
        entries.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        entries
    }
}
