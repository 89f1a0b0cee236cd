//! Reading: get, list and watch, one file each, all from stored bytes.

pub(crate) mod bookmarks;
pub(crate) mod continuation;
pub(crate) mod frames;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod options;
pub(crate) mod polled;
pub(crate) mod watch;
