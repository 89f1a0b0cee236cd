//! RFC 6902 with Kubernetes' limits and leniency.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use super::PatchError;

const OPERATIONS_MAX: usize = 10_000;
/// How much `copy` may add to an object in all, so that a small patch cannot make a huge one.
const COPIED_MAX: usize = 3 * 1024 * 1024;

/// How deep a patch may nest an object.
const DEPTH_MAX: usize = 128;
/// How many values a patch may move, copy or add in all.
const LOOKED_AT_MAX: usize = 5_000_000;

/// RFC 6902. The whole patch is applied or none of it.
pub fn json_patch(object: &Value, patch: &[u8]) -> Result<Value, PatchError> {
    let Patch(operations) = serde_json::from_slice(patch)
        .map_err(|error| PatchError::Malformed(format!("error decoding patch: {error}")))?;
    if operations.len() > OPERATIONS_MAX {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        )));
    }
    let mut object = object.clone();
    let (mut copied, mut looked_at) = (0, 0);
    for operation in operations {
        limit_copies(&object, &operation, &mut copied)?;
        limit_depth(&object, &operation, &mut looked_at)?;
        if tests_absence(&object, &operation) {
            continue;
        }
        json_patch::patch(&mut object, std::slice::from_ref(&operation))
            .map_err(|_| PatchError::Unprocessable(refusal(&operation)))?;
    }
    Ok(object)
}

fn limit_copies(
    object: &Value,
    operation: &PatchOperation,
    copied: &mut usize,
) -> Result<(), PatchError> {
    let PatchOperation::Copy(copy) = operation else { return Ok(()) };
    *copied += object.pointer(copy.from.as_str()).map_or(0, |value| value.to_string().len());
    if *copied <= COPIED_MAX {
        return Ok(());
    }
    Err(PatchError::Unprocessable(format!(
        "Unable to complete the copy, the accumulated size increase of copy is {copied}, \
         exceeding the limit {COPIED_MAX}"
    )))
}

/// Refuses to nest a document deeper than any could be read again: what walks over it would run
/// out of stack. What is looked at for that is bounded, too.
fn limit_depth(
    object: &Value,
    operation: &PatchOperation,
    looked_at: &mut usize,
) -> Result<(), PatchError> {
    let (path, value) = match operation {
        PatchOperation::Add(add) => (&add.path, Some(&add.value)),
        PatchOperation::Replace(replace) => (&replace.path, Some(&replace.value)),
        PatchOperation::Move(moved) => (&moved.path, object.pointer(moved.from.as_str())),
        PatchOperation::Copy(copy) => (&copy.path, object.pointer(copy.from.as_str())),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(()),
    };
    let above = path.as_str().split('/').count();
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

/// Clients test with `null` that a field is not there.
fn tests_absence(object: &Value, operation: &PatchOperation) -> bool {
    match operation {
        PatchOperation::Test(test) => {
            test.value.is_null() && object.pointer(test.path.as_str()).is_none()
        }
        _ => false,
    }
}

fn refusal(operation: &PatchOperation) -> String {
    let path = operation.path();
    match operation {
        PatchOperation::Test(_) => format!("testing value {path} failed: test failed"),
        PatchOperation::Remove(_) => missing("remove", path),
        PatchOperation::Replace(_) => missing("replace", path),
        PatchOperation::Add(_) => missing("add", path),
        PatchOperation::Move(operation) => missing("move", &operation.from),
        PatchOperation::Copy(operation) => missing("copy", &operation.from),
    }
}

fn missing(operation: &str, path: impl std::fmt::Display) -> String {
    format!("{operation} operation does not apply: doc is missing path: {path}: missing value")
}
