//! What is asked of a server for the path that a Pod names, as Go's `net/url` makes it of any text.

/// What an escape is written with.
const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// The path, with the query if there is one. Empty if nothing is named.
pub(crate) fn target(text: &str) -> String {
    // What is no URL at all is a path as a whole.
    let (path, query) = parsed(text).unwrap_or_else(|| (escape(text.as_bytes()), None));
    let slash = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{slash}{path}{query}")
}

/// Path and query of something like a URL, whose scheme, host and fragment do not count.
fn parsed(text: &str) -> Option<(String, Option<&str>)> {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return None;
    }
    let text = text.split('#').next().unwrap_or_default();
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    };
    let path = match path.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => &path[path.len() - rest.len() - 2..],
        _ => path,
    };
    let path = match path.strip_prefix("//") {
        Some(rest) if !rest.starts_with('/') => rest.find('/').map_or("", |slash| &rest[slash..]),
        _ => path,
    };
    if path.split('/').next().is_some_and(|first| first.contains(':')) {
        return None;
    }
    let meant = unescape(path)?;
    let path = if path.bytes().all(is_valid) { path.to_owned() } else { escape(&meant) };
    Some((path, query))
}

/// Whether a byte of a path stays if all of them are like this.
fn is_valid(byte: u8) -> bool {
    stays(byte) || b"!'()*[]%".contains(&byte)
}

/// Whether a byte of a path needs no escape.
fn stays(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte)
}

fn escape(path: &[u8]) -> String {
    let mut escaped = String::with_capacity(path.len());
    for &byte in path {
        if stays(byte) {
            escaped.push(char::from(byte));
        } else {
            let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
            escaped.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    escaped
}

/// What a path means; none if an escape in it means nothing.
fn unescape(path: &str) -> Option<Vec<u8>> {
    let mut parts = path.split('%');
    let mut meant = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits =
            part.get(..2).filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        meant.push(u8::from_str_radix(digits, 16).ok()?);
        meant.extend_from_slice(&part.as_bytes()[2..]);
    }
    Some(meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped_as_go_does() {
        for (text, expected) in [
            ("", ""),
            ("/", "/"),
            ("healthz", "/healthz"),
            ("/ok?a=b&c=d%20e", "/ok?a=b&c=d%20e"),
            ("a b?x=1", "/a%20b?x=1"),
            ("/a%2Fb", "/a%2Fb"),
            ("/a%2Fb c", "/a/b%20c"),
            ("/(x)!", "/(x)!"),
            ("/(x y)", "/%28x%20y%29"),
            ("/\u{fc}\"<>", "/%C3%BC%22%3C%3E"),
            ("/50%", "/50%25"),
            ("/50%?a", "/50%25%3Fa"),
            ("/a#part", "/a"),
            ("/end?", "/end?"),
            ("//host/path", "/path"),
            ("http://host/path?q", "/path?q"),
            ("1:b/c", "/1:b/c"),
            ("/line\n", "/line%0A"),
        ] {
            assert_eq!(target(text), expected, "{text:?}");
        }
    }
}
