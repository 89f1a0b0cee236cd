//! The names of those who own fields, in options and in `metadata.managedFields`.

use serde_json::Value;
use steersman_values::quoted::is_printable;

use crate::field::{Errors, FieldError};

/// The longest name of a field manager.
const MANAGER_MAX: usize = 128;

/// The longest name of the subresource that a manager writes through.
const SUBRESOURCE_MAX: usize = 256;

/// The mistakes in the name of a field manager, as many as are told: each shows the whole name.
pub fn validate_manager(manager: &str, field: &str) -> Errors {
    let mut errors = Errors::default();
    if manager.len() > MANAGER_MAX {
        errors.push(FieldError::too_long(field, MANAGER_MAX));
    }
    for (at, odd) in manager.char_indices().filter(|(_, c)| !is_printable(*c)) {
        if errors.is_full() {
            break;
        }
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(odd));
        errors.push(FieldError::invalid(field, &manager.into(), &why));
    }
    errors
}

/// The mistakes in who owns the fields of an object. What no manager can be made of is gone already.
pub(super) fn validate_managers(entries: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    for (index, entry) in entries.as_array().into_iter().flatten().enumerate() {
        let text = |field: &str| entry[field].as_str().unwrap_or_default();
        let manager = text("manager");
        if manager.len() > MANAGER_MAX || !manager.chars().all(is_printable) {
            let field = format!("metadata.managedFields[{index}].manager");
            errors.extend(validate_manager(manager, &field));
        }
        if text("subresource").len() > SUBRESOURCE_MAX {
            let field = format!("metadata.managedFields[{index}].subresource");
            errors.push(FieldError::too_long(field, SUBRESOURCE_MAX));
        }
    }
    errors.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::validate_managers;
    use crate::field::messages;

    #[test]
    fn managers_have_short_names_that_can_be_read() {
        let entries = json!([
            {"manager": "kubectl edit", "subresource": "status"},
            {"manager": "\u{e9}".repeat(64)},
            {"manager": "x".repeat(129)},
            {"manager": "a\tb"},
            {"subresource": "s".repeat(257)},
        ]);
        assert_eq!(
            messages(&validate_managers(&entries)),
            [
                "metadata.managedFields[2].manager: Too long: may not be more than 128 bytes",
                "metadata.managedFields[3].manager: Invalid value: \"a\\tb\": invalid character \
                 U+0009 (at position 1)",
                "metadata.managedFields[4].subresource: Too long: may not be more than 256 bytes",
            ]
        );
        assert!(validate_managers(&json!(null)).is_empty());
        let endless = json!([{"manager": "\u{1}".repeat(1 << 20)}]);
        assert!((2..1000).contains(&validate_managers(&endless).len()));
    }
}
