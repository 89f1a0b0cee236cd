//! Reads the tables of numbers into [`Message`]s.
//!
//! `fields.txt` has the numbers of the types whose fields `schema/builtin.txt` describes; `meta.txt`
//! has numbers and types of those that are never stored.

use std::collections::HashMap;

use super::layout::{Entry, Field, Holding, Kind, Message};
use crate::schema::{Node, Object, Scalar, Shape, builtin_named, builtin_object};

/// All messages.
#[derive(Default)]
pub(super) struct Table {
    /// By their place.
    pub(super) messages: Vec<Message>,
    /// Lists of kinds, by the place of the kind.
    pub(super) lists: HashMap<usize, Message>,
    /// The places of the types that only travel.
    travelling: HashMap<&'static str, usize>,
}

/// The lines of a table: a type's name and its fields as they are written there.
type Rows = Vec<(&'static str, &'static str)>;

impl Table {
    pub(super) fn build() -> Self {
        let mut table = Self::default();
        table.join_stored(&rows(include_str!("fields.txt")));
        table.join_travelling(&rows(include_str!("meta.txt")));
        table.join_lists();
        table
    }

    /// The message of a type that only travels.
    pub(super) fn travelling(&self, name: &str) -> Option<&Message> {
        self.messages.get(*self.travelling.get(name)?)
    }

    fn join_stored(&mut self, rows: &Rows) {
        let by_name: HashMap<_, _> = rows.iter().copied().collect();
        for (name, row) in rows {
            let Some(place) = builtin_named(name).and_then(|node| place(&node)) else { continue };
            if self.messages.len() <= place {
                self.messages.resize_with(place + 1, Message::default);
            }
            self.messages[place] = join(row, builtin_object(place), &by_name);
        }
    }

    fn join_travelling(&mut self, rows: &Rows) {
        let first = self.messages.len();
        self.travelling =
            rows.iter().zip(first..).map(|((name, _), place)| (*name, place)).collect();
        for (_, row) in rows {
            let entries = row.split_whitespace().filter_map(|word| self.travelling_field(word));
            let message = Message::new(entries.collect());
            self.messages.push(message);
        }
    }

    /// `metadata=1*:ListMeta`
    fn travelling_field(&self, word: &'static str) -> Option<(u32, Entry)> {
        let (name, rest) = word.split_once('=')?;
        let (number, value) = rest.split_once(':')?;
        let item = value.strip_prefix('[').and_then(|value| value.strip_suffix(']'));
        let kind = self.travelling_kind(item.unwrap_or(value))?;
        let holds = if item.is_some() { Holding::List(kind) } else { Holding::One(kind) };
        Some(numbered(name, number, holds))
    }

    fn travelling_kind(&self, name: &str) -> Option<Kind> {
        Some(match name {
            "string" => Kind::Scalar(Scalar::String),
            "int32" => Kind::Scalar(Scalar::Int32),
            "int64" => Kind::Scalar(Scalar::Int64),
            "bool" => Kind::Scalar(Scalar::Bool),
            "texts" => Kind::Texts,
            _ => Kind::Message(match self.travelling.get(name) {
                Some(place) => *place,
                None => place(&builtin_named(name)?)?,
            }),
        })
    }

    /// Every kind with metadata has a list: `metadata = 1, items = 2`.
    fn join_lists(&mut self) {
        let Some(&list_meta) = self.travelling.get("ListMeta") else { return };
        for place in 0..list_meta {
            let metadata = Holding::One(Kind::Message(list_meta));
            let items = Holding::List(Kind::Message(place));
            let entries = [numbered("metadata", "1*", metadata), numbered("items", "2", items)];
            self.lists.insert(place, Message::new(entries.into()));
        }
    }
}

fn rows(text: &'static str) -> Rows {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').unwrap_or((line, ""))).collect()
}

/// The field of a number such as `3` or `3*`.
fn numbered(name: &'static str, number: &str, holds: Holding) -> (u32, Entry) {
    let keeps_zero = number.ends_with('*');
    let number = number.trim_end_matches('*').parse().unwrap_or(0);
    (number, Entry::Field(Field { name, keeps_zero, holds }))
}

/// The message that a line describes, as (a part of) that type.
fn join(
    row: &'static str,
    object: &'static Object,
    rows: &HashMap<&'static str, &'static str>,
) -> Message {
    let entries = row.split_whitespace().filter_map(|word| {
        let (name, rest) = word.split_once('=')?;
        if let Some(part) = name.strip_prefix('+') {
            return Some((rest.parse().ok()?, Entry::Part(join(rows.get(part)?, object, rows))));
        }
        let (number, union) = rest.split_once(':').unwrap_or((rest, ""));
        Some(numbered(name, number, holding(&object.field(name)?.node, union)))
    });
    Message::new(entries.collect())
}

fn holding(node: &Node, union: &str) -> Holding {
    match &node.shape {
        Shape::List(list) => Holding::List(one(&list.item, union)),
        Shape::Map(value) => Holding::Map(one(value, union)),
        _ => Holding::One(one(node, union)),
    }
}

fn one(node: &Node, union: &str) -> Kind {
    let schema = builtin_named("apiextensions.v1.JSONSchemaProps").and_then(|node| place(&node));
    match (&node.shape, union, schema) {
        (_, "Array", Some(schema)) => Kind::SchemaOrArray(schema),
        (_, "Bool", Some(schema)) => Kind::SchemaOrBool(schema),
        (_, "StringArray", Some(schema)) => Kind::SchemaOrTexts(schema),
        (Shape::Named(place), ..) => Kind::Message(*place),
        (Shape::Scalar(scalar), ..) => Kind::Scalar(*scalar),
        (Shape::List(_), ..) => Kind::Texts,
        _ => Kind::Json,
    }
}

/// The place of a built-in type.
pub(super) fn place(node: &Node) -> Option<usize> {
    match node.shape {
        Shape::Named(place) => Some(place),
        _ => None,
    }
}
