//! Backups: a store in one file, saved beside a running server and restored elsewhere.
//!
//! A backup is a snapshot of the latest state, with checksums throughout. [`save`] reads a
//! directory without its lock: a log only grows, so any prefix of whole frames is a state that the
//! store was in. [`restore`] makes a new store of it, with an identity of its own.

use std::fs;
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
    let (place, mut state) = load_beside_a_server(&source)?;
    let ttls = state.take_ttls();
    let entries = state.take_entries();
    let (target, name) = beside(file)?;
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
    let failed = |action| move |error| io_error(action, directory.to_owned(), error);
    files::create_directory(directory, true).map_err(failed("create"))?;
    if fs::read_dir(directory).map_err(failed("list"))?.next().is_some() {
        return Err(OpenError::NotEmpty { directory: directory.to_owned() });
    }
    let (source, name) = beside(file)?;
    let target = Directory::new(directory.to_owned(), true);
    let revision = Revision(saved.revision.0.saturating_add(bump_revision));
    let place = Place { kind: Kind::Snapshot, store: new_identity(), revision };
    let mut writer = Writer::create(&target, place).map_err(failed("write to"))?;
    snapshot::read(&source, &name, |record| writer.record(record).map_err(failed("write to")))?;
    // The log comes first: without the snapshot, it is refused.
    log::create_first(&target, place.store, revision).map_err(failed("write to"))?;
    let bytes = writer.finish(&place.name()).map_err(failed("write to"))?;
    Ok(Status { revision, keys: saved.keys, bytes })
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
    let (mut attempts, mut replaced, mut snapshot) = (0, 0, None);
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

/// The directory of a file, and its name there.
fn beside(file: &Path) -> Result<(Directory, String), OpenError> {
    let Some(name) = file.file_name() else {
        let error = std::io::ErrorKind::IsADirectory.into();
        return Err(io_error("use", file.to_owned(), error));
    };
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.map_or(PathBuf::from("."), Path::to_owned);
    Ok((Directory::new(parent, true), name.to_string_lossy().into_owned()))
}
