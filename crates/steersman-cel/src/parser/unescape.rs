//! What a string or bytes literal stands for.

/// The bytes of a string literal as written, quotes and marks included.
pub(crate) fn string(text: &str) -> Result<String, &'static str> {
    let bytes = literal(text, false)?;
    String::from_utf8(bytes).map_err(|_| "invalid unicode code point")
}

/// The bytes of a bytes literal as written, without its `b`.
pub(crate) fn bytes(text: &str) -> Result<Vec<u8>, &'static str> {
    literal(text, true)
}

fn literal(text: &str, bytes: bool) -> Result<Vec<u8>, &'static str> {
    let raw = text.starts_with(['r', 'R']);
    let text = if raw { &text[1..] } else { text };
    let triple = text.len() >= 6 && (text.starts_with("\"\"\"") || text.starts_with("'''"));
    let width = if triple { 3 } else { 1 };
    let inner =
        text.get(width..text.len().saturating_sub(width)).ok_or("unable to unescape string")?;
    // Line ends are one, however the text was written.
    let inner = inner.replace("\r\n", "\n").replace('\r', "\n");
    if raw {
        return Ok(inner.into_bytes());
    }
    unescape(&inner, bytes)
}

fn unescape(text: &str, bytes: bool) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = escape(&rest[at + 1..], bytes, &mut out)?;
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// Reads one escape after its backslash and says what follows it.
fn escape<'t>(rest: &'t str, bytes: bool, out: &mut Vec<u8>) -> Result<&'t str, &'static str> {
    let first =
        rest.chars().next().ok_or("unable to unescape string, found '\\' as last character")?;
    let number = |from: usize, to: usize, radix: u32| {
        let digits = rest.get(from..to).ok_or("unable to unescape string")?;
        u32::from_str_radix(digits, radix).map_err(|_| "unable to unescape string")
    };
    let simple = match first {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' | '\'' | '"' | '`' | '?' => first as u8,
        'u' | 'U' => {
            if bytes {
                return Err("unable to unescape string");
            }
            let length = if first == 'u' { 5 } else { 9 };
            push(number(1, length, 16)?, out)?;
            return Ok(&rest[length..]);
        }
        'x' | 'X' => {
            let value = number(1, 3, 16)?;
            push_byte_or_char(value, bytes, out)?;
            return Ok(&rest[3..]);
        }
        '0'..='3' => {
            let value = number(0, 3, 8)?;
            push_byte_or_char(value, bytes, out)?;
            return Ok(&rest[3..]);
        }
        _ => return Err("unable to unescape string"),
    };
    out.push(simple);
    Ok(&rest[first.len_utf8()..])
}

fn push_byte_or_char(value: u32, bytes: bool, out: &mut Vec<u8>) -> Result<(), &'static str> {
    if bytes {
        out.push(u8::try_from(value).map_err(|_| "unable to unescape string")?);
        return Ok(());
    }
    push(value, out)
}

fn push(value: u32, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let c = char::from_u32(value).ok_or("invalid unicode code point")?;
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(())
}
