//! Bodies as documents, with what strict decoding complains about.
//!
//! A body is read once. On the way [`json`] notices fields that stand twice and fields that the
//! schema does not know; [`yaml`] looks for keys that stand twice. Whether that is an error, a
//! warning or nothing is for the server to say, which also knows the media types;
//! [`crate::schema`] knows the fields.

mod characters;
pub mod json;
pub mod syntax;
pub mod yaml;

use std::fmt;

pub use crate::schema::FINDINGS_MAX;

/// A longer key is cut in the path of a finding, so that paths cannot outgrow the body.
const KEY_MAX: usize = 256;

/// Something that a lenient reader passes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A field that the schema does not know, by its path such as `spec.containers[0].foo`.
    Unknown(String),
    /// A field that stands more than once.
    Duplicate(String),
    /// The same in an operation of a JSON patch.
    Operation(Box<Finding>),
    /// A key that stands more than once in YAML, as its parser words it.
    Repeated {
        /// Where the later one is, counted from one.
        line: usize,
        /// The key.
        key: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(path) => write!(f, "unknown field {path:?}"),
            Self::Duplicate(path) => write!(f, "duplicate field {path:?}"),
            Self::Operation(finding) => write!(f, "json patch {finding}"),
            Self::Repeated { line, key } => {
                write!(f, "line {line}: key {key:?} already set in map")
            }
        }
    }
}

impl Finding {
    /// Puts a parent's key or index in front of the path.
    fn below(&mut self, parent: &Segment<'_>) {
        let (Self::Unknown(path) | Self::Duplicate(path)) = self else { return };
        let dot = if path.starts_with('[') { "" } else { "." };
        *path = match parent {
            Segment::Key(key) => format!("{}{dot}{path}", clip(key)),
            Segment::Index(index) => format!("[{index}]{dot}{path}"),
        };
    }
}

/// One step of a path.
enum Segment<'a> {
    Key(&'a str),
    Index(usize),
}

fn clip(key: &str) -> &str {
    let end = key.char_indices().nth(KEY_MAX).map_or(key.len(), |(end, _)| end);
    &key[..end]
}
