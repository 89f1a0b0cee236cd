//! RFC 6902 with Kubernetes' limits and leniency.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use super::PatchError;

const OPERATIONS_MAX: usize = 10_000;
/// How much `copy` may add to an object in all, so that a small patch cannot make a huge one.
const COPIED_MAX: usize = 3 * 1024 * 1024;

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
    let mut copied = 0;
    for operation in operations {
        limit_copies(&object, &operation, &mut copied)?;
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
