//! URLs, read as Go's `net/url` does.

use std::collections::BTreeMap;

/// A URL in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub(super) text: String,
    pub(crate) scheme: String,
    pub(crate) host: String,
    /// With its escapes.
    pub(crate) path: String,
    query: String,
}

impl Url {
    /// Reads an absolute URL or an absolute path.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("parse {text:?}: {why}");
        if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
            return Err(wrong("net/url: invalid control character in URL"));
        }
        if text.is_empty() {
            return Err(wrong("empty url"));
        }
        let (scheme, rest) = scheme(text).map_err(wrong)?;
        // A fragment is part of the path as far as a request is concerned, and left out later.
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if !rest.starts_with('/') {
            if scheme.is_empty() {
                return Err(wrong("invalid URI for request"));
            }
            // Opaque, such as mailto:somebody.
            return Ok(Self {
                text: text.to_owned(),
                scheme,
                host: String::new(),
                path: String::new(),
                query: query.to_owned(),
            });
        }
        let mut host = String::new();
        let mut path = rest;
        if !scheme.is_empty()
            && let Some(after) = rest.strip_prefix("//")
        {
            let end = after.find('/').unwrap_or(after.len());
            host = authority(&after[..end]).map_err(|why| wrong(&why))?;
            path = &after[end..];
        }
        check_escapes(path).map_err(|why| wrong(&why))?;
        let path = escaped_path(path);
        Ok(Self { text: text.to_owned(), scheme, host, path, query: query.to_owned() })
    }

    /// Name and port.
    pub(crate) fn hostname(&self) -> (String, String) {
        if let Some(rest) = self.host.strip_prefix('[')
            && let Some((name, port)) = rest.split_once(']')
        {
            return (name.to_owned(), port.trim_start_matches(':').to_owned());
        }
        let (name, port) = self.host.rsplit_once(':').unwrap_or((&self.host, ""));
        (name.to_owned(), port.to_owned())
    }
}

impl Url {
    /// What is asked for: values by key.
    pub(crate) fn asked(&self) -> BTreeMap<String, Vec<String>> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Some(key), Some(value)) = (unescaped(key), unescaped(value)) {
                found.entry(key).or_default().push(value);
            }
        }
        found
    }
}

/// The scheme in lower case and what follows its colon.
fn scheme(text: &str) -> Result<(String, &str), &'static str> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme"),
            ':' => return Ok((text[..at].to_ascii_lowercase(), &text[at + 1..])),
            _ => break,
        }
    }
    // A colon in the first part of what has no scheme would be mistaken for one.
    let first = text.split('/').next().unwrap_or(text);
    if !text.starts_with('/') && first.contains(':') {
        return Err("first path segment in URL cannot contain colon");
    }
    Ok((String::new(), text))
}

/// The host with its port, without who asks.
fn authority(text: &str) -> Result<String, String> {
    let host = text.rsplit_once('@').map_or(text, |(_, host)| host);
    let port = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or("missing ']' in host")?.1,
        None => host.find(':').map_or("", |at| &host[at..]),
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if !digits.bytes().all(|b| b.is_ascii_digit()) || (!port.is_empty() && !port.starts_with(':')) {
        return Err(format!("invalid port {port:?} after host"));
    }
    if let Some(c) = host.chars().find(|c| " <>\"\\^`{|}".contains(*c)) {
        return Err(format!("invalid character {:?} in host name", c.to_string()));
    }
    check_escapes(host)?;
    Ok(host.to_owned())
}

fn check_escapes(text: &str) -> Result<(), String> {
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices('%') {
        let valid =
            bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        if !valid {
            let mut end = (at + 3).min(text.len());
            while !text.is_char_boundary(end) {
                end += 1;
            }
            return Err(format!("invalid URL escape {:?}", &text[at..end]));
        }
    }
    Ok(())
}

/// What may not stand in a path as it is, escaped.
fn escaped_path(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@!'()*%[]".contains(&b);
    let mut out = String::with_capacity(path.len());
    for b in path.bytes() {
        if plain(b) {
            out.push(char::from(b));
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
    }
    out
}

fn unescaped(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'+' => out.push(b' '),
            b'%' => {
                let hex = text.get(at + 1..at + 3)?;
                out.push(u8::from_str_radix(hex, 16).ok()?);
                at += 2;
            }
            b => out.push(b),
        }
        at += 1;
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}
