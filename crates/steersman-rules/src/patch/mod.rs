//! JSON patch, merge patch and strategic merge patch.
//!
//! Each takes the stored object and the request's body and gives the new object; what follows
//! (defaults, validation, ownership) is the same as for an update. Messages are Kubernetes'.

mod json;
mod merge;
mod printed;
mod strategic;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::body::syntax;
use crate::schema::Schema;

pub use json::json_patch;
pub use printed::{printed, printed_type};

/// Why a patch was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself cannot be read (400).
    #[error("{0}")]
    Malformed(String),
    /// The patch does not fit the object, for example a failed test (422).
    #[error("{0}")]
    Unprocessable(String),
    /// The patch cannot be carried out, which Kubernetes takes for its own failure (500).
    #[error("{0}")]
    Failed(String),
    /// The patch has too many operations (413).
    #[error("{0}")]
    TooLarge(String),
}

/// RFC 7396.
pub fn merge_patch(object: &Value, patch: &[u8]) -> Result<Value, PatchError> {
    if patch.trim_ascii() == b"null" {
        return Err(PatchError::Malformed("Invalid JSON Patch".to_owned()));
    }
    let patch = parse_object(patch)
        .map_err(|text| PatchError::Malformed(format!("error decoding patch: {text}")))?;
    Ok(merged(object, &Value::Object(patch)))
}

/// RFC 7396, with a patch that was read already.
pub fn merged(object: &Value, patch: &Value) -> Value {
    let mut object = object.clone();
    merge::merge(&mut object, patch);
    object
}

/// Kubernetes' merge patch that knows merge keys and directives.
pub fn strategic_merge_patch(
    schema: &Schema,
    object: &Value,
    patch: &[u8],
) -> Result<Value, PatchError> {
    let patch = parse_object(patch).map_err(PatchError::Malformed)?;
    strategic::apply(&schema.root(), object, patch)
}

fn parse_object(patch: &[u8]) -> Result<Map<String, Value>, String> {
    let read = serde_json::from_slice(patch);
    match read.map_err(|error| syntax::complaint(patch, &error))? {
        Value::Object(patch) => Ok(patch),
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_type(&other)
        )),
    }
}

/// The type of a value, as Go's decoder names it.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
