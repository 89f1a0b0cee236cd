//! Between the types of the standard library and those of system calls, which go without it.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::io::Errno;

/// A path as system calls take it.
pub(super) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// What a system call answered.
pub(super) fn answered<T>(result: Result<T, Errno>) -> io::Result<T> {
    result.map_err(|error| io::Error::from_raw_os_error(error.raw_os_error()))
}
