//! Paths of the node that a Pod gets as they are: what their type promises is checked.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Why a Pod cannot have a path.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostPathError {
    #[error("hostPath type check failed: {} is not a {expected}", .path.display())]
    Type { path: PathBuf, expected: &'static str },
    #[error("{0} is an invalid volume type")]
    Invalid(String),
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Checks that a path is of a type, or makes it where the type says so.
pub(super) fn check(path: &Path, kind: &str) -> Result<(), HostPathError> {
    let failed = |source| HostPathError::Io { path: path.to_owned(), source };
    match kind {
        "" => return Ok(()),
        "DirectoryOrCreate" if !path.exists() => {
            return DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(failed);
        }
        "FileOrCreate" if !path.exists() => {
            let mut file = OpenOptions::new();
            let made = file.create(true).append(true).mode(0o644).open(path);
            return made.map(drop).map_err(failed);
        }
        _ => {}
    }
    let found = path.metadata().ok().map(|metadata| metadata.file_type());
    let (fits, expected) = match kind {
        "Directory" | "DirectoryOrCreate" => (found.is_some_and(|it| it.is_dir()), "directory"),
        "File" | "FileOrCreate" => (found.is_some_and(|it| it.is_file()), "file"),
        "Socket" => (found.is_some_and(|it| it.is_socket()), "socket file"),
        "CharDevice" => (found.is_some_and(|it| it.is_char_device()), "character device"),
        "BlockDevice" => (found.is_some_and(|it| it.is_block_device()), "block device"),
        _ => return Err(HostPathError::Invalid(kind.to_owned())),
    };
    if fits { Ok(()) } else { Err(HostPathError::Type { path: path.to_owned(), expected }) }
}
