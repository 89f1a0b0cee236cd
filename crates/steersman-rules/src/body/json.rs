//! JSON into a document, in one pass with the schema beside it.
//!
//! In a typed kind a decoder does not look into what it does not know, so a field that is both
//! unknown and double is only unknown, and nothing below it or below raw JSON is looked at. A
//! custom resource is first read as plain JSON, where every double field counts.

use std::fmt;
use std::sync::LazyLock;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{FINDINGS_MAX, Finding, Segment, characters, clip};
use crate::schema::{ANY, List, ListKind, Node, Schema, Shape, structural_node as structural};

/// Reads a body, and tells what strict decoding would complain about. Unknown fields are
/// dropped, of fields that stand twice the last stays. What is no character becomes one that says so.
pub fn read(body: &[u8], schema: &Schema) -> serde_json::Result<(Value, Vec<Finding>)> {
    read_text(body, schema).or_else(|error| match characters::replaced(body) {
        Some(replaced) => read_text(&replaced, schema),
        None => Err(error),
    })
}

fn read_text(body: &[u8], schema: &Schema) -> serde_json::Result<(Value, Vec<Finding>)> {
    let root = schema.root();
    let node = &*root;
    let typed = matches!(node.shape, Shape::Named(_));
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = Read { node, typed, mute: false, found: &mut found }.deserialize(&mut reader)?;
    reader.end()?;
    if !typed {
        found.sort_by_key(|finding| match finding {
            Finding::Unknown(path) => (1, !path.starts_with("metadata."), path.clone()),
            _ => (0, false, String::new()),
        });
    }
    Ok((value, found))
}

/// Reads a document without a schema, and tells which fields stand twice in it.
pub fn plain(body: &[u8]) -> serde_json::Result<(Value, Vec<Finding>)> {
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let read = Read { node: &ANY, typed: false, mute: false, found: &mut found };
    let value = read.deserialize(&mut reader)?;
    reader.end()?;
    Ok((value, found))
}

/// Fields of the operations of a JSON patch that stand twice or mean nothing. The values that
/// they carry are raw, and not looked into.
pub fn operations(body: &[u8]) -> Vec<Finding> {
    static OPERATION: LazyLock<Node> = LazyLock::new(|| {
        let operation = serde_json::json!({"type": "object", "properties": {
            "op": {"type": "string"}, "from": {"type": "string"}, "path": {"type": "string"},
            "value": {"x-kubernetes-preserve-unknown-fields": true},
        }});
        Node::new(Shape::List(Box::new(List {
            item: structural(&operation),
            kind: ListKind::Atomic,
        })))
    });
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let read = Read { node: &OPERATION, typed: true, mute: false, found: &mut found };
    let _ = read.deserialize(&mut reader);
    found.into_iter().map(|finding| Finding::Operation(Box::new(finding))).collect()
}

/// Reads one value.
struct Read<'s, 'f> {
    node: &'s Node,
    /// Whether the whole document is of a typed kind.
    typed: bool,
    /// Whether nothing is reported here.
    mute: bool,
    found: &'f mut Vec<Finding>,
}

impl<'s> Read<'s, '_> {
    /// Remembers a finding of this object, unless it is among those since `begun`.
    fn report(&mut self, begun: usize, finding: Finding) {
        let full = self.found.len() >= FINDINGS_MAX;
        if !self.mute && !full && !self.found[begun..].contains(&finding) {
            self.found.push(finding);
        }
    }

    fn below<'f>(&'f mut self, node: &'s Node, mute: bool) -> Read<'s, 'f> {
        Read { node, typed: self.typed, mute: self.mute || mute, found: self.found }
    }

    /// Says of what was found since `before` that it lies below a key or index.
    fn placed(&mut self, before: usize, parent: &Segment<'_>) {
        for finding in &mut self.found[before..] {
            finding.below(parent);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Read<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Read<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let node = self.node;
        let raw = self.typed && matches!(node.shape, Shape::Raw | Shape::Any | Shape::Part(_));
        self.mute |= raw;
        let closed = node.is_closed();
        let begun = self.found.len();
        let mut map = Map::new();
        let mut dropped = false;
        while let Some(key) = access.next_key::<String>()? {
            let unknown = closed && node.field(&key).is_none();
            if unknown {
                dropped = true;
                self.report(begun, Finding::Unknown(clip(&key).to_owned()));
            }
            let before = self.found.len();
            let child = if unknown { &ANY } else { node.child(&key) };
            let value = access.next_value_seed(self.below(child, unknown && self.typed))?;
            self.placed(before, &Segment::Key(&key));
            let twice = map.contains_key(&key);
            if twice && !(unknown && self.typed) {
                self.report(begun, Finding::Duplicate(clip(&key).to_owned()));
            }
            map.insert(key, value);
        }
        if dropped {
            map.retain(|key, _| node.field(key).is_some());
        }
        Ok(Value::Object(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let item = self.node.item();
        let mut items = Vec::new();
        let mut before = self.found.len();
        while let Some(value) = access.next_element_seed(self.below(item, false))? {
            self.placed(before, &Segment::Index(items.len()));
            before = self.found.len();
            items.push(value);
        }
        Ok(Value::Array(items))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    /// `-0` comes as a float, and is a whole number all the same.
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        if value == 0.0 && value.is_sign_negative() {
            return Ok(Value::from(0));
        }
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::{plain, read};
    use crate::schema::Schema;
    use serde_json::{Value, json};

    fn findings(schema: &Schema, body: &str) -> (Value, Vec<String>) {
        let (value, found) = read(body.as_bytes(), schema).unwrap();
        (value, found.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn typed_kinds_are_found_wanting_in_the_order_of_the_document() {
        let schema = Schema::builtin("apps", "v1", "Deployment").unwrap();
        let body = r#"{"kind":"Deployment","spec":{"unknown":1,"dupe":{"a":1,"a":2},"dupe":2,
            "paused":true,"paused":false,"template":{"spec":{"containers":[{"name":"a"},
            {"nested":1,"image":"x","image":"y"}]}}}}"#;
        let (value, found) = findings(&schema, body);
        assert_eq!(
            found,
            [
                r#"unknown field "spec.unknown""#,
                r#"unknown field "spec.dupe""#,
                r#"duplicate field "spec.paused""#,
                r#"unknown field "spec.template.spec.containers[1].nested""#,
                r#"duplicate field "spec.template.spec.containers[1].image""#,
            ]
        );
        assert_eq!(value["spec"]["paused"], false);
        assert!(value["spec"].get("dupe").is_none());
    }

    #[test]
    fn custom_resources_tell_double_fields_first_and_then_unknown_ones_by_name() {
        let schema = Schema::structural(&json!({
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
        }));
        let body = r#"{"spec":{"z":1,"z":2,"a":"1","a":"2","b":{"c":1,"c":2}},"metadata":{"x":1}}"#;
        assert_eq!(
            findings(&schema, body).1,
            [
                r#"duplicate field "spec.z""#,
                r#"duplicate field "spec.a""#,
                r#"duplicate field "spec.b.c""#,
                r#"unknown field "metadata.x""#,
                r#"unknown field "spec.b""#,
                r#"unknown field "spec.z""#,
            ]
        );
    }

    #[test]
    fn names_differ_by_case_and_raw_json_is_not_looked_into() {
        let schema = Schema::builtin("apps", "v1", "ControllerRevision").unwrap();
        let (_, found) = findings(&schema, r#"{"Data":1,"data":{"a":1,"a":2},"revision":1}"#);
        assert_eq!(found, [r#"unknown field "Data""#]);
    }

    #[test]
    fn findings_and_their_paths_are_bounded() {
        let schema = Schema::builtin("", "v1", "ConfigMap").unwrap();
        let many: Vec<String> = (0..1000).map(|n| format!("\"f{n}\":1")).collect();
        assert_eq!(findings(&schema, &format!("{{{}}}", many.join(","))).1.len(), 100);
        let long = format!(r#"[{{"{}":{{"a":1,"a":2}}}}]"#, "k".repeat(100_000));
        let (_, found) = plain(long.as_bytes()).unwrap();
        assert!(found[0].to_string().len() < 400, "{found:?}");
        assert!(found[0].to_string().starts_with("duplicate field \"[0].kkk"));
    }

    #[test]
    fn a_negative_zero_is_zero_and_broken_json_is_an_error() {
        let schema = Schema::untyped();
        assert_eq!(findings(&schema, r#"{"a":-0,"b":-1.5}"#).0, json!({"a": 0, "b": -1.5}));
        for body in ["", "{", "{} x", "{\"a\":1e400}", "{\"a\":NaN}", "\u{feff}{}"] {
            assert!(read(body.as_bytes(), &schema).is_err(), "{body}");
        }
    }

    #[test]
    fn what_is_no_character_is_replaced_where_there_may_be_text() {
        let schema = Schema::untyped();
        let (value, found) = read(b"{\"a\xff\":\"\xe2\x82\",\"a\xfe\":1}", &schema).unwrap();
        assert_eq!((value, found.len()), (json!({"a\u{fffd}": 1}), 1));
        for outside in [&b"{\"a\":1}\xff"[..], b"\xff{}", b"{\"a\":\"\xff\""] {
            assert!(read(outside, &schema).is_err());
        }
    }
}
