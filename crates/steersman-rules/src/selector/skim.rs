//! Reads a few paths out of a JSON document without building the rest of it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// The document reduced to these dotted paths; `None` if it is not JSON.
pub(super) fn skim(document: &[u8], paths: &[&str]) -> Option<Value> {
    let paths: Vec<&str> = paths.to_vec();
    let mut reader = serde_json::Deserializer::from_slice(document);
    Skim(paths).deserialize(&mut reader).ok()
}

/// The paths below the current object.
struct Skim<'p>(Vec<&'p str>);

impl<'p> Skim<'p> {
    /// What of the paths lies below a key; `None` when a path ends with it and wants it whole.
    fn below(&self, key: &str) -> Option<Vec<&'p str>> {
        let tails = self.0.iter().filter_map(|path| match path.split_once('.') {
            Some((head, tail)) => (head == key).then_some(Some(tail)),
            None => (*path == key).then_some(None),
        });
        tails.collect()
    }
}

impl<'de> DeserializeSeed<'de> for Skim<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Skim<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut found = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            match self.below(&key) {
                None => {
                    found.insert(key, map.next_value()?);
                }
                Some(paths) if paths.is_empty() => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some(paths) => {
                    found.insert(key, map.next_value_seed(Skim(paths))?);
                }
            }
        }
        Ok(Value::Object(found))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E>(self, _: &str) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::skim;
    use serde_json::json;

    #[test]
    fn only_the_named_paths_are_read() {
        let document = json!({
            "metadata": {"name": "a"}, "type": "Opaque",
            "spec": {"nodeName": "n", "containers": [{"x": 1}]}, "status": null,
        });
        let skimmed =
            skim(document.to_string().as_bytes(), &["spec.nodeName", "type", "status.phase"]);
        let expected = json!({"spec": {"nodeName": "n"}, "type": "Opaque", "status": null});
        assert_eq!(skimmed, Some(expected));
    }
}
