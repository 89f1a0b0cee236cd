//! What is wrong with one field of an object, worded as Kubernetes words it.
//!
//! Validation collects [`FieldError`]s; the server turns them into one 422
//! answer with a cause each.

use serde_json::Value;

/// The kinds of mistakes a field can have; each has its own reason and wording on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// The value is not acceptable (`Invalid value: …`).
    Invalid,
    /// The field must have a value (`Required value`).
    Required,
    /// The value appears twice where it must be unique (`Duplicate value: …`).
    Duplicate,
    /// The value is not one of an enumeration (`Unsupported value: …`).
    NotSupported,
    /// The field may not be set here (`Forbidden: …`).
    Forbidden,
    /// The value is too long (`Too long: …`).
    TooLong,
    /// The list has too many items (`Too many: …`).
    TooMany,
    /// The value is of the wrong type (`Invalid value: …`, reason `FieldValueTypeInvalid`).
    TypeInvalid,
    /// What the value refers to does not exist (`Not found: …`).
    NotFound,
}

/// One mistake in one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// What sort of mistake it is.
    pub kind: FieldErrorKind,
    /// The path of the field, such as `spec.template.spec.containers[0].image`.
    pub field: String,
    /// The text after the path, such as `Required value: must not be empty`.
    pub text: String,
}

impl FieldError {
    /// `Invalid value: <value>: <detail>`
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        let text = format!("Invalid value: {}: {detail}", shown(value));
        Self::new(FieldErrorKind::Invalid, field, text)
    }

    /// `Required value[: <detail>]`
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::new(FieldErrorKind::Required, field, with_detail("Required value", detail))
    }

    /// `Duplicate value: <value>`
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new(FieldErrorKind::Duplicate, field, format!("Duplicate value: {}", shown(value)))
    }

    /// `Unsupported value: <value>: supported values: "a", "b"`
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        let value = shown(value);
        let text = format!("Unsupported value: {value}: supported values: {}", list.join(", "));
        Self::new(FieldErrorKind::NotSupported, field, text)
    }

    /// `Forbidden: <detail>`
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, with_detail("Forbidden", detail))
    }

    /// `Too long: may not be more than <max> bytes`
    pub fn too_long(field: impl Into<String>, max: usize) -> Self {
        let text = format!("Too long: may not be more than {max} bytes");
        Self::new(FieldErrorKind::TooLong, field, text)
    }

    /// `Too many: <found>: must have at most <max> items`
    pub fn too_many(field: impl Into<String>, found: usize, max: usize) -> Self {
        let items = if max == 1 { "item" } else { "items" };
        let text = format!("Too many: {found}: must have at most {max} {items}");
        Self::new(FieldErrorKind::TooMany, field, text)
    }

    /// `Not found: <value>`
    pub fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self::new(FieldErrorKind::NotFound, field, format!("Not found: {value}"))
    }

    /// The text on the wire: `<path>: <text>`.
    pub fn message(&self) -> String {
        format!("{}: {}", self.field, self.text)
    }

    /// The reason of the cause on the wire.
    pub fn reason(&self) -> &'static str {
        match self.kind {
            FieldErrorKind::Invalid => "FieldValueInvalid",
            FieldErrorKind::Required => "FieldValueRequired",
            FieldErrorKind::Duplicate => "FieldValueDuplicate",
            FieldErrorKind::NotSupported => "FieldValueNotSupported",
            FieldErrorKind::Forbidden => "FieldValueForbidden",
            FieldErrorKind::TooLong => "FieldValueTooLong",
            FieldErrorKind::TooMany => "FieldValueTooMany",
            FieldErrorKind::TypeInvalid => "FieldValueTypeInvalid",
            FieldErrorKind::NotFound => "FieldValueNotFound",
        }
    }

    fn new(kind: FieldErrorKind, field: impl Into<String>, text: String) -> Self {
        Self { kind, field: field.into(), text }
    }
}

/// A value as Kubernetes shows it: texts as Go quotes them, everything else as JSON.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), quoted)
}

/// A text in quotes, as Go's `%q` writes it.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\x07' => out.push_str(r"\a"),
            '\x08' => out.push_str(r"\b"),
            '\x0c' => out.push_str(r"\f"),
            '\n' => out.push_str(r"\n"),
            '\r' => out.push_str(r"\r"),
            '\t' => out.push_str(r"\t"),
            '\x0b' => out.push_str(r"\v"),
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            // What the debug form escapes cannot be printed.
            c if c.escape_debug().len() > 1 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn with_detail(head: &str, detail: &str) -> String {
    if detail.is_empty() { head.to_owned() } else { format!("{head}: {detail}") }
}

/// What the mistakes say, for tests to compare.
#[cfg(test)]
pub(crate) fn messages(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(FieldError::message).collect()
}
