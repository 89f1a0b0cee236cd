//! Frames: what is written at once, whole or not at all.
//!
//! A frame is a header of 40 bytes and a payload of records:
//!
//! | bytes | in a log | in a snapshot |
//! |---|---|---|
//! | 0..4 | `FRAM` | the same |
//! | 4..8 | length of the payload | the same |
//! | 8..16 | revision of its first change, or of the next if it has none | entries in the frames before |
//! | 16..24 | oldest revision that is kept from here on | the snapshot's revision |
//! | 24..28 | number of changes | number of entries; zero ends the snapshot |
//! | 28..32 | CRC-32 of the payload | the same |
//! | 32..36 | zero | the same |
//! | 36..40 | CRC-32 of bytes 0..36 and of the frame's place: kind, store, revision, offset | the same |
//!
//! The changes of a frame have consecutive revisions. A compaction is a frame without changes.
//! A frame is written to a log only after the one before it is on disk. So whoever finds a frame
//! that is damaged, and behind it so much as a header that is whole, knows that the damaged one was
//! on disk once; without, it may be what a crash left of a write that nobody was told of.

use std::io;

use super::format::{Kind, Place, number};
use super::reader::Reader;

/// The length of a frame's header.
pub(super) const HEADER: usize = 40;
const MAGIC: [u8; 4] = *b"FRAM";

/// What a frame says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The length of the payload.
    pub(super) length: u32,
    pub(super) first: u64,
    pub(super) oldest: u64,
    pub(super) count: u32,
    payload: u32,
}

/// What is at an offset of a file.
pub(super) enum Next<'a> {
    Frame(Header, &'a [u8]),
    /// The end of the file.
    End,
    /// Something else.
    Bad(&'static str),
}

/// Makes an empty buffer for a frame: room for the header.
pub(super) fn begin(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.resize(HEADER, 0);
}

/// What a finished frame says beside its payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contents {
    pub(super) first: u64,
    pub(super) oldest: u64,
    pub(super) count: u32,
}

/// Fills in the header before the records in the buffer, for exactly this place.
pub(super) fn finish(buffer: &mut [u8], contents: Contents, place: &Place, offset: u64) {
    let (header, payload) = buffer.split_at_mut(HEADER);
    header[..4].copy_from_slice(&MAGIC);
    header[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[8..16].copy_from_slice(&contents.first.to_le_bytes());
    header[16..24].copy_from_slice(&contents.oldest.to_le_bytes());
    header[24..28].copy_from_slice(&contents.count.to_le_bytes());
    header[28..32].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
    header[32..36].fill(0);
    let checksum = checksum(header, place, offset);
    header[36..].copy_from_slice(&checksum.to_le_bytes());
}

/// Reads what is at an offset.
pub(super) fn next<'a>(reader: &'a mut Reader, place: &Place, offset: u64) -> io::Result<Next<'a>> {
    let left = reader.size().saturating_sub(offset);
    if left == 0 {
        return Ok(Next::End);
    }
    if left < HEADER as u64 {
        return Ok(Next::Bad("a frame's header ends too early"));
    }
    let Some(header) = parse(reader.bytes(offset, HEADER)?, place, offset) else {
        return Ok(Next::Bad("there is no frame here, or the checksum of its header is wrong"));
    };
    if left < HEADER as u64 + u64::from(header.length) {
        return Ok(Next::Bad("a frame ends too early"));
    }
    let bytes = reader.bytes(offset, HEADER + header.length as usize)?;
    if crc32fast::hash(&bytes[HEADER..]) != header.payload {
        return Ok(Next::Bad("a frame's checksum is wrong"));
    }
    Ok(Next::Frame(header, &bytes[HEADER..]))
}

/// Where the first whole header after an offset is.
pub(super) fn following(
    reader: &mut Reader,
    place: &Place,
    offset: u64,
) -> io::Result<Option<u64>> {
    /// How much to look at in one step.
    const STEP: usize = 64 * 1024;
    let mut from = offset + 1;
    while from + HEADER as u64 <= reader.size() {
        let length = (reader.size() - from).min((STEP + HEADER) as u64) as usize;
        let bytes = reader.bytes(from, length)?;
        let starts = length - HEADER + 1;
        let candidates = (0..starts).filter(|start| bytes[*start..].starts_with(&MAGIC));
        for start in candidates {
            let at = from + start as u64;
            if parse(&bytes[start..start + HEADER], place, at).is_some() {
                return Ok(Some(at));
            }
        }
        from += starts as u64;
    }
    Ok(None)
}

fn parse(bytes: &[u8], place: &Place, offset: u64) -> Option<Header> {
    let whole =
        bytes[..4] == MAGIC && checksum(bytes, place, offset) == number(&bytes[36..40]) as u32;
    whole.then(|| Header {
        length: number(&bytes[4..8]) as u32,
        first: number(&bytes[8..16]),
        oldest: number(&bytes[16..24]),
        count: number(&bytes[24..28]) as u32,
        payload: number(&bytes[28..32]) as u32,
    })
}

fn checksum(header: &[u8], place: &Place, offset: u64) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&header[..36]);
    hasher.update(&[match place.kind {
        Kind::Log => 1,
        Kind::Snapshot => 2,
    }]);
    for number in [place.store, place.revision.0, offset] {
        hasher.update(&number.to_le_bytes());
    }
    hasher.finalize()
}
