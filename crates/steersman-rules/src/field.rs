//! What is wrong with one field of an object, worded as Kubernetes words it.
//!
//! Validation collects [`FieldError`]s; the server turns them into one 422
//! answer with a cause each.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::ops::Deref;

use serde_json::Value;
use steersman_values::quoted;

/// How much of a value a mistake shows; a list may be wrong in every item, and each mistake shows
/// the list.
const SHOWN_MAX: usize = 8 * 1024;

/// How many mistakes of one object are kept, and how many bytes they take in all. Nobody reads
/// more, and an object may be nothing but mistakes.
const ERRORS_MAX: usize = 1000;
const ERRORS_SIZE_MAX: usize = 1 << 20;

/// How Kubernetes writes the path of a mistake that is in no field.
pub const NOWHERE: &str = "[]";

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
    /// The server cannot tell whether the value is acceptable (`Internal error: …`).
    Internal,
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

    /// The same, of a value that is shown in other words than its own.
    pub fn invalid_shown(field: impl Into<String>, shown: &str, detail: &str) -> Self {
        Self::new(
            FieldErrorKind::Invalid,
            field,
            format!("Invalid value: {}: {detail}", cut(shown)),
        )
    }

    /// `Duplicate value: <value>`, in other words than its own.
    pub(crate) fn duplicate_shown(field: impl Into<String>, shown: &str) -> Self {
        Self::new(FieldErrorKind::Duplicate, field, format!("Duplicate value: {}", cut(shown)))
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
        Self::unsupported(field, &shown(value), supported)
    }

    /// The same, of a value that is shown in other words than its own.
    pub(crate) fn not_supported_shown(
        field: impl Into<String>,
        shown: &str,
        supported: &[&str],
    ) -> Self {
        Self::unsupported(field, &cut(shown), supported)
    }

    /// `Forbidden: <detail>`
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, with_detail("Forbidden", detail))
    }

    /// `Too long: may not be more than <max> bytes`
    pub fn too_long(field: impl Into<String>, max: usize) -> Self {
        let bytes = if max == 1 { "byte" } else { "bytes" };
        let text = format!("Too long: may not be more than {max} {bytes}");
        Self::new(FieldErrorKind::TooLong, field, text)
    }

    /// `Too many: <found>: must have at most <max> items`
    pub fn too_many(field: impl Into<String>, found: usize, max: usize) -> Self {
        let items = if max == 1 { "item" } else { "items" };
        let text = format!("Too many: {found}: must have at most {max} {items}");
        Self::new(FieldErrorKind::TooMany, field, text)
    }

    /// `Internal error: <detail>`
    pub fn internal(field: impl Into<String>, detail: &str) -> Self {
        Self::new(FieldErrorKind::Internal, field, with_detail("Internal error", detail))
    }

    /// `Not found: <value>`
    pub fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self::new(FieldErrorKind::NotFound, field, format!("Not found: {}", shown_as_json(value)))
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
            FieldErrorKind::Internal => "InternalError",
        }
    }

    fn unsupported(field: impl Into<String>, shown: &str, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        let text = format!("Unsupported value: {shown}: supported values: {}", list.join(", "));
        Self::new(FieldErrorKind::NotSupported, field, text)
    }

    fn new(kind: FieldErrorKind, field: impl Into<String>, text: String) -> Self {
        Self { kind, field: field.into(), text }
    }
}

/// The mistakes found so far, as many as are told.
#[derive(Clone, Debug, Default)]
pub struct Errors {
    told: Vec<FieldError>,
    /// The bytes of what is told.
    size: usize,
}

impl Errors {
    /// Adds a mistake, unless there are enough. One is always told.
    pub fn push(&mut self, error: FieldError) {
        if self.told.len() < ERRORS_MAX && self.size < ERRORS_SIZE_MAX {
            self.size += error.field.len() + error.text.len();
            self.told.push(error);
        }
    }

    /// Whether nothing that is added would be told.
    pub(crate) fn is_full(&self) -> bool {
        self.told.len() >= ERRORS_MAX || self.size >= ERRORS_SIZE_MAX
    }
}

impl Deref for Errors {
    type Target = [FieldError];

    fn deref(&self) -> &[FieldError] {
        &self.told
    }
}

impl Extend<FieldError> for Errors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}

impl FromIterator<FieldError> for Errors {
    fn from_iter<I: IntoIterator<Item = FieldError>>(errors: I) -> Self {
        let mut all = Self::default();
        all.extend(errors);
        all
    }
}

impl IntoIterator for Errors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.told.into_iter()
    }
}

impl From<Errors> for Vec<FieldError> {
    fn from(errors: Errors) -> Self {
        errors.told
    }
}

/// A value as Kubernetes shows it: texts as Go quotes them, everything else as JSON. What is very
/// long is cut.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.len() <= SHOWN_MAX => quoted(text),
        Value::String(text) => {
            format!("{}...", quoted(&text[..text.floor_char_boundary(SHOWN_MAX)]))
        }
        value => shown_as_json(value),
    }
}

/// A text, cut where it is very long.
fn cut(text: &str) -> Cow<'_, str> {
    match text.floor_char_boundary(SHOWN_MAX) {
        end if end < text.len() => Cow::Owned(format!("{}...", &text[..end])),
        _ => Cow::Borrowed(text),
    }
}

/// A value as JSON as Go writes it, cut where it is very long.
pub(crate) fn shown_as_json(value: &Value) -> String {
    let mut out = Cut { text: String::new(), is_cut: false };
    // An error ends the writing where it was cut.
    let _ = write!(out, "{value}");
    if out.is_cut { out.text + "..." } else { out.text }
}

/// The beginning of a text that is being written.
struct Cut {
    text: String,
    is_cut: bool,
}

impl Write for Cut {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        // Only texts have these; Go writes them so that a page may include the JSON.
        if let Some(at) = part.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let (before, rest) = part.split_at(at);
            let mut rest = rest.chars();
            let marked = rest.next().map_or(0, u32::from);
            self.plain(before)?;
            self.plain(&format!("\\u{marked:04x}"))?;
            return self.write_str(rest.as_str());
        }
        self.plain(part)
    }
}

impl Cut {
    fn plain(&mut self, part: &str) -> fmt::Result {
        if self.text.len() + part.len() <= SHOWN_MAX {
            self.text.push_str(part);
            return Ok(());
        }
        let end = part.floor_char_boundary(SHOWN_MAX - self.text.len());
        self.text.push_str(&part[..end]);
        self.is_cut = true;
        Err(fmt::Error)
    }
}

fn with_detail(head: &str, detail: &str) -> String {
    if detail.is_empty() { head.to_owned() } else { format!("{head}: {detail}") }
}

/// What the mistakes say, for tests to compare.
#[cfg(test)]
pub(crate) fn messages(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(FieldError::message).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Errors, FieldError};

    #[test]
    fn what_is_no_text_is_shown_as_json_that_a_page_may_include() {
        let value = json!({"a": "1 < 2 && 3 > 2"});
        assert_eq!(
            FieldError::invalid("x", &value, "no").text,
            r#"Invalid value: {"a":"1 \u003c 2 \u0026\u0026 3 \u003e 2"}: no"#
        );
        assert_eq!(FieldError::invalid("x", &json!("<"), "no").text, r#"Invalid value: "<": no"#);
    }

    #[test]
    fn an_object_that_is_all_mistakes_is_told_of_some() {
        let list: Value = (0..50_000).map(|i| json!(format!("scope-{i}"))).collect();
        let one = FieldError::invalid("spec.scopes", &list, "unsupported scope");
        assert!(one.text.len() < 10_000, "{}", one.text.len());
        assert!(one.text.ends_with("...: unsupported scope"));
        let mut errors = Errors::default();
        errors.extend((0..50_000).map(|_| one.clone()));
        assert!(errors.iter().map(|error| error.text.len()).sum::<usize>() < 2 << 20);
        let small = (0..50_000).map(|i| FieldError::required(format!("spec.a[{i}]"), ""));
        assert_eq!(small.collect::<Errors>().len(), 1000);
        let long = FieldError::invalid("a", &json!("\u{e9}".repeat(50_000)), "too long");
        assert!(long.text.len() < 10_000 && long.text.contains("\"...: too long"));
        assert!(FieldError::not_found("a", &list).text.len() < 10_000);
    }
}
