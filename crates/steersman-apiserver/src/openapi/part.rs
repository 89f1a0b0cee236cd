//! Compressed pieces that make a document when they are put side by side.
//!
//! A definition or the paths of a group-version are rendered and deflated once. Each piece ends
//! with a full flush, on a byte and without references to what came before, so any sequence of
//! pieces is one deflate stream: a document is assembled without inflating anything, and only
//! compressed bytes stay in memory.

use std::borrow::Cow;
use std::fmt::Write;
use std::io::Read;

use flate2::read::GzDecoder;
use flate2::{Compress, Compression, Crc, FlushCompress};
use ring::digest::{Context, Digest, SHA256};

/// A deflated piece of a document.
#[derive(Debug)]
pub(super) struct Part {
    deflated: Box<[u8]>,
    crc: Crc,
    digest: Digest,
    /// The names of the definitions that it refers to.
    pub(super) references: Box<[Box<str>]>,
}

/// A document: its pieces in order.
#[derive(Debug, Default)]
pub(super) struct Document<'a> {
    pieces: Vec<Piece<'a>>,
}

#[derive(Debug)]
enum Piece<'a> {
    Plain(Cow<'a, [u8]>),
    Part(&'a Part),
}

/// The longest stored block of a deflate stream.
const STORED_MAX: usize = 0xffff;

/// A header without name and time, of an unknown system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

impl Part {
    pub(super) fn new(bytes: &[u8], references: Box<[Box<str>]>) -> Self {
        let mut crc = Crc::new();
        crc.update(bytes);
        let digest = ring::digest::digest(&SHA256, bytes);
        Self { deflated: deflate(bytes).into(), crc, digest, references }
    }
}

impl<'a> Document<'a> {
    /// Adds bytes as they are: the commas and brackets between parts.
    pub(super) fn plain(&mut self, bytes: impl Into<Cow<'a, [u8]>>) {
        self.pieces.push(Piece::Plain(bytes.into()));
    }

    /// Adds a part.
    pub(super) fn part(&mut self, part: &'a Part) {
        self.pieces.push(Piece::Part(part));
    }

    /// Adds parts with a comma between them.
    pub(super) fn parts(&mut self, parts: impl IntoIterator<Item = &'a Part>) {
        for (index, part) in parts.into_iter().enumerate() {
            if index > 0 {
                self.plain(b",".as_slice());
            }
            self.part(part);
        }
    }

    /// A name that changes with the content.
    pub(super) fn etag(&self) -> String {
        let mut context = Context::new(&SHA256);
        for piece in &self.pieces {
            match piece {
                Piece::Plain(bytes) => context.update(bytes),
                Piece::Part(part) => context.update(part.digest.as_ref()),
            }
        }
        let digest = context.finish();
        digest.as_ref().iter().fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02X}");
            text
        })
    }

    /// The document, compressed.
    pub(super) fn gzip(&self) -> Vec<u8> {
        let mut out = GZIP_HEADER.to_vec();
        let mut crc = Crc::new();
        for piece in &self.pieces {
            match piece {
                Piece::Plain(bytes) => {
                    crc.update(bytes);
                    bytes.chunks(STORED_MAX).for_each(|block| store(&mut out, block, false));
                }
                Piece::Part(part) => {
                    crc.combine(&part.crc);
                    out.extend_from_slice(&part.deflated);
                }
            }
        }
        store(&mut out, &[], true);
        out.extend_from_slice(&crc.sum().to_le_bytes());
        out.extend_from_slice(&crc.amount().to_le_bytes());
        out
    }
}

/// Undoes [`Document::gzip`], for clients that cannot.
pub(super) fn inflate(gzip: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    GzDecoder::new(gzip).read_to_end(&mut out)?;
    Ok(out)
}

/// Adds a block that is not compressed.
fn store(out: &mut Vec<u8>, block: &[u8], last: bool) {
    let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
    out.push(u8::from(last));
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(block);
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut compress = Compress::new(Compression::default(), false);
    let mut out = Vec::with_capacity(bytes.len() / 3 + 64);
    let mut read = 0;
    loop {
        let result = compress.compress_vec(&bytes[read..], &mut out, FlushCompress::Full);
        debug_assert!(result.is_ok(), "{result:?}");
        read = usize::try_from(compress.total_in()).unwrap_or(usize::MAX).min(bytes.len());
        // Room that is left means that everything, the flush included, is out.
        if read == bytes.len() && out.len() < out.capacity() {
            return out;
        }
        out.reserve(bytes.len() / 4 + 64);
    }
}
