//! What Kubernetes' documents say of types and fields, where it does not follow from the table of
//! types: unions, and defaults that nobody fills in.

use std::collections::HashMap;

use serde_json::{Map, Value};

const TEXT: &str = include_str!("facts.txt");

/// What is said, by type or `TYPE#FIELD`.
pub(super) struct Facts(HashMap<&'static str, Vec<Fact>>);

/// One key of a schema.
pub(super) struct Fact {
    pub(super) key: &'static str,
    /// What stands there; nothing, if the key is absent.
    pub(super) value: Option<Value>,
}

impl Facts {
    pub(super) fn read() -> Self {
        let mut facts = HashMap::<_, Vec<Fact>>::new();
        for line in TEXT.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut words = line.splitn(3, ' ');
            if let (Some(place), Some(key)) = (words.next(), words.next()) {
                let value = words.next().and_then(|json| serde_json::from_str(json).ok());
                facts.entry(place).or_default().push(Fact { key, value });
            }
        }
        Self(facts)
    }

    /// What is said of a type, or of a field as `TYPE#FIELD`.
    pub(super) fn of(&self, place: &str) -> &[Fact] {
        self.0.get(place).map_or(&[], Vec::as_slice)
    }

    /// Everything of which something is said.
    #[cfg(test)]
    pub(super) fn places(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }
}

impl Fact {
    /// Writes it into a schema.
    pub(super) fn put(&self, schema: &mut Map<String, Value>) {
        match &self.value {
            Some(value) => drop(schema.insert(self.key.to_owned(), value.clone())),
            None => drop(schema.remove(self.key)),
        }
    }
}
