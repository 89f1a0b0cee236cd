//! What the numbers of a message mean: `fields.txt` joined with the built-in types, and `meta.txt`.
//!
//! The join happens once. A type that is a part of others in JSON (`VolumeSource`) becomes a part
//! of each of them here. Messages are named by their place: built-in types first, at the place that
//! [`crate::schema`] gives them, then the types that only travel, then lists of kinds.

use std::sync::LazyLock;

use super::join::{Table, place};
use super::layout::Message;
use crate::schema::{builtin_kind, builtin_named};

static TABLE: LazyLock<Table> = LazyLock::new(Table::build);

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
    static EMPTY: Message = Message::EMPTY;
    TABLE.messages.get(place).unwrap_or(&EMPTY)
}

#[cfg(test)]
mod tests {
    use super::super::layout::Entry;
    use super::{Message, builtin_named, message, place};

    fn names(message: &Message) -> Vec<&'static str> {
        let entries = message.entries().flat_map(|entry| match entry {
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
            let numbers = message.numbers();
            assert!(numbers.is_sorted_by(|one, next| one < next), "{message:?}");
        }
    }
}
