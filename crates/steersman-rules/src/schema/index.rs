//! Where the fields of a built-in struct are, by their names.
//!
//! A write looks up each field of its object a dozen times, in structs with some forty of them. A
//! hash of the ends of a name leads to its field, so that one name is compared and not six. Custom
//! schemas are searched instead: whoever writes one could choose names that all have the same hash.

use super::node::{Field, Unset};

/// Where nothing is.
const NONE: u8 = u8::MAX;

/// Where the fields of a struct are.
#[derive(Debug)]
pub(super) struct Index {
    /// The places of fields among all, each at the hash of its name or soon after it. A power of two
    /// of them, of which at most half are taken.
    places: Box<[u8]>,
    written: Box<[u8]>,
    implied: Box<[u8]>,
}

impl Index {
    /// The index of these fields, of which no struct has more than a hundred.
    pub(super) fn of(fields: &[Field]) -> Self {
        assert!(fields.len() < usize::from(NONE), "a built-in struct has too many fields");
        let mut places = vec![NONE; (fields.len() * 2).next_power_of_two()].into_boxed_slice();
        for (place, field) in (0..).zip(fields) {
            let mut at = hash(&field.name) & (places.len() - 1);
            while places[at] != NONE {
                at = (at + 1) & (places.len() - 1);
            }
            places[at] = place;
        }
        let those = |is_one: fn(&Field) -> bool| -> Box<[u8]> {
            (0..).zip(fields).filter(|(_, field)| is_one(field)).map(|(place, _)| place).collect()
        };
        let written = those(|field| matches!(field.unset, Unset::Zero | Unset::Null));
        Self { places, written, implied: those(Field::is_implied) }
    }

    /// The place of the field of that name.
    pub(super) fn find(&self, fields: &[Field], name: &str) -> Option<usize> {
        let mut at = hash(name) & (self.places.len() - 1);
        loop {
            let place = usize::from(*self.places.get(at).filter(|place| **place != NONE)?);
            if fields[place].name == name {
                return Some(place);
            }
            at = (at + 1) & (self.places.len() - 1);
        }
    }

    /// The places of the fields that a document has although nothing is set in them.
    pub(super) fn written(&self) -> &[u8] {
        &self.written
    }

    /// The places of the fields that exist in every value, written or not.
    pub(super) fn implied(&self) -> &[u8] {
        &self.implied
    }
}

/// Few names agree in their length and in the eight bytes at either end.
fn hash(name: &str) -> usize {
    let bytes = name.as_bytes();
    let (begin, end) = match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(begin), Some(end)) => (u64::from_le_bytes(*begin), u64::from_le_bytes(*end)),
        _ => (bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)), 0),
    };
    let mixed = begin ^ end.rotate_left(25) ^ bytes.len() as u64;
    // The upper bits of a product depend on all of its factors' bits.
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
}

#[cfg(test)]
mod tests {
    use super::super::builtin;
    use super::super::node::{Field, Object, Unset};

    /// Every struct of the table.
    fn structs() -> impl Iterator<Item = &'static Object> {
        builtin::types().into_values().map(builtin::object)
    }

    #[test]
    fn every_field_of_every_struct_is_found_and_no_other() {
        for object in structs() {
            let has = |name: &str| object.fields.iter().any(|field| field.name == name);
            for field in &object.fields {
                let name = &field.name;
                let found = object.field(name).map(|found| &found.name);
                assert_eq!(found, Some(name));
                let others = [
                    name.to_uppercase(),
                    format!("{name}x"),
                    format!("x{name}"),
                    name[1..].to_owned(),
                    name[..name.len() - 1].to_owned(),
                ];
                for other in others.iter().filter(|other| !has(other)) {
                    assert!(object.field(other).is_none(), "{other:?} beside {name:?}");
                }
            }
            for other in
                ["", "\u{e9}", "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}", "a", "12345678", "123456789"]
            {
                assert!(object.field(other).is_none(), "{other:?}");
            }
        }
    }

    #[test]
    fn what_is_written_and_what_is_implied_is_known_of_every_struct() {
        let names = |fields: Vec<&Field>| -> Vec<String> {
            fields.into_iter().map(|field| field.name.to_string()).collect()
        };
        for object in structs() {
            let all = object.fields.iter();
            let written = all.clone().filter(|it| matches!(it.unset, Unset::Zero | Unset::Null));
            assert_eq!(names(object.written().collect()), names(written.collect()));
            let implied = all.filter(|field| field.is_implied());
            assert_eq!(names(object.implied().collect()), names(implied.collect()));
        }
        assert!(structs().any(|object| object.written().next().is_some()));
        assert!(structs().any(|object| object.implied().next().is_some()));
    }

    #[test]
    fn few_names_are_compared_until_a_field_is_found() {
        let mut found = 0;
        let mut compared = 0;
        for object in structs() {
            let index = object.index.as_ref().unwrap();
            for (place, field) in object.fields.iter().enumerate() {
                let begin = super::hash(&field.name);
                let mask = index.places.len() - 1;
                let at = index.places.iter().position(|it| usize::from(*it) == place).unwrap();
                let steps = (at.wrapping_sub(begin) & mask) + 1;
                // Most for a field of JSONSchemaProps, many of which begin with `x-kubernetes-`.
                assert!(steps <= 7, "{} is found after {steps} steps", field.name);
                found += 1;
                compared += steps;
            }
        }
        assert!(compared * 4 <= found * 5, "{compared} names compared for {found}");
    }
}
