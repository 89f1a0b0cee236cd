//! Records: one change in a log, one entry in a snapshot.
//!
//! | | |
//! |---|---|
//! | 1 byte | 1: there is a value; 2: it goes after a while; 4: an entry of a snapshot |
//! | 4 bytes | length of the key |
//! | 4 bytes | length of the value, zero if there is none |
//! | 8 bytes, if it goes | after how many milliseconds |
//! | 16 bytes, in a snapshot | the revisions that created and last modified it |
//! | | the key, then the value |
//!
//! The frame around them has the checksum.

use std::time::Duration;

use super::format::number;
use crate::Revision;

const VALUE: u8 = 1;
const TTL: u8 = 2;
const ENTRY: u8 = 4;

/// How large a record may be.
pub(super) const SIZE_MAX: usize = 64 * 1024 * 1024;
/// What a record takes beside key and value, at most.
pub(super) const OVERHEAD: usize = 33;

/// A record in memory that belongs to someone else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) key: &'a str,
    /// `None` deletes the key.
    pub(super) value: Option<&'a [u8]>,
    pub(super) ttl: Option<Duration>,
    /// When it was created and last modified; only in a snapshot.
    pub(super) origin: Option<(Revision, Revision)>,
}

impl<'a> Record<'a> {
    /// Adds the record to a frame.
    pub(super) fn encode(&self, buffer: &mut Vec<u8>) {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let value = self.value.unwrap_or_default();
        buffer.push(
            flag(self.value.is_some(), VALUE)
                | flag(self.ttl.is_some(), TTL)
                | flag(self.origin.is_some(), ENTRY),
        );
        buffer.extend_from_slice(&(self.key.len() as u32).to_le_bytes());
        buffer.extend_from_slice(&(value.len() as u32).to_le_bytes());
        if let Some(ttl) = self.ttl {
            let milliseconds = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
            buffer.extend_from_slice(&milliseconds.to_le_bytes());
        }
        if let Some((created, modified)) = self.origin {
            buffer.extend_from_slice(&created.0.to_le_bytes());
            buffer.extend_from_slice(&modified.0.to_le_bytes());
        }
        buffer.extend_from_slice(self.key.as_bytes());
        buffer.extend_from_slice(value);
    }

    /// Takes the first record off a payload; nothing if it is none.
    pub(super) fn decode(payload: &mut &'a [u8]) -> Option<Self> {
        let mut take = |length: usize| payload.split_off(..length);
        let flags = take(1)?[0];
        let key_length = number(take(4)?) as usize;
        let value_length = number(take(4)?) as usize;
        let ttl = match flags & TTL {
            0 => None,
            _ => Some(Duration::from_millis(number(take(8)?))),
        };
        let origin = match flags & ENTRY {
            0 => None,
            _ => Some((Revision(number(take(8)?)), Revision(number(take(8)?)))),
        };
        let key = std::str::from_utf8(take(key_length)?).ok()?;
        let value = take(value_length)?;
        Some(Self { key, value: (flags & VALUE != 0).then_some(value), ttl, origin })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_are_written_and_never_past_their_end() {
        let origin = Some((Revision(3), Revision(7)));
        let ttl = Some(Duration::from_millis(1_500));
        let records = [
            Record { key: "/a", value: Some(b"value"), ttl: None, origin: None },
            Record { key: "/b", value: Some(b""), ttl, origin: None },
            Record { key: "/c", value: None, ttl: None, origin: None },
            Record { key: "/d", value: Some(b"entry"), ttl, origin },
        ];
        let mut buffer = Vec::new();
        records.iter().for_each(|record| record.encode(&mut buffer));
        let mut payload = buffer.as_slice();
        assert_eq!([(); 4].map(|()| Record::decode(&mut payload).unwrap()), records);
        assert_eq!(Record::decode(&mut payload), None);
        let mut last = Vec::new();
        records[3].encode(&mut last);
        assert!(last.len() <= 2 + 5 + OVERHEAD);
        for length in 0..last.len() {
            assert_eq!(Record::decode(&mut &last[..length]), None, "{length}");
        }
    }
}
