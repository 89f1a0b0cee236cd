//! JSON patch, merge patch and strategic merge patch.
//!
//! Each takes the stored object and the request's body and gives the new object; what follows
//! (defaults, validation, ownership) is the same as for an update.

mod json;
mod strategic;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::schema::Schema;

pub use json::json_patch;

/// Why a patch was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself cannot be read (400).
    #[error("{0}")]
    Malformed(String),
    /// The patch does not fit the object, for example a failed test (422).
    #[error("{0}")]
    Unprocessable(String),
    /// The patch has too many operations (413).
    #[error("{0}")]
    TooLarge(String),
}

/// RFC 7386.
pub fn merge_patch(object: &Value, patch: &[u8]) -> Result<Value, PatchError> {
    let patch = parse_object(patch)?;
    let mut object = object.clone();
    json_patch::merge(&mut object, &patch);
    Ok(object)
}

/// Kubernetes' merge patch that knows merge keys and directives.
pub fn strategic_merge_patch(
    schema: &Schema,
    object: &Value,
    patch: &[u8],
) -> Result<Value, PatchError> {
    strategic::apply(schema.root(), object, parse_object(patch)?)
}

fn parse_object(patch: &[u8]) -> Result<Value, PatchError> {
    let malformed = |text: String| PatchError::Malformed(format!("error decoding patch: {text}"));
    let patch: Value =
        serde_json::from_slice(patch).map_err(|error| malformed(error.to_string()))?;
    if patch.is_object() {
        Ok(patch)
    } else {
        Err(malformed("a patch must be an object".to_owned()))
    }
}
