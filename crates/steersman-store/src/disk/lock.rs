//! One process at a time: the lock on a store's directory.
//!
//! The system holds it and lets it go with the process, however that ends. The file stays, with
//! the number of the process that had it last, so that whoever comes second can say who was first.

use std::fs::{self, File, TryLockError};
use std::io::{Seek, Write};
use std::path::Path;

use super::error::{OpenError, io_error};
use super::files;

/// The file's name.
pub(super) const NAME: &str = "lock";

/// Holds the directory until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    /// The directory itself, for people remove files called "lock".
    #[cfg(unix)]
    directory_itself: File,
}

impl Lock {
    /// Takes the directory, or says who has it.
    pub(super) fn take(directory: &Path) -> Result<Self, OpenError> {
        let path = directory.join(NAME);
        let failed = |error| io_error("lock", path.clone(), error);
        let mut file = files::private().create(true).truncate(false).open(&path).map_err(failed)?;
        let lock = |file: &File| match file.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).ok();
                let pid = holder.and_then(|holder| holder.trim().parse().ok());
                Err(OpenError::Locked { directory: directory.to_owned(), pid })
            }
            Err(TryLockError::Error(error)) => Err(failed(error)),
        };
        lock(&file)?;
        #[cfg(unix)]
        let itself = File::open(directory).map_err(failed)?;
        #[cfg(unix)]
        lock(&itself)?;
        // Only for the message: a disk without room for it can still be read.
        let _ = file.set_len(0).and_then(|()| file.rewind());
        let _ = writeln!(file, "{}", std::process::id());
        Ok(Self {
            file,
            #[cfg(unix)]
            directory_itself: itself,
        })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a process that is just being started elsewhere has the file, too,
        // until it runs its own program.
        let _ = self.file.unlock();
        #[cfg(unix)]
        let _ = self.directory_itself.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adirectory_itself_is_free_although_a_starting_process_still_has_the_file() {
        let name = format!("steersman-store-lock-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let lock = Lock::take(&directory).unwrap();
        let inherited = lock.file.try_clone().unwrap();
        assert!(matches!(Lock::take(&directory), Err(OpenError::Locked { .. })));
        drop(lock);
        drop(Lock::take(&directory).unwrap());
        drop(inherited);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn removing_the_file_does_not_let_a_second_process_in() {
        let name = format!("steersman-store-lock-file-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let lock = Lock::take(&directory).unwrap();
        fs::remove_file(directory.join(NAME)).unwrap();
        assert!(matches!(Lock::take(&directory), Err(OpenError::Locked { .. })));
        drop(lock);
        drop(Lock::take(&directory).unwrap());
        fs::remove_dir_all(&directory).unwrap();
    }
}
