//! Where two documents differ, leaf by leaf.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A place where two documents differ.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// Dotted, with `[]` for any item of a list.
    pub(crate) place: String,
    pub(crate) theirs: String,
    pub(crate) ours: String,
}

/// The fields by which items of a list may be told apart.
const KEYS: [&str; 5] = ["name", "groupVersion", "resource", "subresource", "version"];

/// Every place where they differ. With `by_name`, items of lists that have names are compared
/// by name wherever they stand.
pub(crate) fn differences(theirs: &Value, ours: &Value, by_name: bool) -> Vec<Leaf> {
    let mut walk = Walk { by_name, found: Vec::new() };
    walk.value("", Some(theirs), Some(ours));
    walk.found
}

struct Walk {
    by_name: bool,
    found: Vec<Leaf>,
}

impl Walk {
    fn value(&mut self, place: &str, theirs: Option<&Value>, ours: Option<&Value>) {
        match (theirs, ours) {
            (Some(Value::Object(theirs)), Some(Value::Object(ours))) => {
                let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
                for name in names {
                    let below = join(place, name);
                    self.value(&below, theirs.get(name), ours.get(name));
                }
            }
            (Some(Value::Array(theirs)), Some(Value::Array(ours))) => {
                self.list(place, theirs, ours);
            }
            (theirs, ours) if theirs == ours => {}
            (theirs, ours) => {
                let shown = |value: Option<&Value>| value.map_or("absent".into(), Value::to_string);
                let theirs = shown(theirs);
                let ours = shown(ours);
                self.found.push(Leaf { place: place.to_owned(), theirs, ours });
            }
        }
    }

    fn list(&mut self, place: &str, theirs: &[Value], ours: &[Value]) {
        let below = format!("{place}[]");
        if self.by_name
            && let (Some(theirs), Some(ours)) = (named(theirs), named(ours))
        {
            let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
            for name in names {
                let below = format!("{place}[{name}]");
                self.value(&below, theirs.get(name).copied(), ours.get(name).copied());
            }
            return;
        }
        if theirs.len() != ours.len() {
            let shown =
                |items: &[Value]| format!("{} items: {}", items.len(), Value::from(items.to_vec()));
            self.found.push(Leaf { place: below, theirs: shown(theirs), ours: shown(ours) });
            return;
        }
        for (theirs, ours) in theirs.iter().zip(ours) {
            self.value(&below, Some(theirs), Some(ours));
        }
    }
}

fn join(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

/// The items of a list by what they are called; nothing if that does not tell them apart.
fn named(items: &[Value]) -> Option<BTreeMap<String, &Value>> {
    let mut named = BTreeMap::new();
    for item in items {
        let parts = KEYS.iter().filter_map(|key| item.get(key));
        let parts: Vec<&str> = parts.filter_map(Value::as_str).collect();
        let metadata = item.pointer("/metadata/name").and_then(Value::as_str);
        let parts: Vec<&str> = parts.into_iter().chain(metadata).collect();
        if parts.is_empty() || named.insert(parts.join(" "), item).is_some() {
            return None;
        }
    }
    Some(named)
}

/// The first object whose common keys stand in another order, with both orders.
pub(crate) fn order(theirs: &[u8], ours: &[u8]) -> Option<(String, String)> {
    let theirs: Keys = serde_json::from_slice(theirs).ok()?;
    let ours: Keys = serde_json::from_slice(ours).ok()?;
    first_disorder(&theirs, &ours)
}

/// The keys of a document in the order in which they stand.
#[derive(Debug)]
enum Keys {
    Object(Vec<(String, Keys)>),
    List(Vec<Keys>),
    Leaf,
}

fn first_disorder(theirs: &Keys, ours: &Keys) -> Option<(String, String)> {
    match (theirs, ours) {
        (Keys::Object(theirs), Keys::Object(ours)) => {
            let common = |of: &[(String, Keys)], other: &[(String, Keys)]| -> Vec<String> {
                let names = of.iter().map(|(name, _)| name);
                names.filter(|name| other.iter().any(|(o, _)| o == *name)).cloned().collect()
            };
            let left = common(theirs, ours);
            let right = common(ours, theirs);
            if left != right {
                return Some((left.join(" "), right.join(" ")));
            }
            theirs.iter().find_map(|(name, theirs)| {
                let (_, ours) = ours.iter().find(|(other, _)| other == name)?;
                first_disorder(theirs, ours)
            })
        }
        (Keys::List(theirs), Keys::List(ours)) => {
            theirs.iter().zip(ours).find_map(|(theirs, ours)| first_disorder(theirs, ours))
        }
        _ => None,
    }
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = Keys;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
        let mut keys = Vec::new();
        while let Some(entry) = map.next_entry()? {
            keys.push(entry);
        }
        Ok(Keys::Object(keys))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Keys, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Keys::List(items))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Keys, E> {
        Ok(Keys::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Keys, E> {
        Ok(Keys::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Keys, E> {
        Ok(Keys::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Keys, E> {
        Ok(Keys::Leaf)
    }

    fn visit_str<E>(self, _: &str) -> Result<Keys, E> {
        Ok(Keys::Leaf)
    }

    fn visit_unit<E>(self) -> Result<Keys, E> {
        Ok(Keys::Leaf)
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<Keys, D::Error> {
        IgnoredAny::deserialize(value).map(|_| Keys::Leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn leaf(place: &str, theirs: &str, ours: &str) -> Leaf {
        Leaf { place: place.into(), theirs: theirs.into(), ours: ours.into() }
    }

    #[test]
    fn every_leaf_that_differs_is_found() {
        let theirs = json!({"a": {"b": 1, "c": [1, 2]}, "d": "x", "same": [1]});
        let ours = json!({"a": {"b": 2, "c": [1, 3]}, "e": "y", "same": [1]});
        assert_eq!(
            differences(&theirs, &ours, false),
            [
                leaf("a.b", "1", "2"),
                leaf("a.c[]", "2", "3"),
                leaf("d", "\"x\"", "absent"),
                leaf("e", "absent", "\"y\""),
            ]
        );
    }

    #[test]
    fn a_list_of_another_length_is_one_difference() {
        let found = differences(&json!({"a": [1, 2]}), &json!({"a": [1]}), false);
        assert_eq!(found, [leaf("a[]", "2 items: [1,2]", "1 items: [1]")]);
    }

    #[test]
    fn items_with_names_are_compared_by_name() {
        let theirs = json!([{"name": "a", "v": 1}, {"name": "b", "v": 2}]);
        let ours = json!([{"name": "b", "v": 3}, {"name": "a", "v": 1}]);
        assert_eq!(differences(&theirs, &ours, true), [leaf("[b].v", "2", "3")]);
    }

    #[test]
    fn the_order_of_keys_is_told_once() {
        let theirs = br#"{"a":1,"x":{"k":1,"v":[null,1.5]}}"#;
        assert_eq!(order(theirs, br#"{"a":1,"x":{"k":1,"w":0,"v":[]}}"#), None);
        let found = order(theirs, br#"{"a":1,"x":{"v":[],"k":1}}"#);
        assert_eq!(found, Some(("k v".into(), "v k".into())));
    }
}
