//! Backups: a store in one file, saved beside a running server and restored elsewhere.
//!
//! A backup is a snapshot of the latest state, with checksums throughout. [`save`] reads a
//! directory without its lock: a log only grows, so any prefix of whole frames is a state that the
//! store was in. [`restore`] makes a new store of it, with an identity of its own.

use std::io;
use std::path::{Path, PathBuf};

use super::error::{OpenError, io_error};
use super::files::{self, Directory, Files};
use super::format::{Kind, Place};
use super::log;
use super::new_identity;
use super::replay::{self, State, Survey};
use super::snapshot::{self, Writer};
use crate::Revision;

/// How often to read a directory in vain although no file of it is being replaced.
const ATTEMPTS: usize = 5;
/// How often to read one whose files are.
const REPLACED_MAX: usize = 200;

/// How far a revision may be moved on: clients read it as a signed number, and writes follow.
const REVISION_MAX: u64 = i64::MAX as u64 / 2;

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The revision whose state it is.
    pub revision: Revision,
    /// How many keys it holds.
    pub keys: u64,
    /// How large the file is.
    pub bytes: u64,
}

/// Saves the latest durable state of a store's directory, which a server may be using, to a file.
/// A file of that name is replaced once the backup is whole and on disk.
pub fn save(directory: &Path, file: &Path) -> Result<Status, OpenError> {
    let source = Directory::new(directory.to_owned(), true);
    let (target, name) = beside(file)?;
    // There it would be lost together with the store, or take the name of a file of it.
    if is_same(directory, &target.path("")) {
        return Err(invalid("save to", file, "it lies in the store's own directory"));
    }
    let (place, mut state) = load_beside_a_server(&source)?;
    let ttls = state.take_ttls();
    let entries = state.take_entries();
    let write = || {
        let mut writer = Writer::create_as(&target, place, format!("{name}.tmp"))?;
        for entry in &entries {
            let ttl = ttls.get(&entry.key).filter(|(revision, _)| *revision == entry.modified);
            writer.entry(entry, ttl.map(|(_, ttl)| *ttl))?;
        }
        writer.finish(&name)
    };
    let bytes = write().map_err(|error| {
        // Half a backup is of no use to anyone.
        let _ = target.remove(&format!("{name}.tmp"));
        io_error("write", file.to_owned(), error)
    })?;
    Ok(Status { revision: place.revision, keys: entries.len() as u64, bytes })
}

/// Makes a store of a backup, in an empty or new directory. Its revision is the backup's plus
/// `bump_revision`, and everything before is compacted: clients of the cluster that was saved
/// list again instead of seeing time run backwards.
pub fn restore(file: &Path, directory: &Path, bump_revision: u64) -> Result<Status, OpenError> {
    let saved = status(file)?;
    let revision = saved.revision.0.checked_add(bump_revision).filter(|sum| *sum <= REVISION_MAX);
    let revision = revision.map(Revision);
    let revision =
        revision.ok_or_else(|| invalid("restore", file, "its revision becomes too large"))?;
    let failed = |action| move |error| io_error(action, directory.to_owned(), error);
    files::create_directory(directory, true).map_err(failed("create"))?;
    let target = Directory::new(directory.to_owned(), true);
    let names = target.list().map_err(failed("list"))?;
    if names.iter().any(|name| name != replay::LOST_AND_FOUND) {
        return Err(OpenError::NotEmpty { directory: directory.to_owned() });
    }
    let place = Place { kind: Kind::Snapshot, store: new_identity(), revision };
    let bytes = fill(&target, place, file).inspect_err(|_| {
        // It was empty before, and should be for the next who tries.
        let names = target.list().unwrap_or_default();
        names.iter().for_each(|name| drop(target.remove(name)));
    })?;
    Ok(Status { revision, keys: saved.keys, bytes })
}

/// Makes a store of a backup in an empty directory; says how large its snapshot is.
pub(super) fn fill(target: &dyn Files, place: Place, file: &Path) -> Result<u64, OpenError> {
    let failed = |error| io_error("write to", target.path(""), error);
    let (source, name) = beside(file)?;
    // The log comes first: without the snapshot it is refused, so half a store never begins
    // as an empty one.
    log::create_first(target, place.store, place.revision).map_err(failed)?;
    let mut writer = Writer::create(target, place).map_err(failed)?;
    snapshot::read(&source, &name, |record| writer.record(record).map_err(failed))?;
    writer.finish(&place.name()).map_err(failed)
}

/// Reads a backup to its end, verifies it, and says what it holds.
pub fn status(file: &Path) -> Result<Status, OpenError> {
    let (source, name) = beside(file)?;
    let mut keys = 0;
    let (place, bytes) = snapshot::read(&source, &name, |_| {
        keys += 1;
        Ok(())
    })?;
    Ok(Status { revision: place.revision, keys, bytes })
}

/// The latest state of a directory whose files a server may replace while they are read. It does
/// so only once there is another snapshot: what cannot be read without that is damaged.
fn load_beside_a_server(source: &Directory) -> Result<(Place, State), OpenError> {
    let mut attempts = 0;
    let mut replaced = 0;
    let mut snapshot = None;
    loop {
        let failed = match load(source) {
            Err(failed @ (OpenError::Io { .. } | OpenError::Corrupt { .. })) => failed,
            loaded => return loaded,
        };
        attempts += 1;
        let latest = Survey::of(source).ok().and_then(|survey| survey.snapshot);
        if latest != snapshot && replaced < REPLACED_MAX {
            (attempts, replaced, snapshot) = (0, replaced + 1, latest);
        } else if attempts >= ATTEMPTS {
            return Err(failed);
        }
    }
}

/// The latest state of a directory.
fn load(source: &Directory) -> Result<(Place, State), OpenError> {
    let survey = Survey::of(source)?;
    let (mut state, _) = State::load(source, &survey)?;
    let replayed = replay::replay(source, &survey, |batch| {
        batch.into_iter().for_each(|logged| state.apply(logged));
    })?;
    let Some(replayed) = replayed else {
        let found = survey.other.unwrap_or("nothing".to_owned());
        return Err(OpenError::NotAStore { directory: source.path(""), found });
    };
    let revision = replayed.last.revision.max(survey.start());
    let place = Place { kind: Kind::Snapshot, store: replayed.last.place.store, revision };
    Ok((place, state))
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn invalid(action: &'static str, file: &Path, reason: &str) -> OpenError {
    let error = io::Error::new(io::ErrorKind::InvalidInput, reason);
    io_error(action, file.to_owned(), error)
}

/// The directory of a file, and its name there.
fn beside(file: &Path) -> Result<(Directory, String), OpenError> {
    let Some(name) = file.file_name() else {
        let error = io::ErrorKind::IsADirectory.into();
        return Err(io_error("use", file.to_owned(), error));
    };
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.map_or(PathBuf::from("."), Path::to_owned);
    Ok((Directory::new(parent, true), name.to_string_lossy().into_owned()))
}
