//! RFC 6902, as far and as lenient as Kubernetes is.
//!
//! Kubernetes' own departures from the RFC are kept, because clients have come to rely on them:
//! `replace` of a field that is not there sets it, `test` for null holds where there is nothing,
//! and a negative index counts from the end.

use serde_json::{Map, Value};

use super::{PatchError, json_type};
use crate::body::syntax;

const OPERATIONS_MAX: usize = 10_000;
/// How much `copy` may add to an object in all, so that a small patch cannot make a huge one.
const COPIED_MAX: usize = 3 * 1024 * 1024;

/// How deep a patch may nest an object.
const DEPTH_MAX: usize = 128;
/// How many values a patch may move, copy or add in all.
const LOOKED_AT_MAX: usize = 5_000_000;

#[derive(Debug)]
struct Operation {
    op: String,
    path: Option<String>,
    from: Option<String>,
    value: Value,
}

/// The object or list that a path ends in, and the last part of the path.
type Target<'v> = (&'v mut Value, String);

/// RFC 6902. The whole patch is applied or none of it.
pub fn json_patch(object: &Value, patch: &[u8]) -> Result<Value, PatchError> {
    let operations = operations(patch)
        .map_err(|why| PatchError::Malformed(format!("error decoding patch: {why}")))?;
    if operations.len() > OPERATIONS_MAX {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        )));
    }
    let mut object = object.clone();
    let (mut copied, mut looked_at) = (0, 0);
    for operation in operations {
        limit_depth(&object, &operation, &mut looked_at)?;
        operation.run(&mut object, &mut copied).map_err(PatchError::Unprocessable)?;
    }
    Ok(object)
}

/// Reads a patch; what is wrong with one is told in the words of Go.
fn operations(patch: &[u8]) -> Result<Vec<Operation>, String> {
    let value: Value =
        serde_json::from_slice(patch).map_err(|error| syntax::complaint(patch, &error))?;
    match value {
        Value::Array(items) => items.into_iter().map(Operation::read).collect(),
        other => Err(unreadable(&other, "value of type []handlers.jsonPatchOp")),
    }
}

fn unreadable(value: &Value, wanted: &str) -> String {
    format!("json: cannot unmarshal {} into Go {wanted}", json_type(value))
}

/// Refuses to nest a document deeper than any could be read again: what walks over it would run
/// out of stack. What is looked at for that is bounded, too.
fn limit_depth(
    object: &Value,
    operation: &Operation,
    looked_at: &mut usize,
) -> Result<(), PatchError> {
    let value = match operation.op.as_str() {
        "add" | "replace" => Some(&operation.value),
        "move" | "copy" => operation.from.as_deref().and_then(|from| value_at(object, from)),
        _ => None,
    };
    let above = operation.path.as_deref().unwrap_or("").split('/').count();
    let mut open: Vec<(usize, &Value)> = value.map(|value| (above, value)).into_iter().collect();
    while let Some((depth, value)) = open.pop() {
        *looked_at += 1;
        if depth > DEPTH_MAX || *looked_at > LOOKED_AT_MAX {
            let why = "the patch nests the object too deeply, or moves too much of it";
            return Err(PatchError::Unprocessable(why.to_owned()));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (depth + 1, item))),
            Value::Object(fields) => open.extend(fields.values().map(|value| (depth + 1, value))),
            _ => {}
        }
    }
    Ok(())
}

impl Operation {
    fn read(item: Value) -> Result<Self, String> {
        let mut fields = match item {
            Value::Object(fields) => fields,
            // Nothing is an operation of no kind.
            Value::Null => Map::new(),
            other => return Err(unreadable(&other, "value of type handlers.jsonPatchOp")),
        };
        let value = fields.remove("value").unwrap_or_default();
        let mut text = |name: &str| match fields.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => {
                let wanted = format!("struct field jsonPatchOp.{name} of type string");
                Err(unreadable(&other, &wanted))
            }
        };
        let op = text("op")?.unwrap_or_else(|| "unknown".to_owned());
        Ok(Self { op, path: text("path")?, from: text("from")?, value })
    }

    fn run(self, object: &mut Value, copied: &mut usize) -> Result<(), String> {
        match self.op.as_str() {
            "add" => self.add(object),
            "remove" => self.remove(object),
            "replace" => self.replace(object),
            "move" => self.move_value(object),
            "copy" => self.copy(object, copied),
            "test" => self.test(object),
            other => Err(format!("Unexpected kind: {other}")),
        }
    }

    fn add(self, object: &mut Value) -> Result<(), String> {
        let path = needed("add", "path", self.path)?;
        let target = find(object, &path).ok_or_else(|| {
            format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
        })?;
        add(target, self.value).map_err(|e| format!("error in add for path: '{path}': {e}"))
    }

    fn remove(self, object: &mut Value) -> Result<(), String> {
        let path = needed("remove", "path", self.path)?;
        let target = find(object, &path).ok_or_else(|| {
            format!(
                "remove operation does not apply: doc is missing path: \"{path}\": missing value"
            )
        })?;
        let removed = remove(target);
        removed.map(|_| ()).map_err(|e| format!("error in remove for path: '{path}': {e}"))
    }

    fn replace(self, object: &mut Value) -> Result<(), String> {
        let path = needed("replace", "path", self.path)?;
        if path.is_empty() {
            if !(self.value.is_object() || self.value.is_array()) {
                return Err("replace operation value must be object or array".to_owned());
            }
            *object = self.value;
            return Ok(());
        }
        let missing = |what: &str| {
            format!(
                "replace operation does not apply: doc is missing {what}: {path}: missing value"
            )
        };
        match find(object, &path).ok_or_else(|| missing("path"))? {
            (Value::Object(map), key) => {
                map.insert(key, self.value);
            }
            (Value::Array(items), key) => {
                let at = index(&key, items.len()).map_err(|_| missing("key"))?;
                *items.get_mut(at).ok_or_else(|| missing("key"))? = self.value;
            }
            _ => return Err(missing("path")),
        }
        Ok(())
    }

    fn move_value(self, object: &mut Value) -> Result<(), String> {
        let from = needed("move", "from", self.from)?;
        let path = needed("move", "path", self.path)?;
        let (holder, key) = find(object, &from).ok_or_else(|| {
            format!(
                "move operation does not apply: doc is missing from path: {from}: missing value"
            )
        })?;
        let value = remove((holder, key.clone()))
            .map_err(|e| format!("error in move for path: '{key}': {e}"))?;
        let target = find(object, &path).ok_or_else(|| {
            format!(
                "move operation does not apply: doc is missing destination path: {path}: missing value"
            )
        })?;
        add(target, value).map_err(|e| format!("error in move for path: '{path}': {e}"))
    }

    fn copy(self, object: &mut Value, copied: &mut usize) -> Result<(), String> {
        let from = needed("copy", "from", self.from)?;
        let path = needed("copy", "path", self.path)?;
        let target = find(object, &from).ok_or_else(|| {
            format!(
                "copy operation does not apply: doc is missing from path: {from}: missing value"
            )
        })?;
        let value = get(&target)
            .map_err(|e| format!("error in copy for from: '{from}': {e}"))?
            .cloned()
            .unwrap_or_default();
        let target = find(object, &path).ok_or_else(|| {
            format!(
                "copy operation does not apply: doc is missing destination path: {path}: missing value"
            )
        })?;
        *copied += if value.is_null() { 0 } else { value.to_string().len() };
        if *copied > COPIED_MAX {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {copied}, \
                 exceeding the limit {COPIED_MAX}"
            ));
        }
        add(target, value).map_err(|e| format!("error while adding value during copy: {e}"))
    }

    fn test(self, object: &mut Value) -> Result<(), String> {
        let path = needed("test", "path", self.path)?;
        let failed = || format!("testing value {path} failed: test failed");
        if path.is_empty() {
            return if *object == self.value { Ok(()) } else { Err(failed()) };
        }
        let target = find(object, &path).ok_or_else(|| {
            format!("test operation does not apply: is missing path: {path}: missing value")
        })?;
        let found = get(&target).map_err(|e| format!("error in test for path: '{path}': {e}"))?;
        if *found.unwrap_or(&Value::Null) == self.value { Ok(()) } else { Err(failed()) }
    }
}

fn needed(operation: &str, what: &str, path: Option<String>) -> Result<String, String> {
    path.ok_or_else(|| format!("{operation} operation failed to decode {what}: missing value"))
}

/// Where a path leads; `None` if there is nothing on the way.
fn find<'v>(object: &'v mut Value, path: &str) -> Option<Target<'v>> {
    let (holders, key) = path.rsplit_once('/')?;
    // What stands before the first slash is nothing.
    let holders = holders.split_once('/').map(|(_, holders)| holders);
    let mut holder = object;
    for part in holders.into_iter().flat_map(|holders| holders.split('/')) {
        let part = unescaped(part);
        holder = match holder {
            Value::Object(map) => map.get_mut(&part)?,
            Value::Array(items) => {
                let at = index(&part, items.len()).ok()?;
                items.get_mut(at)?
            }
            _ => return None,
        };
    }
    (holder.is_object() || holder.is_array()).then(|| (holder, unescaped(key)))
}

/// The value that a path leads to, by the rules of [`find`].
fn value_at<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    let (_, path) = path.split_once('/')?;
    path.split('/').map(unescaped).try_fold(object, |holder, part| match holder {
        Value::Array(items) => items.get(index(&part, items.len()).ok()?),
        holder => holder.get(part.as_str()),
    })
}

fn get<'v>((holder, key): &'v Target<'_>) -> Result<Option<&'v Value>, String> {
    match &**holder {
        Value::Array(items) => {
            let at = index(key, items.len())?;
            items.get(at).map(Some).ok_or_else(|| invalid_index(key))
        }
        holder => Ok(holder.get(key.as_str())),
    }
}

fn add((holder, key): Target<'_>, value: Value) -> Result<(), String> {
    match holder {
        Value::Object(map) => {
            map.insert(key, value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            // One may add behind the last item.
            let at = index(&key, items.len() + 1).map_err(|error| match error {
                error if error.starts_with("strconv") => {
                    format!("value was not a proper array index: '{key}': {error}")
                }
                error => error,
            })?;
            if at > items.len() {
                return Err(invalid_index(&key));
            }
            items.insert(at, value);
        }
        _ => {}
    }
    Ok(())
}

fn remove((holder, key): Target<'_>) -> Result<Value, String> {
    match holder {
        Value::Array(items) => {
            let at = index(&key, items.len())?;
            if at >= items.len() {
                return Err(invalid_index(&key));
            }
            Ok(items.remove(at))
        }
        holder => holder
            .as_object_mut()
            .and_then(|map| map.remove(&key))
            .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
    }
}

/// The index that a part of a path means in a list of that length; it may be too large.
fn index(key: &str, length: usize) -> Result<usize, String> {
    let at: i64 =
        key.parse().map_err(|_| format!("strconv.Atoi: parsing {key:?}: invalid syntax"))?;
    let from_end = i64::try_from(length).ok().and_then(|length| length.checked_add(at));
    let at = if at < 0 { from_end.unwrap_or(-1) } else { at };
    usize::try_from(at).map_err(|_| invalid_index(key))
}

fn invalid_index(key: &str) -> String {
    let key: i64 = key.parse().unwrap_or_default();
    format!("Unable to access invalid index: {key}: invalid index referenced")
}

fn unescaped(part: &str) -> String {
    if part.contains('~') { part.replace("~1", "/").replace("~0", "~") } else { part.to_owned() }
}
