//! What the numbers of a message mean: `fields.txt` joined with the built-in types.
//!
//! The join happens once, so that reading a message is a search by number. A type that is a part
//! of others in JSON (`VolumeSource`) becomes a part of each of them here.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::schema::{Node, Object, Scalar, Shape, builtin_kind, builtin_named, builtin_object};

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(include_str!("fields.txt")));

/// A type as protobuf writes it.
#[derive(Debug, Default)]
pub(super) struct Message {
    /// By number, sorted.
    entries: Vec<(u32, Entry)>,
}

/// What a number stands for.
#[derive(Debug)]
pub(super) enum Entry {
    Field(Field),
    /// A message whose fields JSON shows in the message around it.
    Part(Message),
}

/// A field of a document.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    /// Whether its zero is a value; elsewhere a zero means "not set".
    pub(super) keeps_zero: bool,
    pub(super) holds: Holding,
}

/// How many values a field has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Holding {
    One(Kind),
    List(Kind),
    Map(Kind),
}

/// How one value is written. Messages are named by their type's place among the built-in types.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Scalar(Scalar),
    Message(usize),
    /// JSON text in a message of its own.
    Json,
    /// A list of texts in a message of its own.
    Texts,
    /// A JSONSchemaProps, or a list of them.
    SchemaOrArray(usize),
    /// A JSONSchemaProps, or whether anything is allowed.
    SchemaOrBool(usize),
    /// A JSONSchemaProps, or the names of properties.
    SchemaOrTexts(usize),
}

/// The message of a kind. Options of deletions are registered in every group and version.
pub(super) fn kind(api_version: &str, kind: &str) -> Option<&'static Message> {
    let node = match kind {
        "DeleteOptions" => builtin_named("meta.v1.DeleteOptions"),
        _ => builtin_kind(api_version, kind),
    };
    node.and_then(|node| place(&node)).and_then(message)
}

/// The message of a built-in type.
pub(super) fn message(place: usize) -> Option<&'static Message> {
    TABLE.messages.get(&place)
}

impl Message {
    pub(super) fn entry(&self, number: u32) -> Option<&Entry> {
        let found = self.entries.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(&self.entries[found].1)
    }
}

struct Table {
    /// By the type's place among the built-in types.
    messages: HashMap<usize, Message>,
}

/// The lines of the table: a type's name and its fields as they are written there.
type Rows = HashMap<&'static str, &'static str>;

impl Table {
    fn parse(text: &'static str) -> Self {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let rows: Rows = lines.map(|line| line.split_once(' ').unwrap_or((line, ""))).collect();
        let place_of = |name: &str| builtin_named(name).and_then(|node| place(&node));
        let messages = rows.iter().filter_map(|(name, row)| {
            let place = place_of(name)?;
            Some((place, join(row, builtin_object(place), &rows)))
        });
        Self { messages: messages.collect() }
    }
}

/// The message that a line describes, as (a part of) that type.
fn join(row: &'static str, object: &'static Object, rows: &Rows) -> Message {
    let entries = row.split_whitespace().filter_map(|word| {
        let (name, rest) = word.split_once('=')?;
        if let Some(part) = name.strip_prefix('+') {
            return Some((rest.parse().ok()?, Entry::Part(join(rows.get(part)?, object, rows))));
        }
        let (number, union) = rest.split_once(':').unwrap_or((rest, ""));
        let keeps_zero = number.ends_with('*');
        let number = number.trim_end_matches('*').parse().ok()?;
        let holds = holding(&object.field(name)?.node, union);
        Some((number, Entry::Field(Field { name, keeps_zero, holds })))
    });
    let mut message = Message { entries: entries.collect() };
    message.entries.sort_by_key(|(number, _)| *number);
    message
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

fn place(node: &Node) -> Option<usize> {
    match node.shape {
        Shape::Named(place) => Some(place),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Message, builtin_named, message, place};

    fn names(message: &Message) -> Vec<&'static str> {
        let entries = message.entries.iter().flat_map(|(_, entry)| match entry {
            Entry::Field(field) => vec![field.name],
            Entry::Part(part) => names(part),
        });
        entries.collect()
    }

    /// Every field but the type's own name, which is in the envelope.
    #[test]
    fn every_field_of_every_builtin_type_has_a_number() {
        let mut missing = Vec::new();
        for block in include_str!("../schema/builtin.txt").split("\ntype ").skip(1) {
            let mut words = block.lines().map(|line| line.split_whitespace().next().unwrap_or(""));
            let name = words.next().unwrap();
            let known = builtin_named(name).and_then(|node| message(place(&node)?)).map(names);
            let is_kind = block.contains("\n  metadata meta.v1.ObjectMeta");
            let options = name == "meta.v1.DeleteOptions";
            for field in words.filter(|field| !field.is_empty()) {
                let of_envelope = ["apiVersion", "kind"].contains(&field) && (is_kind || options);
                if !of_envelope && !known.as_ref().is_some_and(|known| known.contains(&field)) {
                    missing.push(format!("{name}.{field}"));
                }
            }
        }
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn no_number_is_used_twice() {
        for message in super::TABLE.messages.values() {
            let distinct = message.entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
            assert!(distinct, "{message:?}");
        }
    }
}
