//! Random schemas, documents that fit them, and requests made with those.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::apply::{Apply, ApplyError, Sole, Track, apply, check_configuration, track};
use crate::schema::Schema;

pub(super) const API_VERSION: &str = "example.com/v1";

/// What documents may contain besides plain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    Plain,
    Nulls,
    /// Lists may name the same item twice.
    Duplicates,
}

/// One request.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Apply { manager: &'static str, force: bool, spec: Value },
    Update { manager: &'static str, spec: Value },
}

/// A custom resource and the requests made on it.
#[derive(Clone, Debug)]
pub(super) struct Custom {
    pub(super) schema: Schema,
    pub(super) live: Option<Value>,
    pub(super) now: &'static str,
}

impl Custom {
    pub(super) fn new(spec: &Value) -> Self {
        let schema = Schema::structural(&json!({"type": "object", "properties": {"spec": spec}}));
        Self { schema, live: None, now: super::NOON }
    }

    pub(super) fn send(&mut self, request: &Request) -> Result<(), ApplyError> {
        match request {
            Request::Apply { manager, force, spec } => {
                let applied = custom(spec);
                check_configuration(&self.schema, API_VERSION, &applied)?;
                self.live = Some(apply(Apply {
                    live: self.live.as_ref(),
                    applied: &applied,
                    manager,
                    force: *force,
                    subresource: "",
                    api_version: API_VERSION,
                    now: self.now,
                    schema: &self.schema,
                    versions: &Sole,
                    resets: &[],
                })?);
            }
            Request::Update { manager, spec } => {
                let mut new = custom(spec);
                if let Some(live) = &self.live {
                    new["metadata"] = live["metadata"].clone();
                }
                track(Track {
                    live: self.live.as_ref(),
                    new: &mut new,
                    manager,
                    subresource: "",
                    api_version: API_VERSION,
                    now: self.now,
                    schema: &self.schema,
                    versions: &Sole,
                    resets: &[],
                });
                self.live = Some(new);
            }
        }
        Ok(())
    }

    pub(super) fn apply(&mut self, manager: &'static str, spec: &Value) -> Result<(), ApplyError> {
        self.send(&Request::Apply { manager, force: false, spec: spec.clone() })
    }

    pub(super) fn force(&mut self, manager: &'static str, spec: &Value) -> Result<(), ApplyError> {
        self.send(&Request::Apply { manager, force: true, spec: spec.clone() })
    }
}

pub(super) fn custom(spec: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "Thing",
        "metadata": {"name": "a", "namespace": "default", "uid": "1"}, "spec": spec,
    })
}

/// The schema of a spec: an object whose fields are anything that a schema can say.
pub(super) fn schema() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        3 => Just(json!({"type": "string"})),
        2 => Just(json!({"type": "integer"})),
        1 => Just(json!({"type": "boolean"})),
        1 => Just(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        1 => Just(json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"})),
        1 => Just(json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "atomic"})),
    ];
    let inner = leaf.prop_recursive(3, 24, 4, |inner| {
        let fields = || prop::collection::btree_map("[a-d]", inner.clone(), 1..4);
        prop_oneof![
            2 => (fields(), prop::bool::weighted(0.2)).prop_map(|(f, atomic)| object(f, atomic)),
            1 => inner.clone().prop_map(|value| json!({"type": "object", "additionalProperties": value})),
            2 => (fields(), 0..3_u8).prop_map(|(f, keys)| keyed(f, keys)),
        ]
    });
    prop::collection::btree_map("[a-e]", inner, 1..5).prop_map(|f| object(f, false)).boxed()
}

fn object(fields: std::collections::BTreeMap<String, Value>, atomic: bool) -> Value {
    let mut schema =
        json!({"type": "object", "properties": Value::Object(fields.into_iter().collect())});
    if atomic {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    schema
}

/// A list of objects: with one key, with two, or with a second that has a default.
fn keyed(fields: std::collections::BTreeMap<String, Value>, keys: u8) -> Value {
    let mut item = object(fields, false);
    item["properties"]["k"] = json!({"type": "string"});
    let mut names = vec!["k"];
    if keys > 0 {
        names.push("l");
        item["properties"]["l"] = json!({"type": "string"});
    }
    if keys > 1 {
        item["properties"]["l"]["default"] = json!("x");
    }
    json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": names})
}

/// A document that fits a schema.
pub(super) fn document(schema: &Value, flavour: Flavour) -> BoxedStrategy<Value> {
    let value = match schema["type"].as_str() {
        Some("string") => "[xyz]".prop_map(Value::from).boxed(),
        Some("integer") => (0..3).prop_map(Value::from).boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("array") => list(schema, flavour),
        Some("object") if schema["additionalProperties"].is_object() => {
            let values = document(&schema["additionalProperties"], flavour);
            let map = prop::collection::btree_map("[p-r]", values, 0..3);
            map.prop_map(|map| Value::Object(map.into_iter().collect())).boxed()
        }
        Some("object") if schema["properties"].is_object() => fields(schema, flavour, &[]),
        _ => anything(),
    };
    if flavour == Flavour::Nulls {
        return prop_oneof![8 => value, 1 => Just(Value::Null)].boxed();
    }
    value
}

fn fields(schema: &Value, flavour: Flavour, always: &[&str]) -> BoxedStrategy<Value> {
    let mut all = Just(Map::new()).boxed();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let value = if always.contains(&name.as_str()) {
            document(field, Flavour::Plain).prop_map(Some).boxed()
        } else {
            prop::option::weighted(0.6, document(field, flavour)).boxed()
        };
        let name = name.clone();
        all = (all, value)
            .prop_map(move |(mut map, value)| {
                map.extend(value.map(|value| (name.clone(), value)));
                map
            })
            .boxed();
    }
    all.prop_map(Value::Object).boxed()
}

fn list(schema: &Value, flavour: Flavour) -> BoxedStrategy<Value> {
    let kind = schema["x-kubernetes-list-type"].as_str().unwrap_or_default();
    let keys: Vec<String> = schema["x-kubernetes-list-map-keys"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|key| key.as_str().unwrap().to_owned())
        .collect();
    let item = if kind == "map" {
        fields(&schema["items"], flavour, &["k"])
    } else {
        let flavour = if flavour == Flavour::Nulls { Flavour::Plain } else { flavour };
        document(&schema["items"], flavour)
    };
    let unique = kind != "atomic" && flavour != Flavour::Duplicates;
    let default = schema["items"]["properties"]["l"]["default"].clone();
    let key = move |item: &Value| -> String {
        if keys.is_empty() {
            return item.to_string();
        }
        keys.iter()
            .map(|key| {
                item.get(key)
                    .filter(|v| !v.is_null())
                    .unwrap_or(if key == "l" { &default } else { &Value::Null })
                    .to_string()
            })
            .collect()
    };
    let items = prop::collection::vec(item, 0..4);
    items
        .prop_map(move |items| {
            let mut kept: Vec<Value> = Vec::new();
            for item in items {
                if !unique || !kept.iter().any(|known| key(known) == key(&item)) {
                    kept.push(item);
                }
            }
            Value::Array(kept)
        })
        .boxed()
}

/// Values without a schema.
fn anything() -> BoxedStrategy<Value> {
    let leaf = prop_oneof!["[xyz]".prop_map(Value::from), (0..3).prop_map(Value::from)];
    let inner = leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map("[p-r]", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[p-r]", inner, 0..3)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
        .boxed()
}

const MANAGERS: [&str; 3] = ["ann", "bob", "cid"];

/// Requests of several managers.
pub(super) fn requests(schema: &Value) -> BoxedStrategy<Vec<Request>> {
    let managers = || prop::sample::select(&MANAGERS[..]);
    let applied = prop_oneof![
        3 => document(schema, Flavour::Plain),
        1 => document(schema, Flavour::Nulls),
    ];
    let applied = applied.prop_map(|spec| if spec.is_null() { json!({}) } else { spec });
    let updated = prop_oneof![
        3 => document(schema, Flavour::Plain),
        1 => document(schema, Flavour::Duplicates),
    ];
    let request = prop_oneof![
        3 => (managers(), any::<bool>(), applied)
            .prop_map(|(manager, force, spec)| Request::Apply { manager, force, spec }),
        1 => (managers(), updated).prop_map(|(manager, spec)| Request::Update { manager, spec }),
    ];
    prop::collection::vec(request, 1..7).boxed()
}

/// A schema and requests that fit it.
pub(super) fn story() -> impl Strategy<Value = (Value, Vec<Request>)> {
    schema().prop_flat_map(|schema| {
        let requests = requests(&schema);
        (Just(schema), requests)
    })
}
