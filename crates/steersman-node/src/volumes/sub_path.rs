//! Parts of volumes, found without leaving the volume.
//!
//! Whoever writes into a volume can put a link there that leads out of it, also while somebody else
//! looks at it. So a part is opened by the kernel's own rules for staying below a directory, and what
//! was opened is bound to a place in the Pod's directory that nobody else can change.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};

use super::mounter::{Mounter, NewMount};
use super::mounts::SubPath;
use super::system::{answered, bytes};
use crate::environment::VolumeFile;

/// Why a part of a volume cannot be mounted. Users see only this: more could tell them of the node.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubPathError {
    #[error(
        "failed to create subPath directory for volumeMount {volume:?} of container {container:?}"
    )]
    Create { volume: String, container: String },
    #[error("failed to prepare subPath for volumeMount {volume:?} of container {container:?}")]
    Prepare { volume: String, container: String },
}

/// Whose part of a volume is mounted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MountedPart<'a> {
    pub(crate) volume: &'a str,
    pub(crate) container: &'a str,
}

/// A file of variables may have this many bytes.
const FILE_MAX: usize = 64 * 1024;

/// Finds a part of a volume, makes it a directory if it is missing, and binds it to its place in the
/// Pod's directory. Returns that place, which is what the container mounts.
pub(crate) fn resolve(
    part: &SubPath,
    MountedPart { volume, container }: MountedPart<'_>,
    pod_directory: &Path,
    mounter: &impl Mounter,
) -> Result<PathBuf, SubPathError> {
    let opened = open_or_make(&part.volume, &part.path).map_err(|error| {
        tracing::warn!(volume, path = ?part.path, %error, "cannot open a part of a volume");
        let (owned, container) = (volume.to_owned(), container.to_owned());
        // What is there, if only by a link that leads out, was not to be made.
        match fs::exists(part.volume.join(&part.path)) {
            Ok(false) => SubPathError::Create { volume: owned, container },
            _ => SubPathError::Prepare { volume: owned, container },
        }
    })?;
    let target = pod_directory.join(&part.target);
    bind(&opened, &target, mounter).map_err(|error| {
        tracing::warn!(volume, path = ?part.path, %error, "cannot bind a part of a volume");
        SubPathError::Prepare { volume: volume.to_owned(), container: container.to_owned() }
    })?;
    Ok(target)
}

/// Reads a small file of a volume, for variables that come from it.
pub(crate) fn read_below(volume: &Path, path: &str) -> VolumeFile {
    let read = || {
        let root = directory(volume)?;
        let opened = open(&root, Path::new(path), OFlags::RDONLY)?;
        let mut content = vec![0; FILE_MAX];
        let mut length = 0;
        while length < FILE_MAX {
            match answered(rustix::io::read(&opened, &mut content[length..]))? {
                0 => break,
                read => length += read,
            }
        }
        content.truncate(length);
        String::from_utf8(content).map_err(io::Error::other)
    };
    VolumeFile { path: volume.join(path), content: read() }
}

fn directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    answered(rustix::fs::openat(CWD, bytes(path), flags, Mode::empty()))
}

/// Opens what is below a directory; links that lead out of it are errors.
fn open(root: &OwnedFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let below = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::CLOEXEC;
    answered(rustix::fs::openat2(root, bytes(path), flags, Mode::empty(), below))
}

/// Opens a path in a volume, and makes the directories of it that are missing, with the volume's
/// own mode and owners, so that the container can use them as it can use the volume.
fn open_or_make(volume: &Path, path: &Path) -> io::Result<OwnedFd> {
    let root = directory(volume)?;
    match open(&root, path, OFlags::PATH) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    let stat = answered(rustix::fs::fstat(&root))?;
    let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
    let mut so_far = PathBuf::new();
    let mut parent = answered(rustix::io::fcntl_dupfd_cloexec(&root, 0))?;
    for part in path.components().filter(|part| *part != Component::CurDir) {
        so_far.push(part);
        parent = match open(&root, &so_far, OFlags::PATH) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let name = bytes(Path::new(part.as_os_str()));
                answered(rustix::fs::mkdirat(&parent, name, mode))?;
                // Never followed: if it is a link by now, somebody has swapped it.
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let made = answered(rustix::fs::openat(&parent, name, flags, Mode::empty()))?;
                // The mask of this process does not count.
                answered(rustix::fs::fchmod(&made, mode))?;
                made
            }
            opened => opened?,
        };
    }
    open(&root, path, OFlags::PATH)
}

/// Binds what was opened to a place of our own, unless it is there already.
fn bind(opened: &OwnedFd, target: &Path, mounter: &impl Mounter) -> io::Result<()> {
    let stat = answered(rustix::fs::fstat(opened))?;
    if mounter.is_mounted(target)? {
        let there = fs::symlink_metadata(target)?;
        if (there.dev(), there.ino()) == (stat.st_dev, stat.st_ino) {
            return Ok(());
        }
        mounter.unmount(target)?;
    }
    if let Some(parent) = target.parent() {
        DirBuilder::new().recursive(true).mode(0o750).create(parent)?;
    }
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        match fs::create_dir(target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
    } else {
        OpenOptions::new().create(true).append(true).open(target)?;
    }
    // By its number here nobody can lead us elsewhere.
    let source = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    mounter.mount(&NewMount::Bind { source, target: target.to_owned() })
}
