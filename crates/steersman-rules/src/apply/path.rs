//! Steps of a path into a document, as managedFields write them.
//!
//! | notation | step |
//! |---|---|
//! | `f:replicas` | a field or map key |
//! | `k:{"name":"web"}` | the item of a list with these keys |
//! | `v:"example.com/guard"` | the item of a set |
//! | `i:0` | an item by index; only old writers used it |

use std::cmp::Ordering;
use std::fmt::{self, Display};

use serde_json::Value;

use crate::schema::{List, Text};

/// One step. The order is the one managedFields are written in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Field(String),
    /// Sorted by key name.
    Key(Vec<(String, Scalar)>),
    Value(Scalar),
    Index(u64),
}

/// A JSON value with a total order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scalar(pub(crate) Value);

impl Step {
    /// The step to an item of a list of objects, with defaults for keys it leaves out.
    pub(crate) fn to_keyed(list: &List, keys: &[Text], item: &Value) -> Result<Self, String> {
        let Value::Object(map) = item else {
            let what = if item.is_null() { "a null element" } else { "non-map elements" };
            return Err(format!("associative list with keys may not have {what}"));
        };
        let value = |key: &Text| map.get(key.as_ref()).or_else(|| list.key_default(key)).cloned();
        let mut found: Vec<(String, Scalar)> =
            keys.iter().filter_map(|key| Some((key.to_string(), Scalar(value(key)?)))).collect();
        if found.is_empty() {
            return Err(format!(
                "associative list with keys has an element that omits all key fields {keys:?} \
                 (and doesn't have default values for any key fields)"
            ));
        }
        found.sort();
        Ok(Self::Key(found))
    }

    /// The step to an item of a set.
    pub(crate) fn to_member(item: &Value) -> Result<Self, String> {
        match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => {
                Err("not supported: associative list with lists as elements".to_owned())
            }
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null"
                    .to_owned())
            }
            scalar => Ok(Self::Value(Scalar(scalar.clone()))),
        }
    }

    /// Reads `f:…`, `k:…`, `v:…` or `i:…`. Steps of other kinds are for later versions to
    /// understand, and none here.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, String> {
        let (kind, rest) = text.split_once(':').ok_or_else(|| format!("missing colon: {text}"))?;
        let json = || serde_json::from_str::<Value>(rest).map_err(|e| format!("{text}: {e}"));
        Ok(Some(match kind {
            "f" => Self::Field(rest.to_owned()),
            "v" => Self::Value(Scalar(json()?)),
            "i" => rest.parse().map(Self::Index).map_err(|e| format!("{text}: {e}"))?,
            "k" => match json()? {
                Value::Object(map) => {
                    let mut keys: Vec<_> = map.into_iter().map(|(k, v)| (k, Scalar(v))).collect();
                    keys.sort();
                    Self::Key(keys)
                }
                _ => return Err(format!("keys must be an object: {text}")),
            },
            other if other.len() == 1 => return Ok(None),
            _ => return Err(format!("missing colon: {text}")),
        }))
    }

    /// Writes what [`Self::parse`] reads.
    pub(super) fn encode(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name].concat(),
            Self::Value(value) => format!("v:{}", value.0),
            Self::Index(index) => format!("i:{index}"),
            Self::Key(keys) => {
                let pairs = keys
                    .iter()
                    .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), value.0));
                format!("k:{{{}}}", pairs.collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// As conflicts name a step: `.replicas`, `[name="web"]`, `[="example.com/guard"]`, `[0]`.
impl Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Value(value) => write!(f, "[={}]", value.0),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Key(keys) => {
                let pairs = keys.iter().map(|(key, value)| format!("{key}={}", value.0));
                write!(f, "[{}]", pairs.collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl Eq for Scalar {}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Numbers, then strings, then booleans, then the rest by their text.
impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Value::Number(a), Value::Number(b)) => {
                let number = |n: &serde_json::Number| n.as_f64().unwrap_or_default();
                number(a).total_cmp(&number(b)).then_with(|| a.to_string().cmp(&b.to_string()))
            }
            (Value::String(a), Value::String(b)) => a.cmp(b),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (a, b) => rank(a).cmp(&rank(b)).then_with(|| a.to_string().cmp(&b.to_string())),
        }
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
