//! Defaults that custom schemas state.

use std::io;

use serde_json::Value;

use super::node::{Node, Shape};

/// The most bytes that defaults may add to an object: what the largest object has that can be
/// stored, so that only what could not be stored anyway is refused here.
pub const ADDED_MAX: usize = 3 * 512 * 1024;

/// The defaults of an object's schema would make it too large for any store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("defaults would add more than {ADDED_MAX} bytes to the object")]
pub struct DefaultsTooLarge;

/// The most objects that the lists of a built-in kind may have, all together. The rules of such a
/// kind fill in what an item leaves out, which is sixteen bytes or more (`"protocol":"TCP"`).
const ITEMS_MAX: usize = ADDED_MAX / 16;

/// Refuses an object of a built-in kind that has too many items to be filled in: a few megabytes of
/// empty containers would become gigabytes.
pub(super) fn check_items(object: &Value) -> Result<(), DefaultsTooLarge> {
    if items(object) > ITEMS_MAX { Err(DefaultsTooLarge) } else { Ok(()) }
}

/// How many objects stand in lists.
fn items(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.values().map(items).sum(),
        Value::Array(values) => {
            let of_value = |value: &Value| usize::from(value.is_object()) + items(value);
            values.iter().map(of_value).sum()
        }
        _ => 0,
    }
}

/// Fills in defaults, outermost first, so that a defaulted object gets its own defaults too. Nulls
/// where null is not a value count as left out.
pub(super) fn apply(node: &Node, value: &mut Value) -> Result<(), DefaultsTooLarge> {
    let mut left = Left(ADDED_MAX);
    fill(node, value, &mut left)
}

fn fill(node: &Node, value: &mut Value, left: &mut Left) -> Result<(), DefaultsTooLarge> {
    if let Some(own) = node.own() {
        fill(own, value, left)?;
    }
    match value {
        Value::Object(map) => {
            if let Shape::Map(below) = &node.shape {
                map.values_mut().try_for_each(|value| replace_null(below, value, left))?;
            }
            map.retain(|key, value| !value.is_null() || keeps_null(node, key));
            for field in node.object().map(|object| &object.fields).into_iter().flatten() {
                let default = field.node.default();
                if let Some(default) = default.filter(|_| !map.contains_key(field.name.as_ref())) {
                    left.take(&field.name, default)?;
                    map.insert(field.name.to_string(), default.clone());
                }
            }
            map.iter_mut().try_for_each(|(key, value)| fill(node.child(key), value, left))
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| {
            replace_null(node.item(), item, left)?;
            fill(node.item(), item, left)
        }),
        _ => Ok(()),
    }
}

/// Puts the default of an item, or of a map's value, in the place of a null that is no value.
fn replace_null(node: &Node, value: &mut Value, left: &mut Left) -> Result<(), DefaultsTooLarge> {
    let default = node.default().filter(|_| value.is_null() && !node.is_nullable());
    if let Some(default) = default {
        left.take("", default)?;
        *value = default.clone();
    }
    Ok(())
}

/// How many bytes defaults may still add.
struct Left(usize);

impl Left {
    /// Counts a field that is added, before it is.
    fn take(&mut self, name: &str, default: &Value) -> Result<(), DefaultsTooLarge> {
        // Quotes, a colon and a comma.
        self.spend(name.len() + 4)?;
        serde_json::to_writer(self, default).map_err(|_| DefaultsTooLarge)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), DefaultsTooLarge> {
        self.0 = self.0.checked_sub(bytes).ok_or(DefaultsTooLarge)?;
        Ok(())
    }
}

/// A value that is written here is only counted.
impl io::Write for Left {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.spend(bytes.len()).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Null stays where it is allowed, and where no schema speaks.
fn keeps_null(node: &Node, key: &str) -> bool {
    let child = node.child(key);
    child.is_nullable() || matches!(node.shape, Shape::Any | Shape::Raw)
}
