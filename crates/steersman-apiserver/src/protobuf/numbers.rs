//! The table of field numbers, read when the first protobuf body arrives.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::special::Special;

/// Which number is which field, of every message.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    kinds: HashMap<&'static str, &'static str>,
    messages: HashMap<&'static str, HashMap<u32, Field>>,
}

/// One field of a message.
#[derive(Debug)]
pub(super) struct Field {
    /// Its name in JSON.
    pub(super) name: &'static str,
    /// What it holds.
    pub(super) kind: Kind,
    /// Whether JSON leaves it out when it is zero.
    pub(super) omit: bool,
    /// Whether its own fields stand in the parent.
    pub(super) inline: bool,
}

/// What a field holds.
#[derive(Debug)]
pub(super) enum Kind {
    Text,
    Int,
    Bool,
    Double,
    Bytes,
    Message(&'static str),
    Special(Special),
    List(Box<Kind>),
    Map(Box<Kind>),
    /// A list inside a message of its own.
    Items(Box<Kind>),
}

/// The table.
pub(super) fn numbers() -> &'static Numbers {
    static NUMBERS: OnceLock<Numbers> = OnceLock::new();
    NUMBERS.get_or_init(|| Numbers::read(include_str!("numbers.txt")))
}

impl Numbers {
    /// The message of a kind. Options are the same in every group.
    pub(super) fn kind(&self, api_version: &str, kind: &str) -> Option<&'static str> {
        let own = self.kinds.get(format!("{api_version} {kind}").as_str());
        own.or_else(|| self.kinds.get(format!("* {kind}").as_str())).copied()
    }

    /// The fields of a message.
    pub(super) fn message(&self, name: &str) -> Option<&HashMap<u32, Field>> {
        self.messages.get(name)
    }

    fn read(text: &'static str) -> Self {
        let mut numbers = Self::default();
        let mut message = "";
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some(kind) = line.strip_prefix("kind ") {
                numbers.kinds.extend(kind.rsplit_once(' '));
            } else if let Some(name) = line.strip_prefix("type ") {
                message = name;
                numbers.messages.insert(name, HashMap::new());
            } else if let (Some((number, field)), Some(fields)) =
                (read_field(line), numbers.messages.get_mut(message))
            {
                fields.insert(number, field);
            }
        }
        numbers
    }
}

fn read_field(line: &'static str) -> Option<(u32, Field)> {
    let mut words = line.split_whitespace();
    let (number, name, kind) = (words.next()?, words.next()?, words.next()?);
    let flag = words.next();
    let kind = read_kind(kind);
    let field = Field { name, kind, omit: flag == Some("omit"), inline: flag == Some("inline") };
    Some((number.parse().ok()?, field))
}

fn read_kind(text: &'static str) -> Kind {
    let inside = |open: &str, close: char| text.strip_prefix(open)?.strip_suffix(close);
    if let Some(item) = inside("[", ']') {
        return Kind::List(Box::new(read_kind(item)));
    }
    if let Some(value) = inside("{", '}') {
        return Kind::Map(Box::new(read_kind(value)));
    }
    if let Some(item) = inside("items<", '>') {
        return Kind::Items(Box::new(read_kind(item)));
    }
    match text {
        "string" => Kind::Text,
        "int" => Kind::Int,
        "bool" => Kind::Bool,
        "double" => Kind::Double,
        "bytes" => Kind::Bytes,
        name => Special::of(name).map_or(Kind::Message(name), Kind::Special),
    }
}
