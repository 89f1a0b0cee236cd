//! One process at a time: the lock on a store's directory.
//!
//! The system holds it and lets it go with the process, however that ends. The file stays, with
//! the number of the process that had it last, so that whoever comes second can say who was first.

use std::fs::{self, File, TryLockError};
use std::io::{Seek, Write};
use std::path::Path;

use super::error::{OpenError, io_error};

/// The file's name.
pub(super) const NAME: &str = "lock";

/// Holds the directory until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the directory, or says who has it.
    pub(super) fn take(directory: &Path) -> Result<Self, OpenError> {
        let path = directory.join(NAME);
        let failed = |error| io_error("lock", path.clone(), error);
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).ok();
                let pid = holder.and_then(|holder| holder.trim().parse().ok());
                return Err(OpenError::Locked { directory: directory.to_owned(), pid });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // Only for the message: a disk without room for it can still be read.
        let _ = file.set_len(0).and_then(|()| file.rewind());
        let _ = writeln!(file, "{}", std::process::id());
        Ok(Self { _file: file })
    }
}
