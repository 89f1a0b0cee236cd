//! The options of writes, in the query or in the body of a DELETE, and what is wrong with them.

use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_rules::resource::Named;
use steersman_rules::resource::Verb;
use steersman_values::quoted;

use crate::call::Call;
use crate::status::{Result, Status};

/// The longest name of a field manager.
const MANAGER_MAX: usize = 128;

/// What happens to fields that strict decoding complains about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// They are passed over.
    Ignore,
    /// The client is warned.
    Warn,
    /// The request is refused.
    Strict,
}

impl FieldValidation {
    /// What the query wants; a warning where it says nothing.
    pub(crate) fn of(call: &Call) -> Self {
        match call.info.query.text("fieldValidation") {
            Some("Ignore") => Self::Ignore,
            Some("Strict") => Self::Strict,
            _ => Self::Warn,
        }
    }
}

/// Refuses a write whose query has options that do not exist.
pub(crate) fn check(call: &Call) -> Result<()> {
    let kind = match call.info.verb {
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Patch => "PatchOptions",
        Verb::Delete | Verb::DeleteCollection => "DeleteOptions",
        Verb::Get | Verb::List | Verb::Watch => return Ok(()),
    };
    let query = &call.info.query;
    let mut errors = Vec::new();
    if kind != "DeleteOptions" {
        errors.extend(manager_errors(query.text("fieldManager").unwrap_or("")));
    }
    let dry_run: Vec<&str> = query.all("dryRun").collect();
    errors.extend(dry_run_error(&dry_run));
    if kind != "DeleteOptions" {
        errors.extend(validation_error(query.text("fieldValidation").unwrap_or("")));
    }
    refuse(kind, &errors)
}

/// Refuses options of that kind if they have mistakes.
fn refuse(kind: &str, errors: &[FieldError]) -> Result<()> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(Named { group: "meta.k8s.io", resource: kind, name: "" }, errors))
}

/// Only a dry run of everything exists.
fn dry_run_error(values: &[&str]) -> Option<FieldError> {
    let odd = values.iter().any(|value| *value != "All");
    odd.then(|| FieldError::not_supported("dryRun", &Value::from(values.to_vec()), &["All"]))
}

fn manager_errors(manager: &str) -> Vec<FieldError> {
    const FIELD: &str = "fieldManager";
    let mut errors = Vec::new();
    if manager.len() > MANAGER_MAX {
        errors.push(FieldError::too_long(FIELD, MANAGER_MAX));
    }
    let odd = manager.char_indices().filter(|(_, c)| !is_printable(*c));
    errors.extend(odd.map(|(at, odd)| {
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(odd));
        FieldError::invalid(FIELD, &manager.into(), &why)
    }));
    errors
}

/// Whether Go prints a character as it is, even in quotes.
fn is_printable(c: char) -> bool {
    let quoted_as_is = |c: char| quoted(c.encode_utf8(&mut [0; 4])).chars().count() == 3;
    matches!(c, ' '..='~') || (!c.is_ascii() && quoted_as_is(c))
}

fn validation_error(text: &str) -> Option<FieldError> {
    const KNOWN: [&str; 4] = ["", "Ignore", "Strict", "Warn"];
    let unknown = !KNOWN.contains(&text);
    unknown.then(|| FieldError::not_supported("fieldValidation", &text.into(), &KNOWN))
}
