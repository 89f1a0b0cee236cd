//! What the numbers of a message mean: `fields.txt` joined with the built-in types, and `meta.txt`.
//!
//! The join happens once, so that reading a message is a search by number and writing one a search
//! by name. A type that is a part of others in JSON (`VolumeSource`) becomes a part of each of them
//! here. Messages are named by their place: built-in types first, at the place that
//! [`crate::schema`] gives them, then the types that only travel, then lists of kinds.

use std::sync::LazyLock;

use super::join::{Table, place};
use crate::schema::{Scalar, builtin_kind, builtin_named};

static TABLE: LazyLock<Table> = LazyLock::new(Table::build);

/// A type as protobuf writes it.
#[derive(Debug, Default)]
pub(super) struct Message {
    /// By number, sorted.
    entries: Vec<(u32, Entry)>,
    /// By name, sorted: the fields of the message and of its parts.
    slots: Vec<Slot>,
}

/// What a number stands for.
#[derive(Debug)]
pub(super) enum Entry {
    Field(Field),
    /// A message whose fields JSON shows in the message around it.
    Part(Message),
}

/// A field of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    /// Whether its zero is a value; elsewhere a zero means "not set".
    pub(super) keeps_zero: bool,
    pub(super) holds: Holding,
}

/// Where a field is written.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) name: &'static str,
    /// The parts that the field is in, the outermost first.
    pub(super) parts: Vec<u32>,
    pub(super) number: u32,
    pub(super) holds: Holding,
}

/// How many values a field has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Holding {
    One(Kind),
    List(Kind),
    Map(Kind),
}

/// How one value is written. Messages are named by their place in the table.
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

/// The message of a kind, or of a list of a kind. Options are registered in every group and
/// version.
pub(super) fn kind(api_version: &str, kind: &str) -> Option<&'static Message> {
    if let Some(node) = builtin_kind(api_version, kind) {
        return Some(message(place(&node)?));
    }
    if let Some(item) = kind.strip_suffix("List").and_then(|item| builtin_kind(api_version, item)) {
        return TABLE.lists.get(&place(&item)?);
    }
    if kind == "DeleteOptions" {
        return Some(message(place(&builtin_named("meta.v1.DeleteOptions")?)?));
    }
    let is_ours = matches!(api_version, "v1" | "meta.k8s.io/v1") || kind.ends_with("Options");
    is_ours.then(|| TABLE.travelling(kind)).flatten()
}

/// The message that shows only the metadata of an object, whatever its kind.
pub(super) fn partial_object_metadata() -> Option<&'static Message> {
    TABLE.travelling("PartialObjectMetadata")
}

/// The message at a place.
pub(super) fn message(place: usize) -> &'static Message {
    static EMPTY: Message = Message { entries: Vec::new(), slots: Vec::new() };
    TABLE.messages.get(place).unwrap_or(&EMPTY)
}

impl Message {
    pub(super) fn new(mut entries: Vec<(u32, Entry)>) -> Self {
        entries.sort_by_key(|(number, _)| *number);
        let mut slots = Vec::new();
        collect(&entries, &mut Vec::new(), &mut slots);
        slots.sort_by_key(|slot| slot.name);
        Self { entries, slots }
    }

    /// What its numbers stand for, in their order.
    #[cfg(test)]
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// Where its fields are written.
    #[cfg(test)]
    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter()
    }

    /// Whether nothing but metadata is written.
    pub(super) fn is_only_metadata(&self) -> bool {
        matches!(self.slots.as_slice(), [Slot { name: "metadata", .. }])
    }

    /// What a number stands for.
    pub(super) fn entry(&self, number: u32) -> Option<&Entry> {
        let found = self.entries.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(&self.entries[found].1)
    }

    /// Where the field of a name is written. Documents are sorted by name as the slots are, so
    /// that the search begins `behind` the field before.
    pub(super) fn slot(&self, name: &[u8], behind: &mut usize) -> Option<&Slot> {
        let is_here = |slot: &Slot| slot.name.as_bytes() == name;
        let near = self.slots.iter().skip(*behind).take(NEAR).position(is_here);
        let found = match near {
            Some(steps) => *behind + steps,
            None => self.slots.binary_search_by(|slot| slot.name.as_bytes().cmp(name)).ok()?,
        };
        *behind = found + 1;
        Some(&self.slots[found])
    }
}

/// How many slots are looked at one by one before searching all.
const NEAR: usize = 4;

fn collect(entries: &[(u32, Entry)], parts: &mut Vec<u32>, slots: &mut Vec<Slot>) {
    for (number, entry) in entries {
        match entry {
            Entry::Field(Field { name, holds, .. }) => {
                slots.push(Slot { name, parts: parts.clone(), number: *number, holds: *holds });
            }
            Entry::Part(part) => {
                parts.push(*number);
                collect(&part.entries, parts, slots);
                parts.pop();
            }
        }
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
            let known = builtin_named(name)
                .and_then(|node| place(&node))
                .map(|place| names(message(place)));
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
        for message in super::TABLE.messages.iter().chain(super::TABLE.lists.values()) {
            let distinct = message.entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
            assert!(distinct, "{message:?}");
        }
    }
}
