//! Bytes in base64, as Go's decoder reads them: in lines, if need be, and with odd bits behind the
//! last byte.
//!
//! What Go has read it writes in one line and without odd bits, and so do we, by the crate of this name.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// What each letter stands for, at its place.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A text that is not base64, with the byte that Go names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("illegal base64 data at input byte {at}")]
pub struct IllegalBase64 {
    at: usize,
}

/// The bytes that a text stands for. Nearly all are written as everybody writes them, which the crate
/// reads many times faster.
pub fn decode(text: &str) -> Result<Vec<u8>, IllegalBase64> {
    if let Ok(bytes) = STANDARD.decode(text) {
        return Ok(bytes);
    }
    let mut decoder = Decoder { text: text.as_bytes(), at: 0 };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    while decoder.group(&mut bytes).map_err(|at| IllegalBase64 { at })? {}
    Ok(bytes)
}

struct Decoder<'a> {
    text: &'a [u8],
    at: usize,
}

impl Decoder<'_> {
    /// Reads up to four letters. Says whether more may follow, or where the mistake is that Go
    /// would name.
    fn group(&mut self, bytes: &mut Vec<u8>) -> Result<bool, usize> {
        let mut bits = 0;
        for letters in 0..4 {
            self.skip_line_ends();
            let Some(&letter) = self.text.get(self.at) else {
                return if letters == 0 { Ok(false) } else { Err(self.at - letters) };
            };
            self.at += 1;
            if letter == b'=' {
                self.end(letters)?;
                push(bytes, bits << (6 * (4 - letters)), letters);
                return Ok(false);
            }
            let value = ALPHABET.iter().position(|known| *known == letter);
            bits = bits << 6 | value.ok_or(self.at - 1)?;
        }
        push(bytes, bits, 4);
        Ok(true)
    }

    /// Behind the first `=`, after so many letters: there may have to be a second, and nothing else.
    fn end(&mut self, letters: usize) -> Result<(), usize> {
        if letters < 2 {
            return Err(self.at - 1);
        }
        if letters == 2 {
            self.skip_line_ends();
            match self.text.get(self.at) {
                Some(b'=') => self.at += 1,
                Some(_) => return Err(self.at - 1),
                None => return Err(self.text.len()),
            }
        }
        self.skip_line_ends();
        if self.at < self.text.len() { Err(self.at) } else { Ok(()) }
    }

    fn skip_line_ends(&mut self) {
        while matches!(self.text.get(self.at), Some(b'\r' | b'\n')) {
            self.at += 1;
        }
    }
}

/// Adds the bytes that so many letters hold.
fn push(bytes: &mut Vec<u8>, bits: usize, letters: usize) {
    let [.., first, second, third] = bits.to_be_bytes();
    bytes.extend_from_slice(&[first, second, third][..letters - 1]);
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn base64_is_read_as_go_reads_it() {
        for (text, expected) in [
            ("", Ok(&b""[..])),
            ("YWJj", Ok(b"abc")),
            ("YWI=", Ok(b"ab")),
            ("YQ==", Ok(b"a")),
            ("YR==", Ok(b"a")),
            ("Y\r\nWJ\njYWI\n=\n", Ok(b"abcab")),
            ("YQ\n=\n=", Ok(b"a")),
            ("!!!", Err(0)),
            ("YWJj!", Err(4)),
            ("YWJjYW", Err(4)),
            ("YWJ", Err(0)),
            ("YQ=", Err(3)),
            ("YQ=x", Err(2)),
            ("YQ==x", Err(4)),
            ("=", Err(0)),
            ("YW_j", Err(2)),
        ] {
            let told = |at| format!("illegal base64 data at input byte {at}");
            let expected = expected.map(<[u8]>::to_vec).map_err(told);
            assert_eq!(decode(text).map_err(|error| error.to_string()), expected, "{text:?}");
        }
    }
}
