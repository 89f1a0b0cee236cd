//! What every file of a store begins with, and what files are called.
//!
//! A directory holds `REVISION.log` files, the segments of the log, named by the revision of the
//! first change that they can hold, and at most one `REVISION.snapshot`, the state at a revision.
//! Files come to be under a name that ends in `.tmp` and are renamed once they are on disk: under
//! its final name, a file's header is whole. A backup is a snapshot in a file of its own.
//!
//! All numbers are little-endian. A header has 40 bytes, in every version of the format:
//!
//! | bytes | |
//! |---|---|
//! | 0..8 | `STEERLOG` or `STEERSNP` |
//! | 8..12 | version of the format, now 1 |
//! | 12..16 | zero |
//! | 16..24 | the store's identity, made at random with it |
//! | 24..32 | the revision in the file's name |
//! | 32..36 | zero |
//! | 36..40 | CRC-32 of bytes 0..36 |
//!
//! Then frames follow, see [`frame`](super::frame).

use super::error::{OpenError, io_error};
use super::files::Files;
use super::reader::Reader;
use crate::Revision;

/// The length of a file's header.
pub(super) const HEADER: u64 = 40;
/// The format that is written, and the latest that is read.
const VERSION: u32 = 1;
/// How the name of a file ends that is not finished.
const TEMPORARY: &str = ".tmp";

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Log,
    Snapshot,
}

/// Which file of which store: every checksum covers it, so that bytes from elsewhere are never
/// taken for the store's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) kind: Kind,
    pub(super) store: u64,
    /// The first revision of a segment, the revision of a snapshot.
    pub(super) revision: Revision,
}

impl Kind {
    fn magic(self) -> [u8; 8] {
        match self {
            Self::Log => *b"STEERLOG",
            Self::Snapshot => *b"STEERSNP",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Snapshot => "snapshot",
        }
    }

    /// What a file of this kind is called. Names sort like revisions.
    pub(super) fn name(self, revision: Revision) -> String {
        format!("{:020}.{}", revision.0, self.extension())
    }
}

impl Place {
    pub(super) fn name(&self) -> String {
        self.kind.name(self.revision)
    }

    pub(super) fn temporary_name(&self) -> String {
        self.name() + TEMPORARY
    }

    /// The bytes of the header.
    pub(super) fn header(&self) -> [u8; HEADER as usize] {
        let mut header = [0; HEADER as usize];
        header[..8].copy_from_slice(&self.kind.magic());
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[16..24].copy_from_slice(&self.store.to_le_bytes());
        header[24..32].copy_from_slice(&self.revision.0.to_le_bytes());
        let checksum = crc32fast::hash(&header[..36]);
        header[36..].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    /// Reads the header of a file.
    pub(super) fn read(
        kind: Kind,
        name: &str,
        files: &dyn Files,
        reader: &mut Reader,
    ) -> Result<Self, OpenError> {
        let file = files.path(name);
        let corrupt = |reason: &str| {
            Err(OpenError::Corrupt { file: file.clone(), offset: 0, reason: reason.to_owned() })
        };
        if reader.size() < HEADER {
            return corrupt("it is too short for a header");
        }
        let bytes = reader.bytes(0, HEADER as usize);
        let bytes = bytes.map_err(|error| io_error("read", file.clone(), error))?;
        if bytes[..8] != kind.magic() {
            return corrupt("it does not begin as such a file does");
        }
        if crc32fast::hash(&bytes[..36]) != number(&bytes[36..40]) as u32 {
            return corrupt("the checksum of its header is wrong");
        }
        let version = number(&bytes[8..12]) as u32;
        if version != VERSION {
            return Err(OpenError::Newer { file, version, known: VERSION });
        }
        let store = number(&bytes[16..24]);
        let revision = Revision(number(&bytes[24..32]));
        Ok(Self { kind, store, revision })
    }
}

/// A little-endian number of up to eight bytes.
pub(super) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// What a name in the directory stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Name {
    Finished(Kind, Revision),
    /// A file that was never finished.
    Temporary,
    /// Not ours.
    Other,
}

impl Name {
    pub(super) fn parse(name: &str) -> Self {
        let finished = name.strip_suffix(TEMPORARY).unwrap_or(name);
        let kind = [Kind::Log, Kind::Snapshot].into_iter().find_map(|kind| {
            let digits = finished.strip_suffix(kind.extension())?.strip_suffix('.')?;
            Some((kind, Revision(digits.parse().ok()?)))
        });
        match kind {
            Some((kind, revision)) if kind.name(revision) != finished => Self::Other,
            Some(_) if finished != name => Self::Temporary,
            Some((kind, revision)) => Self::Finished(kind, revision),
            None => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let place = Place { kind: Kind::Log, store: 1, revision: Revision(17) };
        assert_eq!(Name::parse(&place.name()), Name::Finished(Kind::Log, Revision(17)));
        assert_eq!(Name::parse(&place.temporary_name()), Name::Temporary);
        for other in ["lock", "17.log", "00000000000000000017", "x.snapshot", ".tmp"] {
            assert_eq!(Name::parse(other), Name::Other, "{other}");
        }
    }
}
