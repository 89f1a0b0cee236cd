//! Why a directory or a backup cannot be opened.

use std::io;
use std::path::PathBuf;

/// Why a store's directory, or a backup of one, cannot be opened. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the directory open, or this one has it open already.
    #[error(
        "{} is in use by {}; stop it first, or choose another directory",
        directory.display(),
        pid.map_or("another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Locked {
        /// The directory.
        directory: PathBuf,
        /// The process that has it, if it said so.
        pid: Option<u32>,
    },
    /// What was written is not there any more, or is not what was written.
    #[error(
        "{}: damaged at byte {offset}: {reason}; nothing was changed, restore a backup into \
         another directory (steersman snapshot restore)",
        file.display()
    )]
    Corrupt {
        /// The damaged file.
        file: PathBuf,
        /// Where in it the damage begins.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
    /// A later version of this program wrote the file.
    #[error("{}: has format {version}, this program knows up to {known}; use a newer one", file.display())]
    Newer {
        /// The file.
        file: PathBuf,
        /// Its format.
        version: u32,
        /// The latest format that this program reads.
        known: u32,
    },
    /// The directory holds something else.
    #[error("{} is not a store: it holds {found}; choose an empty or new directory", directory.display())]
    NotAStore {
        /// The directory.
        directory: PathBuf,
        /// A file in it.
        found: String,
    },
    /// A backup is restored into an empty or new directory only.
    #[error("{} is not empty; restore into an empty or new directory", directory.display())]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
    },
    /// The file system said no.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

pub(super) fn io_error(action: &'static str, path: PathBuf, source: io::Error) -> OpenError {
    OpenError::Io { action, path, source }
}
