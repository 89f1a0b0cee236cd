//! The schema of a definition at rest and in use.
//!
//! At rest it is text, without what only readers want of it, and compressed if it is long: most
//! definitions of a cluster are used by nobody for hours, and what is made of one takes ten times
//! what its text does. It is [built](Built) when an object first meets it, once for all who come at
//! the same time, and [rests](Defined::rest) again when nobody has used it for a while.
//!
//! Long schemas and all rules are made on [a thread of their own](in_pages_of_its_own): allocators
//! give each thread its own pages, and a page cannot go back while anything in it is still needed. Made
//! by the thread of a request, a schema that rests would leave its pages to what else of that request
//! stays.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use serde_json::Value;

use super::expressions::Level;
use super::node::{ListKind, Node, Shape};
use super::structural;

/// What only readers want of a schema, which is most of many.
const FOR_READERS: [&str; 4] = ["description", "title", "example", "externalDocs"];

/// A longer text is compressed.
const PLAIN_MAX: usize = 8 * 1024;

/// The fastest level: schemas repeat themselves so much that others gain little.
const LEVEL: i32 = 1;

/// What a definition says of its kind.
pub(super) struct Defined {
    text: Text,
    /// Whether there are patterns in it, and rules.
    pub(super) has_patterns: bool,
    pub(super) has_rules: bool,
    slot: Mutex<Slot>,
}

/// What was made of the text, if it is in use.
#[derive(Default)]
struct Slot {
    /// Shared by all who came while it was being built.
    built: Option<Arc<OnceLock<Arc<Built>>>>,
    /// Whether it was used since it was last asked to rest, and in which round that was.
    used: bool,
    round: u64,
}

/// A schema that objects can be held to.
pub(crate) struct Built {
    pub(super) root: Node,
    /// Whether there are resources in it, and lists in which nothing may be twice.
    pub(super) has_embedded: bool,
    pub(super) has_unique: bool,
    /// The rules, once they are needed.
    rules: OnceLock<Option<Level>>,
}

impl Defined {
    /// What `openAPIV3Schema` of a definition says.
    pub(super) fn new(schema: &Value) -> Self {
        let mut writer = Writer::default();
        writer.schema(schema, true);
        let Writer { out, has_patterns, has_rules } = writer;
        Self { text: Text::new(&out), has_patterns, has_rules, slot: Mutex::default() }
    }

    /// The schema in use.
    pub(super) fn built(&self) -> Arc<Built> {
        let cell = {
            let mut slot = self.slot();
            slot.used = true;
            Arc::clone(slot.built.get_or_insert_default())
        };
        let build = || Arc::new(Built::new(&self.text.schema()));
        Arc::clone(cell.get_or_init(|| match self.text {
            Text::Plain(_) => build(),
            Text::Compressed { .. } => in_pages_of_its_own(build),
        }))
    }

    /// The rules of a schema in use; there may be none.
    pub(super) fn rules<'a>(&self, built: &'a Built) -> Option<&'a Level> {
        let rules = || in_pages_of_its_own(|| Level::of_schema(&self.text.schema(), true));
        built.rules.get_or_init(|| self.has_rules.then(rules).flatten()).as_ref()
    }

    /// Lets go of what was made of the text, unless that was used since the round before. Says
    /// whether it is still held.
    pub(super) fn rest(&self, round: u64) -> bool {
        let mut slot = self.slot();
        let is_asked_again = std::mem::replace(&mut slot.round, round) == round;
        if !is_asked_again && !std::mem::take(&mut slot.used) {
            slot.built = None;
        }
        slot.built.is_some()
    }

    pub(super) fn is_in_use(&self) -> bool {
        self.slot().built.is_some()
    }

    /// Whether who needs it now, with its rules or without, need not wait until it is built, or not
    /// so long that anybody minds.
    pub(super) fn is_at_hand(&self, with_rules: bool) -> bool {
        let cell = self.slot().built.clone();
        match cell.as_ref().and_then(|cell| cell.get()) {
            Some(built) => !with_rules || !self.has_rules || built.rules.get().is_some(),
            None => {
                let compiles = with_rules && (self.has_rules || self.has_patterns);
                matches!(self.text, Text::Plain(_)) && !compiles
            }
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Built {
    fn new(schema: &Value) -> Self {
        let root = structural::root(schema);
        let is_embedded =
            |node: &Node| matches!(&node.shape, Shape::Object(object) if object.embedded);
        let is_unique =
            |node: &Node| matches!(&node.shape, Shape::List(it) if it.kind != ListKind::Atomic);
        Self {
            has_embedded: root.contains(&is_embedded),
            has_unique: root.contains(&is_unique),
            root,
            rules: OnceLock::new(),
        }
    }
}

/// Makes something on a thread that does nothing else, and waits for it.
fn in_pages_of_its_own<T: Send>(make: impl Fn() -> T + Sync) -> T {
    thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, &make) {
        Ok(made) => made.join().unwrap_or_else(|panic| resume_unwind(panic)),
        Err(_) => make(), // as many threads as there may be; it costs memory, and nothing else
    })
}

/// A schema as text.
enum Text {
    Plain(Box<[u8]>),
    Compressed { bytes: Box<[u8]>, length: usize },
}

impl Text {
    fn new(text: &[u8]) -> Self {
        let compress = || zstd::bulk::compress(text, LEVEL).ok();
        match (text.len() > PLAIN_MAX).then(compress).flatten() {
            Some(bytes) => Self::Compressed { bytes: bytes.into(), length: text.len() },
            None => Self::Plain(text.into()),
        }
    }

    fn schema(&self) -> Value {
        let read = match self {
            Self::Plain(text) => serde_json::from_slice(text).ok(),
            Self::Compressed { bytes, length } => zstd::bulk::decompress(bytes, *length)
                .ok()
                .and_then(|text| serde_json::from_slice(&text).ok()),
        };
        read.expect("what was written as JSON here is read as JSON")
    }
}

/// Writes a schema without what is for readers, and notes what is in it.
#[derive(Default)]
struct Writer {
    out: Vec<u8>,
    has_patterns: bool,
    has_rules: bool,
}

impl Writer {
    /// A schema, and whether rules in it count.
    fn schema(&mut self, schema: &Value, ruling: bool) {
        let Some(fields) = schema.as_object() else { return self.value(schema) };
        self.has_patterns |= fields.get("pattern").is_some_and(Value::is_string);
        let rules = fields.get("x-kubernetes-validations").and_then(Value::as_array);
        self.has_rules |= ruling && rules.is_some_and(|rules| !rules.is_empty());
        let told = fields.iter().filter(|(word, _)| !FOR_READERS.contains(&word.as_str()));
        self.object(told, |writer, word, below| match (word, below) {
            ("properties", Value::Object(properties)) => {
                writer.object(properties, |writer, _, below| writer.schema(below, ruling));
            }
            ("items" | "additionalProperties", below) => writer.schema(below, ruling),
            ("not", below) => writer.schema(below, false),
            ("allOf", Value::Array(parts)) => writer.list(parts, ruling),
            ("anyOf" | "oneOf", Value::Array(parts)) => writer.list(parts, false),
            (_, below) => writer.value(below),
        });
    }

    fn object<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a String, &'a Value)>,
        mut below: impl FnMut(&mut Self, &str, &Value),
    ) {
        self.out.push(b'{');
        for (index, (key, value)) in fields.into_iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.json(key);
            self.out.push(b':');
            below(self, key, value);
        }
        self.out.push(b'}');
    }

    fn list(&mut self, parts: &[Value], ruling: bool) {
        self.out.push(b'[');
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.schema(part, ruling);
        }
        self.out.push(b']');
    }

    fn value(&mut self, value: &Value) {
        self.json(value);
    }

    fn json(&mut self, value: &(impl serde::Serialize + ?Sized)) {
        serde_json::to_writer(&mut self.out, value).expect("writing to memory cannot fail");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use serde_json::{Map, Value, json};

    use super::{Defined, PLAIN_MAX, Text};
    use crate::schema::Schema;

    /// A schema with as many fields as asked for, each with a default, a limit and words about it.
    fn schema(fields: usize) -> Value {
        let field = |n: usize| {
            let schema = json!({
                "type": "string", "maxLength": 5, "pattern": "^[a-z]+$", "default": "a",
                "description": format!("The field number {n} is described at some length."),
            });
            (format!("field{n}"), schema)
        };
        let rule = json!({"rule": "self.field0 != 'bad'", "message": "is bad"});
        json!({"type": "object", "properties": {"spec": {
            "type": "object", "properties": (0..fields).map(field).collect::<Map<_, _>>(),
            "x-kubernetes-validations": [rule],
        }}})
    }

    #[test]
    fn a_schema_is_at_hand_once_it_is_built_and_with_its_rules_once_they_are() {
        let (short, long) = (Defined::new(&json!({"type": "object"})), Defined::new(&schema(500)));
        assert!(short.is_at_hand(true), "that takes no time");
        assert_eq!([false, true].map(|rules| long.is_at_hand(rules)), [false, false]);
        let built = long.built();
        assert_eq!([false, true].map(|rules| long.is_at_hand(rules)), [true, false]);
        assert!(long.rules(&built).is_some());
        assert!(long.is_at_hand(true));
        long.rest(1);
        long.rest(2);
        assert!(!long.is_at_hand(false));
    }

    #[test]
    fn a_text_has_all_but_what_is_for_readers() {
        let schema = json!({
            "type": "object", "description": "gone", "title": "gone",
            "properties": {
                "description": {"type": "string", "description": "gone", "default": "stays"},
                "list": {"type": "array", "items": {"type": "object", "externalDocs": {"url": "gone"},
                    "default": {"description": "stays"}}},
                "map": {"type": "object", "additionalProperties": {"type": "string", "title": "gone"}},
            },
            "allOf": [{"title": "gone", "required": ["list"]}],
            "not": {"description": "gone", "required": ["map"]},
        });
        let defined = Defined::new(&schema);
        let expected = json!({
            "type": "object",
            "properties": {
                "description": {"type": "string", "default": "stays"},
                "list": {"type": "array", "items": {"type": "object",
                    "default": {"description": "stays"}}},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "allOf": [{"required": ["list"]}],
            "not": {"required": ["map"]},
        });
        assert_eq!(defined.text.schema(), expected);
        assert!(!defined.has_patterns && !defined.has_rules);
    }

    #[test]
    fn a_long_text_is_compressed_and_says_the_same() {
        let defined = Defined::new(&schema(500));
        let Text::Compressed { bytes, length } = &defined.text else { panic!("not compressed") };
        assert!(*length > PLAIN_MAX && bytes.len() < length / 5, "{} of {length}", bytes.len());
        let fields = defined.text.schema()["properties"]["spec"]["properties"].clone();
        assert_eq!(fields.as_object().unwrap().len(), 500);
        assert!(defined.has_patterns && defined.has_rules);
    }

    /// What a schema makes of an object and finds wrong with another.
    fn used(schema: &Schema) -> (Value, Vec<String>) {
        let mut object = json!({"spec": {"field0": "bad", "unknown": 1}});
        schema.prune(&mut object);
        schema.apply_defaults(&mut object).unwrap();
        let wrong = json!({"spec": {"field0": "bad", "field1": "1"}});
        let found = schema.validate_change(&wrong, None).errors;
        (object, found.iter().map(|error| format!("{}: {}", error.field, error.text)).collect())
    }

    #[test]
    fn what_nobody_used_for_a_round_is_let_go_and_built_again() {
        let schema = Schema::structural(&schema(2));
        assert!(!schema.is_in_use(), "nothing is built before it is needed");
        let first = used(&schema);
        assert_eq!(first.0, json!({"spec": {"field0": "bad", "field1": "a"}}));
        assert_eq!(first.1.len(), 2, "{first:?}");
        assert!(schema.rest(1), "it was used since");
        assert!(schema.clone().rest(1), "whoever shares it asks in the same round");
        used(&schema);
        assert!(schema.rest(2));
        assert!(!schema.rest(3) && !schema.is_in_use());
        assert_eq!(used(&schema), first);
        assert!(schema.is_in_use());
    }

    #[test]
    fn who_uses_it_goes_on_while_it_is_let_go() {
        let schema = Schema::structural(&schema(2));
        let root = schema.root();
        schema.rest(1);
        assert!(!schema.rest(2));
        assert!(root.field("spec").is_some());
    }

    #[test]
    fn all_who_come_at_once_share_what_one_of_them_builds() {
        let defined = Arc::new(Defined::new(&schema(200)));
        let begin = Arc::new(Barrier::new(8));
        let use_it = |_| {
            let (defined, begin) = (Arc::clone(&defined), Arc::clone(&begin));
            std::thread::spawn(move || {
                begin.wait();
                defined.built()
            })
        };
        let threads: Vec<_> = (0..8).map(use_it).collect();
        let built: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(built.iter().all(|other| Arc::ptr_eq(other, &built[0])));
        let rules: Vec<_> = built.iter().map(|built| defined.rules(built).unwrap()).collect();
        assert!(rules.iter().all(|other| std::ptr::eq(*other, rules[0])));
    }
}
