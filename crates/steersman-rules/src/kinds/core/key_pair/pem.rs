//! The blocks of a PEM as Go finds them: what lies between them, and what is no sound block, is
//! passed over.

use std::str::Lines;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";

/// Bytes with what they are called.
pub(in crate::kinds) struct Block {
    pub(in crate::kinds) label: String,
    pub(in crate::kinds) bytes: Vec<u8>,
    /// Whether more is said of the bytes than what they are called.
    pub(in crate::kinds) has_headers: bool,
}

/// The sound blocks of a PEM.
pub(in crate::kinds) fn blocks(text: &[u8]) -> Vec<Block> {
    let text = String::from_utf8_lossy(text);
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let label = line.trim_end().strip_prefix(BEGIN);
        let Some(label) = label.and_then(|rest| rest.strip_suffix("-----")) else { continue };
        if let Some((block, after)) = body(lines.clone(), label) {
            blocks.push(block);
            lines = after;
        }
    }
    blocks
}

/// The block that has just begun, and the lines after it.
fn body<'a>(mut lines: Lines<'a>, label: &str) -> Option<(Block, Lines<'a>)> {
    let mut encoded = String::new();
    let mut has_headers = false;
    loop {
        let line = lines.next()?.trim_end();
        if let Some(end) = line.strip_prefix("-----END ") {
            let bytes = STANDARD.decode(&encoded).ok()?;
            let block = Block { label: label.to_owned(), bytes, has_headers };
            return (end.strip_suffix("-----") == Some(label)).then_some((block, lines));
        }
        // Each line is read for one block only, however many begin.
        if line.starts_with(BEGIN) {
            return None;
        }
        if encoded.is_empty() && line.contains(':') {
            has_headers = true;
        } else {
            encoded.extend(line.split_ascii_whitespace());
        }
    }
}
