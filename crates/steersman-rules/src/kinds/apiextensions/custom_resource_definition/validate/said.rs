//! A part of a schema as it is looked at: what it says, and where it stands.
//!
//! A schema may have thousands of parts, each is asked for dozens of words of which it has three,
//! and nearly all of them are sound. So a word that is not there is known without a search, and
//! where a part stands becomes text only in a complaint.

use std::fmt;
use std::ops::Index;

use serde_json::Value;

use super::clip;

/// A schema, with a sketch of the words that it has.
#[derive(Clone, Copy)]
pub(super) struct Said<'a> {
    pub(super) schema: &'a Value,
    /// The [bits](bit) of its words.
    words: u64,
}

impl<'a> Said<'a> {
    pub(super) fn of(schema: &'a Value) -> Self {
        let fields = schema.as_object().into_iter().flatten();
        Self { schema, words: fields.fold(0, |words, (word, _)| words | bit(word)) }
    }

    /// What it says under a word; null if it does not.
    #[inline]
    pub(super) fn of_word(&self, word: &str) -> &'a Value {
        static NOTHING: Value = Value::Null;
        if self.words & bit(word) == 0 { &NOTHING } else { &self.schema[word] }
    }

    /// The schema that it has under a word, if any.
    #[inline]
    pub(super) fn below(&self, word: &str) -> Said<'a> {
        Self::of(self.of_word(word))
    }
}

impl Index<&str> for Said<'_> {
    type Output = Value;

    #[inline]
    fn index(&self, word: &str) -> &Value {
        self.of_word(word)
    }
}

/// One of 64 bits, which few words of schemas share.
#[inline]
fn bit(word: &str) -> u64 {
    let bytes = word.as_bytes();
    let first = bytes.first().copied().unwrap_or_default();
    let last = bytes.last().copied().unwrap_or_default();
    1 << ((bytes.len() * 7 + usize::from(first) * 3 + usize::from(last)) % 64)
}

/// Where a schema stands.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    up: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root(&'a str),
    /// `.items`
    Word(&'a str),
    /// `.properties[name]`
    Property(&'a str),
    /// `.allOf[2]`
    Part(&'a str, usize),
}

impl<'a> Path<'a> {
    pub(super) fn root(path: &'a str) -> Self {
        Self { up: None, step: Step::Root(path) }
    }

    pub(super) fn word(&'a self, word: &'a str) -> Self {
        Self { up: Some(self), step: Step::Word(word) }
    }

    pub(super) fn property(&'a self, name: &'a str) -> Self {
        Self { up: Some(self), step: Step::Property(name) }
    }

    pub(super) fn part(&'a self, word: &'a str, index: usize) -> Self {
        Self { up: Some(self), step: Step::Part(word, index) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.up.map_or(Ok(()), |up| up.fmt(f))?;
        match self.step {
            Step::Root(path) => f.write_str(path),
            Step::Word(word) => write!(f, ".{word}"),
            Step::Property(name) => write!(f, ".properties[{}]", clip(name)),
            Step::Part(word, index) => write!(f, ".{word}[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Path, Said};

    #[test]
    fn what_a_schema_says_is_found_whatever_else_is_asked_for() {
        let schema = json!({"type": "object", "items": {"format": "int32"}, "nullable": false});
        let said = Said::of(&schema);
        for word in ["type", "items", "nullable", "format", "default", "not", "x", ""] {
            assert_eq!(said[word], schema[word], "{word}");
        }
        assert_eq!(said.below("items")["format"], "int32");
        assert!(Said::of(&json!(true))["type"].is_null());
    }

    #[test]
    fn a_path_reads_as_kubernetes_writes_it() {
        let root = Path::root("spec.validation.openAPIV3Schema");
        let property = root.property("spec");
        let part = property.part("allOf", 2);
        let text = "spec.validation.openAPIV3Schema.properties[spec].allOf[2].items";
        assert_eq!(part.word("items").to_string(), text);
    }
}
