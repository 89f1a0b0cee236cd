//! JSON for people: two spaces a level, a space behind colons.
//!
//! It works on text, piece by piece, so that a large list needs not be decoded for it.

use bytes::Bytes;

/// What is known at the end of a piece.
#[derive(Debug, Default)]
pub(super) struct Indenter {
    depth: usize,
    /// Within a string, and there behind a backslash.
    quoted: bool,
    escaped: bool,
    /// Behind an opening bracket: the line breaks only if something follows.
    opened: bool,
}

impl Indenter {
    /// Indents a whole text.
    pub(super) fn whole(json: &[u8]) -> Bytes {
        Self::default().piece(json)
    }

    /// Indents the next piece of a text without spaces between its tokens.
    pub(super) fn piece(&mut self, json: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(json.len() * 3 / 2);
        for &byte in json {
            if self.quoted {
                self.quote(byte);
                out.push(byte);
            } else {
                self.token(byte, &mut out);
            }
        }
        out.into()
    }

    fn quote(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => self.quoted = false,
            _ => {}
        }
    }

    fn token(&mut self, byte: u8, out: &mut Vec<u8>) {
        if matches!(byte, b'}' | b']') {
            self.depth = self.depth.saturating_sub(1);
            if !std::mem::take(&mut self.opened) {
                self.line(out);
            }
            return out.push(byte);
        }
        if std::mem::take(&mut self.opened) {
            self.line(out);
        }
        out.push(byte);
        match byte {
            b'"' => self.quoted = true,
            b'{' | b'[' => {
                self.depth += 1;
                self.opened = true;
            }
            b',' => self.line(out),
            b':' => out.push(b' '),
            _ => {}
        }
    }

    fn line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.resize(out.len() + 2 * self.depth, b' ');
    }
}

#[cfg(test)]
mod tests {
    use super::Indenter;
    use serde_json::json;

    #[test]
    fn text_is_indented_as_serde_and_go_indent_it_in_pieces_of_any_size() {
        let value = json!({
            "empty": {}, "none": [], "list": [1, -2.5, true, null, {"a": "b"}, [[]]],
            "text": "a \"quote\", {not} [this]: \\", "": {"deep": {"er": [{}]}},
        });
        let expected = serde_json::to_string_pretty(&value).unwrap();
        let text = value.to_string();
        assert_eq!(Indenter::whole(text.as_bytes()), expected);
        for size in 1..7 {
            let mut indenter = Indenter::default();
            let pieces = text.as_bytes().chunks(size).map(|piece| indenter.piece(piece));
            assert_eq!(pieces.collect::<Vec<_>>().concat(), expected.as_bytes(), "{size}");
        }
    }
}
