//! Lists: of JSON, or made by the expression.

use std::sync::Arc;

use serde_json::Value as Json;

use super::{Value, equal};
use crate::effort::{COPY, spend};
use crate::error::Error;
use crate::shape::{DYN, ListKind, Shape, ShapeKind};

/// A list.
#[derive(Clone, Debug)]
pub enum List<'a> {
    /// An array of JSON and the shape of the whole.
    Json(&'a [Json], &'a Shape),
    /// Made by the expression.
    Owned(Arc<Vec<Value<'a>>>, &'a ListKind),
}

static ATOMIC: ListKind = ListKind::Atomic;

impl<'a> List<'a> {
    /// A list of values.
    #[must_use]
    pub fn of(items: Vec<Value<'a>>) -> Self {
        Self::new(items)
    }

    pub(crate) fn new(items: Vec<Value<'a>>) -> Self {
        List::Owned(Arc::new(items), &ATOMIC)
    }

    /// How many elements it has.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "an expression asks for the size alone")]
    pub fn len(&self) -> usize {
        match self {
            List::Json(items, _) => items.len(),
            List::Owned(items, _) => items.len(),
        }
    }

    pub(crate) fn kind(&self) -> &'a ListKind {
        match self {
            List::Owned(_, kind) => kind,
            List::Json(_, shape) => match &shape.kind {
                ShapeKind::List(_, kind) => kind,
                _ => &ATOMIC,
            },
        }
    }

    /// The element at an index, if there is one.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Result<Value<'a>, Error>> {
        match self {
            List::Json(items, shape) => {
                items.get(index).map(|item| Value::shaped(item, element_shape(shape)))
            }
            List::Owned(items, _) => items.get(index).cloned().map(Ok),
        }
    }

    /// Its elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, Error>> + '_ {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    pub(crate) fn to_vec(&self) -> Result<Vec<Value<'a>>, Error> {
        spend(COPY * self.len())?;
        self.iter().collect()
    }

    pub(crate) fn contains(&self, value: &Value<'a>) -> Result<bool, Error> {
        if let (List::Json(items, _), Some(text)) = (self, value.as_str())
            && matches!(self.plain_strings(), Some(true))
        {
            return Ok(items.iter().any(|item| item.as_str() == Some(text)));
        }
        for item in self.iter() {
            if equal(&item?, value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether its elements are strings that mean themselves.
    fn plain_strings(&self) -> Option<bool> {
        match self {
            List::Json(_, shape) => Some(matches!(element_shape(shape).kind, ShapeKind::String)),
            List::Owned(..) => None,
        }
    }

    /// What `+` makes: one after the other, or for sets and maps the union.
    pub(crate) fn plus(&self, other: &List<'a>) -> Result<List<'a>, Error> {
        let kind = self.kind();
        let mut items = self.to_vec()?;
        match kind {
            ListKind::Atomic => items.extend(other.to_vec()?),
            ListKind::Set => {
                for item in other.iter() {
                    let item = item?;
                    if !self.contains(&item)? {
                        items.push(item);
                    }
                }
            }
            ListKind::Map(keys) => {
                for item in other.iter() {
                    let item = item?;
                    let known = items.iter().position(|known| same_keys(known, &item, keys));
                    match known {
                        Some(at) => items[at] = item,
                        None => items.push(item),
                    }
                }
            }
        }
        Ok(List::Owned(Arc::new(items), kind))
    }
}

/// Whether two elements of a list of type map are the same one.
pub(super) fn same_keys(a: &Value<'_>, b: &Value<'_>, keys: &[Arc<str>]) -> bool {
    let (Value::Map(a), Value::Map(b)) = (a, b) else {
        return false;
    };
    keys.iter().all(|key| match (a.field(key), b.field(key)) {
        (Some(Ok(a)), Some(Ok(b))) => equal(&a, &b).unwrap_or(false),
        (None, None) => true,
        _ => false,
    })
}

fn element_shape(shape: &Shape) -> &Shape {
    match &shape.kind {
        ShapeKind::List(of, _) => of,
        _ => &DYN,
    }
}
