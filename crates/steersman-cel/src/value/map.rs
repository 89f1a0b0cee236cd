//! Maps: objects of JSON, or made by the expression.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::{Text, Value};
use crate::error::Error;
use crate::shape::Type;
use crate::shape::{DYN, Shape, ShapeKind, escape};

/// A map.
#[derive(Clone, Debug)]
pub enum Map<'a> {
    /// An object of JSON and its shape.
    Json(&'a serde_json::Map<String, Json>, &'a Shape),
    /// Made by the expression: keys as they were written, and values.
    Owned(Arc<BTreeMap<Key<'a>, (Value<'a>, Value<'a>)>>),
    /// Such a map, and what is found under keys that it does not have: `in` and `size()` know only
    /// those that it has.
    OwnedOr(Arc<BTreeMap<Key<'a>, (Value<'a>, Value<'a>)>>, Arc<Value<'a>>),
}

/// A key as maps compare it: numbers by their value, whatever their type.
#[derive(Clone, Debug)]
pub enum Key<'a> {
    /// `true` or `false`
    Bool(bool),
    /// `1`, `1u` and, to look up, `1.0`
    Number(i128),
    /// `"text"`
    Text(Text<'a>),
}

impl Key<'_> {
    fn rank(&self) -> u8 {
        match self {
            Key::Bool(_) => 0,
            Key::Number(_) => 1,
            Key::Text(_) => 2,
        }
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key<'_> {}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Key::Bool(a), Key::Bool(b)) => a.cmp(b),
            (Key::Number(a), Key::Number(b)) => a.cmp(b),
            (Key::Text(a), Key::Text(b)) => a.as_str().cmp(b.as_str()),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

/// The key that a value is, if it can be one.
pub(crate) fn key_of<'a>(value: &Value<'a>) -> Option<Key<'a>> {
    Some(match value {
        Value::Bool(answer) => Key::Bool(*answer),
        Value::Int(number) => Key::Number((*number).into()),
        Value::Uint(number) => Key::Number((*number).into()),
        Value::Double(number) if number.fract() == 0.0 && number.abs() < 1e30 => {
            Key::Number(*number as i128)
        }
        Value::String(text) => Key::Text(text.clone()),
        _ => return None,
    })
}

impl<'a> Map<'a> {
    /// A map of keys and values; fails if a key cannot be one.
    pub fn of(entries: Vec<(Value<'a>, Value<'a>)>) -> Result<Self, Error> {
        Self::new(entries)
    }

    /// The same map, in which this is found under every key that it does not have.
    #[must_use]
    pub fn or(self, default: Value<'a>) -> Self {
        match self {
            Map::Owned(entries) | Map::OwnedOr(entries, _) => {
                Map::OwnedOr(entries, Arc::new(default))
            }
            json @ Map::Json(..) => json,
        }
    }

    pub(crate) fn new(
        entries: impl IntoIterator<Item = (Value<'a>, Value<'a>)>,
    ) -> Result<Self, Error> {
        let mut map = BTreeMap::new();
        for (key, value) in entries {
            map.insert(usable_key(&key)?, (key, value));
        }
        Ok(Map::Owned(Arc::new(map)))
    }

    /// How many entries it has.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "an expression asks for the size alone")]
    pub fn len(&self) -> usize {
        match self {
            Map::Json(fields, _) => fields.len(),
            Map::Owned(entries) | Map::OwnedOr(entries, _) => entries.len(),
        }
    }

    pub(crate) fn type_of(&self) -> Type {
        match self {
            Map::Json(_, Shape { kind: ShapeKind::Object(object), .. }) => {
                Type::Object(Arc::clone(object))
            }
            _ => Type::map(Type::Dyn, Type::Dyn),
        }
    }

    /// The value under a name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Result<Value<'a>, Error>> {
        match self {
            Map::Json(fields, shape) => match &shape.kind {
                ShapeKind::Object(object) => {
                    let field = object.field(name)?;
                    present(fields, &field.json).map(|json| Value::shaped(json, &field.shape))
                }
                ShapeKind::Map(of) => fields.get(name).map(|json| Value::shaped(json, of)),
                _ => fields.get(name).map(|json| Ok(Value::json(json))),
            },
            Map::Owned(entries) => {
                let key = Key::Text(Text::Borrowed(name));
                entries.get(&key).map(|(_, value)| Ok(value.clone()))
            }
            Map::OwnedOr(entries, default) => {
                let found = entries.get(&Key::Text(Text::Borrowed(name)));
                Some(Ok(found.map_or(&**default, |(_, value)| value).clone()))
            }
        }
    }

    /// The value under a key.
    pub(crate) fn get(&self, key: &Value<'a>) -> Option<Result<Value<'a>, Error>> {
        match self {
            Map::Json(..) => self.field(key.as_str()?),
            Map::Owned(entries) => entries.get(&key_of(key)?).map(|(_, value)| Ok(value.clone())),
            Map::OwnedOr(entries, default) => {
                let found = entries.get(&key_of(key)?);
                Some(Ok(found.map_or(&**default, |(_, value)| value).clone()))
            }
        }
    }

    pub(crate) fn contains(&self, key: &Value<'a>) -> bool {
        match self {
            Map::Owned(entries) | Map::OwnedOr(entries, _) => {
                key_of(key).is_some_and(|key| entries.contains_key(&key))
            }
            Map::Json(..) => self.get(key).is_some(),
        }
    }

    /// Its keys; those of an object as expressions write them.
    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Map::Json(fields, shape) => {
                let shape: &'a Shape = shape;
                let keys = fields.iter().filter(|(_, json)| !absent(json, shape));
                keys.filter_map(|(key, _)| entry_shape(key, shape))
                    .map(|(key, _)| Value::String(key))
                    .collect()
            }
            Map::Owned(entries) | Map::OwnedOr(entries, _) => {
                entries.values().map(|(key, _)| key.clone()).collect()
            }
        }
    }

    /// Keys and values.
    pub fn entries(&self) -> Box<dyn Iterator<Item = (Value<'a>, Result<Value<'a>, Error>)> + '_> {
        match self {
            Map::Json(fields, shape) => {
                let shape: &'a Shape = shape;
                let fields: &'a serde_json::Map<String, Json> = fields;
                Box::new(fields.iter().filter_map(move |(key, json)| {
                    if absent(json, shape) {
                        return None;
                    }
                    let (key, shape) = entry_shape(key, shape)?;
                    Some((Value::String(key), Value::shaped(json, shape)))
                }))
            }
            Map::Owned(entries) | Map::OwnedOr(entries, _) => {
                Box::new(entries.values().map(|(key, value)| (key.clone(), Ok(value.clone()))))
            }
        }
    }
}

/// What an object has under a name; `null` is as good as nothing there.
pub(crate) fn present<'a>(
    fields: &'a serde_json::Map<String, Json>,
    name: &str,
) -> Option<&'a Json> {
    fields.get(name).filter(|json| !json.is_null())
}

/// What an object has as null it has not.
fn absent(json: &Json, shape: &Shape) -> bool {
    json.is_null() && matches!(shape.kind, ShapeKind::Object(_))
}

pub(crate) fn usable_key<'a>(key: &Value<'a>) -> Result<Key<'a>, Error> {
    match key {
        Value::Double(_) => Err(Error::new("unsupported key type")),
        key => key_of(key).ok_or_else(|| Error::new("unsupported key type")),
    }
}

fn entry_shape<'a>(key: &'a str, shape: &'a Shape) -> Option<(Text<'a>, &'a Shape)> {
    match &shape.kind {
        ShapeKind::Map(of) => Some((Text::Borrowed(key), of)),
        ShapeKind::Object(object) => {
            let escaped = escape(key)?;
            let field = object.fields.get(escaped.as_str())?;
            let text =
                if escaped == key { Text::Borrowed(key) } else { Text::Shared(escaped.into()) };
            Some((text, &field.shape))
        }
        _ => Some((Text::Borrowed(key), &DYN)),
    }
}
