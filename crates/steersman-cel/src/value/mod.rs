//! Values while an expression runs. What comes from JSON is borrowed as it stands.

mod equal;
mod list;
mod map;
mod show;
mod view;

use std::sync::Arc;

pub(crate) use equal::{compare, equal};
pub use list::List;
pub use map::{Key, Map};
pub(crate) use map::{present, usable_key};

use crate::extension::Extension;
use crate::extension::access::Access;
use crate::shape::ObjectShape;
use crate::shape::Type;
use crate::time::{Duration, Timestamp};

/// A value of the language.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// `1`
    Int(i64),
    /// `1u`
    Uint(u64),
    /// `1.0`
    Double(f64),
    /// `"text"`
    String(Text<'a>),
    /// `b"bytes"`
    Bytes(Arc<[u8]>),
    /// `timestamp(…)`
    Timestamp(Timestamp),
    /// `duration(…)`
    Duration(Duration),
    /// `[…]`
    List(List<'a>),
    /// `{…}`, and objects of JSON
    Map(Map<'a>),
    /// `Name{…}`
    Struct(Arc<Struct<'a>>),
    /// `optional.of(…)` or `optional.none()`
    Optional(Option<Arc<Value<'a>>>),
    /// `int`, `list`, …
    Type(Type),
    /// What Kubernetes' libraries add: quantities, addresses, …
    Extension(Extension),
}

/// Text, borrowed where it can be.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// Stands in the data or in the program.
    Borrowed(&'a str),
    /// Was computed.
    Shared(Arc<str>),
}

/// A constructed object.
#[derive(Clone, Debug)]
pub struct Struct<'a> {
    /// Its type.
    pub shape: Arc<ObjectShape>,
    /// The fields that were set, by their names in expressions.
    pub fields: std::collections::BTreeMap<Arc<str>, Value<'a>>,
}

impl Text<'_> {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl<'a> Value<'a> {
    /// Text that was computed.
    pub(crate) fn text(text: impl Into<Arc<str>>) -> Self {
        Value::String(Text::Shared(text.into()))
    }

    /// What `authorizer` is in an expression.
    #[must_use]
    pub fn access(access: Access) -> Self {
        Value::Extension(Extension::Access(Arc::new(access)))
    }

    pub(crate) fn list(items: Vec<Value<'a>>) -> Self {
        Value::List(List::new(items))
    }

    pub(crate) fn some(value: Value<'a>) -> Self {
        Value::Optional(Some(Arc::new(value)))
    }

    /// The text, if it is text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// The number, if it is an `int`.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The answer, if it is a `bool`.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(answer) => Some(*answer),
            _ => None,
        }
    }

    /// Its type, without what it contains.
    #[must_use]
    pub fn type_of(&self) -> Type {
        match self {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Uint(_) => Type::Uint,
            Value::Double(_) => Type::Double,
            Value::String(_) => Type::String,
            Value::Bytes(_) => Type::Bytes,
            Value::Timestamp(_) => Type::Timestamp,
            Value::Duration(_) => Type::Duration,
            Value::List(_) => Type::list(Type::Dyn),
            Value::Map(map) => map.type_of(),
            Value::Struct(object) => Type::Object(Arc::clone(&object.shape)),
            Value::Optional(_) => Type::optional(Type::Dyn),
            Value::Type(_) => Type::Type(None),
            Value::Extension(extension) => extension.type_of(),
        }
    }

    /// What `size()` says of it; `None` if it has no size.
    pub(crate) fn size(&self) -> Option<u64> {
        let size = match self {
            Value::String(text) => characters(text.as_str()),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            Value::Extension(extension) => return extension.size(),
            _ => return None,
        };
        Some(size as u64)
    }

    /// The size that costs are computed from: one where there is none.
    pub(crate) fn cost_size(&self) -> u64 {
        match self {
            Value::Optional(Some(value)) => value.cost_size(),
            other => other.size().unwrap_or(1),
        }
    }

    /// Whether it is what its type starts out with.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Value::Null => true,
            Value::Bool(answer) => !answer,
            Value::Int(number) => *number == 0,
            Value::Uint(number) => *number == 0,
            Value::Double(number) => *number == 0.0,
            Value::Duration(span) => span.nanos == 0,
            Value::String(text) => text.as_str().is_empty(),
            Value::Bytes(bytes) => bytes.is_empty(),
            Value::List(list) => list.len() == 0,
            Value::Map(map) => map.len() == 0,
            Value::Struct(object) => object.fields.is_empty(),
            Value::Optional(inner) => inner.is_none(),
            Value::Timestamp(at) => at.is_first(),
            Value::Type(_) | Value::Extension(_) => false,
        }
    }
}

/// How many characters a text has; a count of bytes where they are the same.
fn characters(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

impl From<bool> for Value<'_> {
    fn from(answer: bool) -> Self {
        Value::Bool(answer)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<&str> for Value<'_> {
    fn from(text: &str) -> Self {
        Value::text(text)
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::text(text)
    }
}
