//! What an apply would change: a wanted object beside the one that is there.
//!
//! Only what we own is looked at. `metadata.managedFields` says which fields we applied last, and
//! with its help three things are found that a comparison of values alone would not find:
//!
//! ```text
//! wanted            there              ours (fieldsV1)       found
//! replicas: 3       replicas: 3        f:replicas            nothing
//! image: web:2      image: web:1       f:image               .image differs
//!                   paused: true       f:paused              .paused is no longer wanted
//! minReady: 5       minReady: 5        (another's)           .minReady is not ours
//!                   strategy: {...}    (a default)           nothing
//! ```
//!
//! It may find too much, never too little: the server may write a value in another way, or keep
//! no record of a field. What is still found in the server's own answer to an apply is therefore
//! no reason to apply again; see [`AppliedMemory`](crate::context::AppliedMemory).

use std::fmt;

use serde_json::{Map, Value};

use super::quantity;

/// Fields that nobody owns: they name the object, or the server keeps them.
const UNOWNED: [&str; 2] = ["apiVersion", "kind"];
const UNOWNED_METADATA: [&str; 9] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "selfLink",
    "managedFields",
    "generateName",
];

/// One thing that is not as wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Difference {
    /// The field, as `.spec.containers[name=web].image`.
    pub path: String,
    /// In what it differs.
    pub why: Why,
    /// What is there, as JSON; `None` if nothing is.
    pub found: Option<String>,
}

/// In what a field is not as wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// It has another value, or none.
    Differs,
    /// It has the wanted value, but others may change it without anybody noticing a conflict.
    NotOurs,
    /// We set it once, and want it no longer.
    Unwanted,
    /// The items of a list have another order.
    Order,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.path.is_empty() { "the object" } else { &self.path })?;
        f.write_str(match self.why {
            Why::Differs => " differs",
            Why::NotOurs => " is not ours yet",
            Why::Unwanted => " is no longer wanted",
            Why::Order => " has another order",
        })
    }
}

/// Everything that applying `wanted` as `manager` may change in `actual`. Both are whole objects.
pub(super) fn compare(wanted: &Value, actual: &Value, manager: &str) -> Vec<Difference> {
    let mut comparison = Comparison { path: Vec::new(), found: Vec::new() };
    match applied_by(actual, wanted, manager) {
        Some(ours) => comparison.fields(&significant(wanted), actual, ours),
        None => {
            comparison.note(Why::NotOurs, None);
            // Where a cache strips managedFields, values that differ are still found.
            if actual["metadata"]["managedFields"].is_null() {
                comparison.values(&significant(wanted), actual);
            }
        }
    }
    comparison.found
}

/// The fields that the manager applied last, in the same version of the API.
fn applied_by<'a>(actual: &'a Value, wanted: &Value, manager: &str) -> Option<&'a Value> {
    let version = wanted["apiVersion"].as_str();
    let mut entries = actual["metadata"]["managedFields"].as_array()?.iter();
    let entry = entries.find(|entry| {
        entry["manager"] == manager
            && entry["operation"] == "Apply"
            && entry["subresource"].as_str().unwrap_or_default().is_empty()
            && (version.is_none() || entry["apiVersion"].as_str() == version)
    })?;
    Some(&entry["fieldsV1"])
}

/// The wanted object without what names it.
fn significant(wanted: &Value) -> Value {
    let mut wanted = wanted.clone();
    if let Value::Object(fields) = &mut wanted {
        fields.retain(|name, _| !UNOWNED.contains(&name.as_str()));
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            metadata.retain(|name, _| !UNOWNED_METADATA.contains(&name.as_str()));
            if metadata.is_empty() {
                fields.remove("metadata");
            }
        }
    }
    wanted
}

/// Whether this says nothing. The server may leave it out, and nobody need own it.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}

struct Comparison {
    path: Vec<String>,
    found: Vec<Difference>,
}

impl Comparison {
    fn note(&mut self, why: Why, found: Option<&Value>) {
        let found = found.filter(|found| !found.is_null()).map(Value::to_string);
        self.found.push(Difference { path: self.path.concat(), why, found });
    }

    fn within(&mut self, step: String, look: impl FnOnce(&mut Self)) {
        self.path.push(step);
        look(self);
        self.path.pop();
    }

    /// Compares a value with what is there, where `ours` says which parts of it we own.
    fn value(&mut self, wanted: &Value, actual: &Value, ours: Option<&Value>) {
        // Somebody may have taken an `emptyDir: {}` away: there its being there says something.
        let taken_away = wanted.is_object() && !actual.is_object() && ours.is_none();
        if is_empty(wanted) && is_empty(actual) && !taken_away {
            return;
        }
        let Some(ours) = ours else {
            let why = if self.same(wanted, actual) { Why::NotOurs } else { Why::Differs };
            return self.note(why, Some(actual));
        };
        let parts = ours.as_object().is_some_and(|ours| ours.keys().any(|name| name != "."));
        match (wanted, actual) {
            (Value::Object(_), Value::Object(_)) if parts => self.fields(wanted, actual, ours),
            (Value::Array(wanted), Value::Array(actual)) if parts => {
                self.items(wanted, actual, ours);
            }
            _ if self.same(wanted, actual) => {}
            _ => self.note(Why::Differs, Some(actual)),
        }
    }

    fn fields(&mut self, wanted: &Value, actual: &Value, ours: &Value) {
        let none = Map::new();
        let nothing = Value::Null;
        let wanted = wanted.as_object().unwrap_or(&none);
        let ours = ours.as_object().unwrap_or(&none);
        for (name, wanted) in wanted.iter().filter(|(_, value)| !value.is_null()) {
            let actual = actual.get(name).unwrap_or(&nothing);
            let ours = ours.get(&format!("f:{name}"));
            self.within(format!(".{name}"), |inner| inner.value(wanted, actual, ours));
        }
        for name in ours.keys().filter_map(|name| name.strip_prefix("f:")) {
            let left = wanted.get(name).is_none_or(Value::is_null);
            let there = actual.get(name).filter(|actual| !is_empty(actual));
            if let Some(there) = there.filter(|_| left) {
                self.within(format!(".{name}"), |inner| inner.note(Why::Unwanted, Some(there)));
            }
        }
    }

    /// Compares values alone, where it is not known which of them are ours.
    fn values(&mut self, wanted: &Value, actual: &Value) {
        match (wanted, actual) {
            (Value::Object(wanted), Value::Object(actual)) => {
                for (name, wanted) in wanted {
                    let actual = actual.get(name).unwrap_or(&Value::Null);
                    self.within(format!(".{name}"), |inner| inner.values(wanted, actual));
                }
            }
            _ if self.same(wanted, actual) => {}
            _ => self.note(Why::Differs, Some(actual)),
        }
    }

    fn items(&mut self, wanted: &[Value], actual: &[Value], ours: &Value) {
        let none = Map::new();
        let ours = ours.as_object().unwrap_or(&none);
        let mut positions = Vec::new();
        let mut met = Vec::new();
        for item in wanted {
            let found = ours.iter().find_map(|(name, ours)| {
                Name::parse(name).filter(|name| name.is_of(item)).map(|key| (name, key, ours))
            });
            let Some((name, key, ours)) = found else {
                self.note(Why::NotOurs, None);
                continue;
            };
            met.push(name);
            let position = actual.iter().position(|actual| key.names(actual));
            let there = position.map_or(&Value::Null, |position| &actual[position]);
            positions.extend(position);
            self.within(key.to_string(), |inner| inner.value(item, there, Some(ours)));
        }
        for (name, key) in ours.keys().filter_map(|name| Some((name, Name::parse(name)?))) {
            let there = actual.iter().find(|actual| key.names(actual));
            if let Some(there) = there.filter(|_| !met.contains(&name)) {
                self.within(key.to_string(), |inner| inner.note(Why::Unwanted, Some(there)));
            }
        }
        if !positions.is_sorted() {
            self.note(Why::Order, None);
        }
    }

    /// Whether two values mean the same.
    fn same(&self, wanted: &Value, actual: &Value) -> bool {
        let amounts = self.path.iter().any(|step| quantity::HOLDERS.contains(&step.as_str()));
        same(wanted, actual, amounts)
    }
}

/// Whether two values mean the same. Empty and absent are the same, except for an object, which
/// says something by being there; and so are numbers and, where there are `amounts`, quantities
/// that are written in different ways.
fn same(wanted: &Value, actual: &Value, amounts: bool) -> bool {
    match (wanted, actual) {
        (Value::Object(a), Value::Object(b)) => {
            let within = |name: &str| amounts || quantity::is_holder(name);
            let nothing = &Value::Null;
            a.iter().all(|(name, a)| same(a, b.get(name).unwrap_or(nothing), within(name)))
                && b.iter().all(|(name, b)| a.contains_key(name) || (is_empty(b) && !b.is_object()))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, amounts))
        }
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (a, b) if is_empty(a) && is_empty(b) => a.is_object() == b.is_object(),
        (a, b) => a == b || (amounts && quantity::same(a, b)),
    }
}

/// How an item of a list is named in managedFields.
enum Name {
    /// By some of its fields.
    Key(Map<String, Value>),
    /// By itself.
    Value(Value),
}

impl Name {
    fn parse(name: &str) -> Option<Self> {
        if let Some(key) = name.strip_prefix("k:") {
            return serde_json::from_str(key).ok().map(Self::Key);
        }
        serde_json::from_str(name.strip_prefix("v:")?).ok().map(Self::Value)
    }

    /// Whether a wanted item has this name. A field that it lacks may have a default.
    fn is_of(&self, wanted: &Value) -> bool {
        match self {
            Self::Key(key) => {
                let fits = |(name, value)| wanted.get(name).is_none_or(|w: &Value| w == value);
                key.keys().any(|name| wanted.get(name).is_some()) && key.iter().all(fits)
            }
            Self::Value(value) => wanted == value,
        }
    }

    /// Whether an item that is there has this name.
    fn names(&self, actual: &Value) -> bool {
        match self {
            Self::Key(key) => key.iter().all(|(name, value)| actual.get(name) == Some(value)),
            Self::Value(value) => actual == value,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Key(key) => {
                let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
                let parts = key.iter().map(|(name, value)| format!("{name}={}", text(value)));
                write!(f, "[{}]", parts.collect::<Vec<_>>().join(","))
            }
        }
    }
}
