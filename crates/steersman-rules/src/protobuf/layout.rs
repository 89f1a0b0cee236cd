//! How a type is written: which numbers its fields have, and what each of them holds.
//!
//! Reading a message is a search by number and writing one a search by name.

use crate::schema::Scalar;

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

impl Message {
    /// A type that has no fields.
    pub(super) const EMPTY: Self = Self { entries: Vec::new(), slots: Vec::new() };

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

    /// The numbers that it has.
    #[cfg(test)]
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.entries.iter().map(|(number, _)| *number)
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
