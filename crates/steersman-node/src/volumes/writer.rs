//! Puts files into a directory so that whoever reads them sees either all old or all new ones.
//!
//! The files are in a directory with a time in its name, to which the link `..data` leads; what
//! people see are links through it. New files are written into a new directory, and the link is
//! replaced by renaming another over it, which is atomic:
//!
//! ```text
//! name  -> ..data/name
//! ..data -> ..2026_11_17_12_00_00.000000001
//! ..2026_11_17_12_00_00.000000001/name
//! ```
//!
//! A process that ends in the middle leaves nothing that the next writer does not remove.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, lchown, symlink};
use std::path::{Component, Path, PathBuf};
use std::{fs, fs::Permissions};

use jiff::Timestamp;

use super::payload::{File, Payload};

const DATA: &str = "..data";
const NEW_DATA: &str = "..data_tmp";
const PATH_MAX: usize = 4096;
const NAME_MAX: usize = 255;

/// Why files cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("invalid path: must not be empty: {0:?}")]
    Empty(String),
    #[error("invalid path: must be relative path: {0}")]
    Absolute(String),
    #[error("invalid path: must be less than or equal to {PATH_MAX} characters")]
    Long,
    #[error("invalid path: must not contain '..': {0}")]
    StepsBack(String),
    #[error("invalid path: filenames must be less than or equal to {NAME_MAX} characters")]
    LongName,
    #[error("invalid path: must not start with '..': {0}")]
    Hidden(String),
    #[error("cannot write {}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Writes files into a directory that exists. `prepare` is called when new files are there and not
/// yet to be seen. Returns whether anything had to be written.
pub(super) fn write(
    directory: &Path,
    payload: &Payload,
    now: Timestamp,
    prepare: impl FnOnce() -> io::Result<()>,
) -> Result<bool, WriteError> {
    let files = validated(payload)?;
    Writer { directory }.write(&files, now, prepare)
}

/// Files by clean paths.
type Files<'a> = Vec<(PathBuf, &'a File)>;

fn validated(payload: &Payload) -> Result<Files<'_>, WriteError> {
    let mut files = Files::new();
    for (path, file) in payload {
        validate(path)?;
        let clean = Path::new(path).components().filter(|part| *part != Component::CurDir);
        files.push((clean.collect(), file));
    }
    Ok(files)
}

fn validate(path: &str) -> Result<(), WriteError> {
    if path.is_empty() {
        return Err(WriteError::Empty(path.to_owned()));
    }
    if path.starts_with('/') {
        return Err(WriteError::Absolute(path.to_owned()));
    }
    if path.len() > PATH_MAX {
        return Err(WriteError::Long);
    }
    for part in path.split('/') {
        if part == ".." {
            return Err(WriteError::StepsBack(path.to_owned()));
        }
        if part.len() > NAME_MAX {
            return Err(WriteError::LongName);
        }
    }
    if path.starts_with("..") {
        return Err(WriteError::Hidden(path.to_owned()));
    }
    Ok(())
}

struct Writer<'a> {
    directory: &'a Path,
}

impl Writer<'_> {
    fn write(
        &self,
        files: &Files<'_>,
        now: Timestamp,
        prepare: impl FnOnce() -> io::Result<()>,
    ) -> Result<bool, WriteError> {
        let current = self.current()?;
        self.remove_leftovers(current.as_deref())?;
        let written = match &current {
            Some(name) => listed(&self.directory.join(name))?,
            None => BTreeSet::new(),
        };
        let stale: Vec<&PathBuf> = {
            let wanted = with_parents(files);
            written.iter().filter(|path| !wanted.contains(*path)).collect()
        };
        let fresh = current.is_none()
            || !stale.is_empty()
            || self.differs(current.as_deref().unwrap_or(Path::new(DATA)), files);
        if fresh {
            self.publish(files, now, prepare)?;
        }
        self.link(files)?;
        for path in stale.iter().filter(|path| path.components().count() == 1) {
            let visible = self.directory.join(path);
            at(&visible, allow_missing(fs::remove_file(&visible)))?;
        }
        if let Some(old) = current.filter(|_| fresh) {
            let old = self.directory.join(old);
            at(&old, fs::remove_dir_all(&old))?;
        }
        Ok(fresh)
    }

    /// The directory that is seen now.
    fn current(&self) -> Result<Option<PathBuf>, WriteError> {
        let link = self.directory.join(DATA);
        match fs::read_link(&link) {
            Ok(name) => Ok(Some(name).filter(|name| self.directory.join(name).is_dir())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(WriteError::Io { path: link, source }),
        }
    }

    /// Removes what a writer left that came to its end too early.
    fn remove_leftovers(&self, current: Option<&Path>) -> Result<(), WriteError> {
        for entry in at(self.directory, fs::read_dir(self.directory))? {
            let entry = at(self.directory, entry)?;
            let (name, path) = (entry.file_name(), entry.path());
            let hidden = name.to_string_lossy().starts_with("..");
            if !hidden || name == DATA || Some(Path::new(&name)) == current {
                continue;
            }
            let directory = at(&path, entry.file_type())?.is_dir();
            at(&path, if directory { fs::remove_dir_all(&path) } else { fs::remove_file(&path) })?;
        }
        Ok(())
    }

    /// Whether a file is missing or has other content.
    fn differs(&self, current: &Path, files: &Files<'_>) -> bool {
        let current = self.directory.join(current);
        files.iter().any(|(path, file)| {
            fs::read(current.join(path)).ok().is_none_or(|content| content != file.data)
        })
    }

    /// Writes all files anew and lets the link lead to them.
    fn publish(
        &self,
        files: &Files<'_>,
        now: Timestamp,
        prepare: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), WriteError> {
        let name = self.make_directory(now)?;
        let inside = self.directory.join(&name);
        for (path, file) in files {
            let path = inside.join(path);
            at(&path, write_file(&path, file))?;
        }
        at(&inside, prepare())?;
        let new = self.directory.join(NEW_DATA);
        at(&new, symlink(&name, &new))?;
        let data = self.directory.join(DATA);
        at(&data, fs::rename(&new, &data))
    }

    /// A new directory, called by the time. If there is one already, the clock has jumped back: the
    /// next name is taken.
    fn make_directory(&self, now: Timestamp) -> Result<PathBuf, WriteError> {
        let time = now.strftime("..%Y_%m_%d_%H_%M_%S").to_string();
        let mut number = now.subsec_nanosecond();
        loop {
            let name = format!("{time}.{number:09}");
            let path = self.directory.join(&name);
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                made => {
                    at(&path, made)?;
                    // Whatever the mask of this process is, others can look inside.
                    at(&path, fs::set_permissions(&path, Permissions::from_mode(0o755)))?;
                    return Ok(PathBuf::from(name));
                }
            }
        }
    }

    /// Makes the links that people see.
    fn link(&self, files: &Files<'_>) -> Result<(), WriteError> {
        for (path, file) in files {
            let Some(first) = path.components().next() else { continue };
            let visible = self.directory.join(first);
            if fs::read_link(&visible).is_ok() {
                continue;
            }
            at(&visible, symlink(Path::new(DATA).join(first), &visible))?;
            if let Some(owner) = file.owner {
                at(&visible, lchown(&visible, Some(owner), None))?;
            }
        }
        Ok(())
    }
}

fn write_file(path: &Path, file: &File) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o777).create(parent)?;
    }
    fs::write(path, &file.data)?;
    fs::set_permissions(path, Permissions::from_mode(file.mode))?;
    match file.owner {
        Some(owner) => lchown(path, Some(owner), None),
        None => Ok(()),
    }
}

/// Everything below a directory, relative to it.
fn listed(directory: &Path) -> Result<BTreeSet<PathBuf>, WriteError> {
    let mut found = BTreeSet::new();
    let mut ahead = vec![PathBuf::new()];
    while let Some(inside) = ahead.pop() {
        let path = directory.join(&inside);
        for entry in at(&path, fs::read_dir(&path))? {
            let entry = at(&path, entry)?;
            let name = inside.join(entry.file_name());
            if at(&path, entry.file_type())?.is_dir() {
                ahead.push(name.clone());
            }
            found.insert(name);
        }
    }
    Ok(found)
}

/// The files, and the directories that they are in.
fn with_parents(files: &Files<'_>) -> BTreeSet<PathBuf> {
    let all = files.iter().flat_map(|(path, _)| path.ancestors());
    all.filter(|path| *path != Path::new("")).map(Path::to_owned).collect()
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, WriteError> {
    result.map_err(|source| WriteError::Io { path: path.to_owned(), source })
}

pub(super) fn allow_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
