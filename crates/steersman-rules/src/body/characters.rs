//! What stands in JSON for characters and is none: Go's reader puts U+FFFD in its place, so bodies that
//! clients get away with elsewhere are taken here, too.

use super::syntax;

/// A body may not become longer than one may be.
const REPLACED_MAX: usize = 3 << 20;

/// The escape for the character in place of what is none.
const REPLACEMENT: &[u8; 6] = br"\ufffd";

/// A text that could not be read, with the bytes and escapes replaced that are no characters; `None`
/// if that is not what is wrong with it.
pub(super) fn replaced(body: &[u8]) -> Option<Vec<u8>> {
    if syntax::mistake(body).is_some() {
        return None;
    }
    let mut text = Vec::with_capacity(body.len());
    for chunk in body.utf8_chunks() {
        replace_surrogates(chunk.valid().as_bytes(), &mut text);
        // Each byte by itself, even where several begin a character.
        for _ in chunk.invalid() {
            text.extend_from_slice("\u{fffd}".as_bytes());
        }
        if text.len() > REPLACED_MAX {
            return None;
        }
    }
    (text != body).then_some(text)
}

/// Copies a text. Of escaped surrogates only pairs are characters; only in strings are there escapes.
fn replace_surrogates(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = text.iter().position(|byte| *byte == b'\\') {
        let (before, escape) = text.split_at(at);
        out.extend_from_slice(before);
        let (written, length) = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (&escape[..12], 12),
            (Some(0xd800..=0xdfff), _) => (&REPLACEMENT[..], 6),
            _ => (&escape[..escape.len().min(2)], escape.len().min(2)),
        };
        out.extend_from_slice(written);
        text = &escape[length..];
    }
    out.extend_from_slice(text);
}

/// The number of an escape such as `\ud800`, if a text begins with one.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(br"\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn bytes_and_surrogates_that_are_no_characters_become_one_that_says_so() {
        for (body, expected) in [
            (&b"\"\xff\""[..], "\"\u{fffd}\""),
            (b"\"a\xe2\x82b\"", "\"a\u{fffd}\u{fffd}b\""),
            (br#""\ud800""#, r#""\ufffd""#),
            (br#""\uDC00\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (br#""\ud800\ud83d\ude00\n""#, r#""\ufffd\ud83d\ude00\n""#),
            (br#""\\ud800\ud800\\""#, r#""\\ud800\ufffd\\""#),
        ] {
            let made = replaced(body).map(|text| String::from_utf8(text).unwrap());
            assert_eq!(made.as_deref(), Some(expected));
        }
        for body in [&b"\xff"[..], b"{\"\xff\"", br#""\ud83d\ude00""#, b"1e400"] {
            assert_eq!(replaced(body), None);
        }
        let long = [&b"\""[..], &vec![0xff; 2 << 20], b"\""].concat();
        assert_eq!(replaced(&long), None, "it would become too long");
    }
}
