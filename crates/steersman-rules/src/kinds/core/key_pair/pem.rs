//! The blocks of a PEM as Go finds them: what lies between them, and what is no sound block, is
//! passed over.

use std::str::Lines;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";

/// Bytes with what they are called.
pub(super) struct Block {
    pub(super) label: String,
    pub(super) bytes: Vec<u8>,
}

/// The sound blocks of a PEM.
pub(super) fn blocks(text: &[u8]) -> Vec<Block> {
    let text = String::from_utf8_lossy(text);
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let label = line.trim_end().strip_prefix(BEGIN);
        let Some(label) = label.and_then(|rest| rest.strip_suffix("-----")) else { continue };
        if let Some((bytes, after)) = body(lines.clone(), label) {
            blocks.push(Block { label: label.to_owned(), bytes });
            lines = after;
        }
    }
    blocks
}

/// What a block holds that has just begun, and the lines after it.
fn body<'a>(mut lines: Lines<'a>, label: &str) -> Option<(Vec<u8>, Lines<'a>)> {
    let mut encoded = String::new();
    loop {
        let line = lines.next()?.trim_end();
        if let Some(end) = line.strip_prefix("-----END ") {
            let bytes = STANDARD.decode(&encoded).ok()?;
            return (end.strip_suffix("-----") == Some(label)).then_some((bytes, lines));
        }
        // Each line is read for one block only, however many begin.
        if line.starts_with(BEGIN) {
            return None;
        }
        let is_header = encoded.is_empty() && line.contains(':');
        if !is_header {
            encoded.extend(line.split_ascii_whitespace());
        }
    }
}
