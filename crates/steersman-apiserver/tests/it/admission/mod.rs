//! Admission webhooks: who is asked about what, and what the answers do.

mod answers;
mod changes;
mod hostile;
mod hostile_socket;
mod https;
mod matching;
mod mistyped;

use serde_json::{Value, json};

use crate::webhooks::patched;

/// Allows, and sets a field.
fn set(path: &str, value: &Value) -> Value {
    patched(&json!([{"op": "add", "path": path, "value": value}]))
}
