//! Reads JSON text value by value, without building anything.
//!
//! The text is what this server wrote itself, so nothing is checked that does not have to be; what
//! is broken nevertheless is [`ProtobufError::Json`], never a panic.

use std::borrow::Cow;

use super::{ProtobufError, Result};

/// A place in a JSON text.
pub(super) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

/// A string as it is written, quotes included.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    quoted: &'a [u8],
    escaped: bool,
}

/// The rest of an object or a list that was begun.
pub(super) struct Rest {
    close: u8,
    first: bool,
}

impl<'a> Text<'a> {
    /// What the string means, as UTF-8.
    pub(super) fn bytes(self) -> Result<Cow<'a, [u8]>> {
        if !self.escaped {
            return Ok(Cow::Borrowed(&self.quoted[1..self.quoted.len() - 1]));
        }
        let text: String = serde_json::from_slice(self.quoted).map_err(|_| ProtobufError::Json)?;
        Ok(Cow::Owned(text.into_bytes()))
    }
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// The byte that the next value, or what is between values, begins with.
    pub(super) fn peek(&mut self) -> Result<u8> {
        loop {
            match self.text.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(byte) => return Ok(*byte),
                None => return Err(ProtobufError::Json),
            }
        }
    }

    /// Begins an object.
    pub(super) fn object(&mut self) -> Result<Rest> {
        self.expect(b'{')?;
        Ok(Rest { close: b'}', first: true })
    }

    /// Begins a list.
    pub(super) fn list(&mut self) -> Result<Rest> {
        self.expect(b'[')?;
        Ok(Rest { close: b']', first: true })
    }

    /// Whether the object or list has one more; if not, it has ended.
    pub(super) fn more(&mut self, rest: &mut Rest) -> Result<bool> {
        if self.peek()? == rest.close {
            self.at += 1;
            return Ok(false);
        }
        if !std::mem::take(&mut rest.first) {
            self.expect(b',')?;
        }
        Ok(true)
    }

    /// The next key of an object; its value follows.
    pub(super) fn key(&mut self, rest: &mut Rest) -> Result<Option<Text<'a>>> {
        if !self.more(rest)? {
            return Ok(None);
        }
        let key = self.string()?;
        self.expect(b':')?;
        Ok(Some(key))
    }

    /// A string.
    pub(super) fn string(&mut self) -> Result<Text<'a>> {
        self.expect(b'"')?;
        let from = self.at - 1;
        let mut escaped = false;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            self.at += special(rest).ok_or(ProtobufError::Json)?;
            if self.text[self.at] == b'"' {
                self.at += 1;
                return Ok(Text { quoted: &self.text[from..self.at], escaped });
            }
            escaped = true;
            self.at += 2;
        }
    }

    /// A number or a literal.
    pub(super) fn word(&mut self) -> Result<&'a str> {
        self.peek()?;
        let rest = &self.text[self.at..];
        let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t');
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        self.at += length;
        std::str::from_utf8(&rest[..length]).map_err(|_| ProtobufError::Json)
    }

    /// Passes over a null, if one is here.
    pub(super) fn null(&mut self) -> Result<bool> {
        let is_null = self.peek()? == b'n';
        if is_null {
            self.word()?;
        }
        Ok(is_null)
    }

    /// Passes over any value, and gives its text.
    pub(super) fn skip(&mut self) -> Result<&'a [u8]> {
        let first = self.peek()?;
        let from = self.at;
        match first {
            b'"' => drop(self.string()?),
            b'{' | b'[' => self.skip_nested()?,
            _ => drop(self.word()?),
        }
        Ok(&self.text[from..self.at])
    }

    fn skip_nested(&mut self) -> Result<()> {
        let mut depth = 0_usize;
        loop {
            match self.text.get(self.at).ok_or(ProtobufError::Json)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.peek()? != byte {
            return Err(ProtobufError::Json);
        }
        self.at += 1;
        Ok(())
    }
}

/// Where the next quote or backslash is, looking at eight bytes at a time.
fn special(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    // The lowest byte that is zero has its high bit set in this; bytes above it may have, too.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let (words, _) = bytes.as_chunks::<8>();
    for (index, chunk) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        let found =
            zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let done = words.len() * 8;
    let rest = bytes[done..].iter().position(|byte| matches!(byte, b'"' | b'\\'));
    rest.map(|at| done + at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;
    use serde_json::{Value, json};

    use super::Scanner;

    #[test]
    fn a_value_is_passed_over_as_a_whole() {
        let values = [
            json!({"a": [1, "]}\\\"", {"b": null}], "c": "x"}),
            json!([]),
            json!("a \"quoted\" text of some length \\"),
            json!(-1.5e10),
            json!(true),
        ];
        for value in values {
            let text = format!(" {value} ,rest");
            let skipped = Scanner::new(text.as_bytes()).skip().unwrap();
            assert_eq!(serde_json::from_slice::<Value>(skipped).unwrap(), value);
        }
    }

    #[test]
    fn broken_text_is_an_error() {
        for text in ["", " ", "\"abc", "\"abc\\", "{\"a\":", "[1", "{\"a\":\"b}"] {
            assert!(Scanner::new(text.as_bytes()).skip().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_string_is_read_as_it_was_meant(meant: String, tail: String) {
            let text = format!("{}{tail}", json!(meant));
            let read = Scanner::new(text.as_bytes()).string().unwrap().bytes().unwrap().into_owned();
            assert_eq!(read, meant.into_bytes());
        }

        #[test]
        fn no_text_makes_it_panic(text: String) {
            let _ = Scanner::new(text.as_bytes()).skip();
            let _ = Scanner::new(format!("{{{text}").as_bytes()).skip();
            let _ = Scanner::new(format!("\"{text}").as_bytes()).string();
        }
    }
}
