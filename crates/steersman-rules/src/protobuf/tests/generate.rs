//! Documents of every built-in kind, with every field set, from a seed.

use std::cell::RefCell;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::super::layout::{Entry, Field, Holding, Kind, Message};
use super::super::table;
use crate::schema::Scalar;

/// How deep objects are filled; below, what can be left out is left out.
const DEPTH: usize = 8;

/// How deep a schema in a definition is filled: each level is forty fields wide.
const SCHEMA_DEPTH: usize = 2;

/// The kinds of the table, as `(apiVersion, kind)`.
pub(super) fn kinds() -> Vec<(&'static str, &'static str)> {
    let lines = include_str!("../../schema/builtin.txt").lines();
    let kinds = lines.filter_map(|line| {
        let mut words = line.strip_prefix("kind ")?.split(' ');
        Some((words.next()?, words.next()?))
    });
    kinds.collect()
}

/// A document with every field of its kind.
pub(super) fn document(seed: u64, api_version: &str, kind: &str) -> Value {
    let message = table::kind(api_version, kind).unwrap();
    let mut filled = Generator { random: Random::new(seed) }.object(message, 0, 0);
    let fields = filled.as_object_mut().unwrap();
    fields.insert("apiVersion".to_owned(), api_version.into());
    fields.insert("kind".to_owned(), kind.into());
    filled
}

/// A seeded source of numbers.
struct Random(RefCell<StdRng>);

impl Random {
    fn new(seed: u64) -> Self {
        Self(RefCell::new(StdRng::seed_from_u64(seed)))
    }

    /// A number below `limit`.
    fn below(&self, limit: u64) -> u64 {
        self.0.borrow_mut().next_u64() % limit.max(1)
    }
}

struct Generator {
    random: Random,
}

impl Generator {
    fn object(&self, message: &Message, depth: usize, schemas: usize) -> Value {
        let mut object = Map::new();
        self.fill(message, &mut object, depth, schemas);
        Value::Object(object)
    }

    fn fill(
        &self,
        message: &Message,
        object: &mut Map<String, Value>,
        depth: usize,
        schemas: usize,
    ) {
        for entry in message.entries() {
            match entry {
                Entry::Part(part) => self.fill(part, object, depth, schemas),
                Entry::Field(field) => {
                    if let Some(value) = self.field(field, depth, schemas) {
                        object.insert(field.name.to_owned(), value);
                    }
                }
            }
        }
    }

    fn field(&self, field: &Field, depth: usize, schemas: usize) -> Option<Value> {
        let (Holding::One(kind) | Holding::List(kind) | Holding::Map(kind)) = field.holds;
        let nested = !matches!(kind, Kind::Scalar(_) | Kind::Json | Kind::Texts);
        let schemas = schemas + usize::from(nested && field_is_schema(kind));
        if nested && (depth >= DEPTH || schemas > SCHEMA_DEPTH) {
            return None;
        }
        let zero = field.keeps_zero && self.one_in(4);
        let count = 1 + self.random.below(2);
        Some(match field.holds {
            Holding::One(kind) => self.value(kind, zero, depth, schemas),
            Holding::List(kind) => {
                (0..count).map(|_| self.value(kind, self.one_in(4), depth, schemas)).collect()
            }
            Holding::Map(kind) => {
                let entry = |_| (self.text(false), self.value(kind, false, depth, schemas));
                Value::Object((0..count).map(entry).collect())
            }
        })
    }

    fn value(&self, kind: Kind, zero: bool, depth: usize, schemas: usize) -> Value {
        let object = |place| self.object(table::message(place), depth + 1, schemas);
        match kind {
            Kind::Scalar(scalar) => self.scalar(scalar, zero),
            Kind::Message(place) => object(place),
            Kind::Json => self.json(),
            Kind::Texts => json!([self.text(false), self.text(true)]),
            Kind::SchemaOrArray(schema) if self.one_in(2) => {
                json!([object(schema), object(schema)])
            }
            Kind::SchemaOrBool(_) if self.one_in(2) => json!(self.one_in(2)),
            Kind::SchemaOrTexts(_) if self.one_in(2) => json!([self.text(false), self.text(false)]),
            Kind::SchemaOrArray(schema)
            | Kind::SchemaOrBool(schema)
            | Kind::SchemaOrTexts(schema) => object(schema),
        }
    }

    fn scalar(&self, scalar: Scalar, zero: bool) -> Value {
        let number = self.random.below(u64::MAX).cast_signed();
        match scalar {
            Scalar::String => self.text(zero).into(),
            Scalar::Int32 if zero => json!(0),
            Scalar::Int32 => json!(number as i32 | 1),
            Scalar::Int64 | Scalar::Integer if zero => json!(0),
            Scalar::Int64 | Scalar::Integer => json!(number | 1),
            Scalar::Number => self.pick(&[json!(-7), json!(0.5), json!(1e300), json!(9_007_199)]),
            Scalar::Bool => json!(!zero),
            Scalar::Bytes => BASE64_STANDARD.encode(number.to_le_bytes()).into(),
            Scalar::Time => self.time(0).into(),
            Scalar::MicroTime => self.time(6).into(),
            Scalar::Quantity => {
                self.pick(&[json!("100m"), json!("1Gi"), json!("-3"), json!("12e6")])
            }
            Scalar::IntOrString if zero => json!(0),
            Scalar::IntOrString => {
                self.pick(&[json!("25%"), json!(-3), json!(8080), json!("http")])
            }
        }
    }

    fn time(&self, digits: usize) -> String {
        let seconds = self.random.below(300_000_000_000).cast_signed() - 62_000_000_000;
        let nanos = if digits == 0 { 0 } else { self.random.below(1_000_000) as i32 * 1000 };
        let time = Timestamp::new(seconds.clamp(-62_000_000_000, 253_402_300_799), 0).unwrap();
        format!("{:.digits$}", time + jiff::SignedDuration::from_nanos(nanos.into()))
    }

    fn text(&self, zero: bool) -> String {
        const TEXTS: [&str; 8] = [
            "a",
            "some-name",
            "käse ☕ 𝄞",
            "\"quoted\" \\ and\n\ttab",
            "/path/to/it",
            "\u{1}\u{7f}",
            "a text that is much longer than the eight bytes that are looked at together, and longer \
             than one hundred and twenty-seven bytes as well",
            "x=y",
        ];
        if zero {
            return String::new();
        }
        let text = TEXTS[usize::try_from(self.random.below(8)).unwrap()];
        format!("{text}{}", self.random.below(1000))
    }

    fn json(&self) -> Value {
        self.pick(&[
            json!({"f:metadata": {"f:labels": {".": {}, "f:a\"b": {}}}}),
            json!({"list": [1, 2.5, null, "]}\""], "deep": {"er": {"est": true}}}),
            json!({"text": "}{\\"}),
        ])
    }

    fn one_in(&self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    fn pick(&self, values: &[Value]) -> Value {
        values[usize::try_from(self.random.below(values.len() as u64)).unwrap()].clone()
    }
}

/// Whether a value holds a schema, which holds schemas.
fn field_is_schema(kind: Kind) -> bool {
    let is_schema = |place: usize| {
        let names = table::message(place).entries();
        names.filter(|entry| matches!(entry, Entry::Field(field) if field.name == "$ref")).count()
            > 0
    };
    match kind {
        Kind::SchemaOrArray(_) | Kind::SchemaOrBool(_) | Kind::SchemaOrTexts(_) => true,
        Kind::Message(place) => is_schema(place),
        _ => false,
    }
}
