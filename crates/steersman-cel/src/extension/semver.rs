//! Semantic versions.

use std::cmp::Ordering;
use std::fmt;

/// A semantic version.
#[derive(Clone, Debug)]
pub struct Version {
    pub(crate) numbers: [u64; 3],
    pre: Vec<Identifier>,
    build: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Version {
    /// Reads a version; otherwise what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts.as_slice() else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = rest.split_once('+').map_or((*rest, None), |(rest, b)| (rest, Some(b)));
        let (patch, pre) = rest.split_once('-').map_or((rest, None), |(patch, p)| (patch, Some(p)));
        let numbers = [number(major, "Major")?, number(minor, "Minor")?, number(patch, "Patch")?];
        let pre = pre.map_or(Ok(Vec::new()), |pre| pre.split('.').map(identifier).collect())?;
        let build = build.map_or(Ok(Vec::new()), |build| {
            build.split('.').map(|part| plain(part, "Build meta data")).collect()
        })?;
        Ok(Self { numbers, pre, build })
    }

    /// With what people leave out or add: a `v` in front, missing parts, leading zeros.
    pub(crate) fn parse_leniently(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    /// What precedes what; build data do not count.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare_pre(&self.pre, &other.pre),
            }
        })
    }
}

fn compare_pre(a: &[Identifier], b: &[Identifier]) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        let order = match (a, b) {
            (Identifier::Number(a), Identifier::Number(b)) => a.cmp(b),
            (Identifier::Text(a), Identifier::Text(b)) => a.cmp(b),
            (Identifier::Number(_), Identifier::Text(_)) => Ordering::Less,
            (Identifier::Text(_), Identifier::Number(_)) => Ordering::Greater,
        };
        if order.is_ne() {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

fn without_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let trimmed = part.trim_start_matches('0');
    if trimmed.starts_with(|c: char| c.is_ascii_digit()) {
        trimmed.to_owned()
    } else {
        format!("0{trimmed}")
    }
}

fn number(text: &str, name: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!(
            "Invalid character(s) found in {} number {text:?}",
            name.to_lowercase()
        ));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{name} number must not contain leading zeroes {text:?}"));
    }
    text.parse().map_err(|_| format!("{name} number is out of range {text:?}"))
}

fn plain(text: &str, what: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err(format!("{what} is empty"));
    }
    if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Err(format!("Invalid character(s) found in {what} {text:?}"));
    }
    Ok(text.to_owned())
}

fn identifier(text: &str) -> Result<Identifier, String> {
    let text = plain(text, "prerelease")?;
    if text.bytes().all(|b| b.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {text:?}"
            ));
        }
        let number = text.parse();
        return number.map(Identifier::Number).map_err(|_| format!("{text:?} is out of range"));
    }
    Ok(Identifier::Text(text))
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        for (at, part) in self.pre.iter().enumerate() {
            f.write_str(if at == 0 { "-" } else { "." })?;
            match part {
                Identifier::Number(number) => write!(f, "{number}")?,
                Identifier::Text(text) => f.write_str(text)?,
            }
        }
        for (at, part) in self.build.iter().enumerate() {
            write!(f, "{}{part}", if at == 0 { "+" } else { "." })?;
        }
        Ok(())
    }
}
