//! The options of writes, in the query or in the body of a DELETE, and what is wrong with them.

use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_rules::names::validate_manager;
use steersman_rules::resource::Named;
use steersman_rules::resource::Verb;

use crate::call::Call;
use crate::status::{Result, Status};

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
    if call.info.verb == Verb::Patch {
        errors.extend(patch_error(call));
    }
    if kind != "DeleteOptions" {
        errors.extend(validate_manager(query.text("fieldManager").unwrap_or(""), "fieldManager"));
    }
    let dry_run: Vec<&str> = query.all("dryRun").collect();
    errors.extend(dry_run_error(&dry_run));
    if kind != "DeleteOptions" {
        errors.extend(validation_error(query.text("fieldValidation").unwrap_or("")));
    }
    refuse(kind, &errors)
}

/// Nobody can apply without a name to be known by. Only an apply can meet other managers, and so only
/// it can be forced.
fn patch_error(call: &Call) -> Option<FieldError> {
    let query = &call.info.query;
    if call.is_apply() {
        let is_nameless = query.text("fieldManager").is_none();
        let error = || FieldError::required("fieldManager", "is required for apply patch");
        return is_nameless.then(error);
    }
    let error = || FieldError::forbidden("force", "may not be specified for non-apply patch");
    query.get("force").is_some().then(error)
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

fn validation_error(text: &str) -> Option<FieldError> {
    const KNOWN: [&str; 4] = ["", "Ignore", "Strict", "Warn"];
    let unknown = !KNOWN.contains(&text);
    unknown.then(|| FieldError::not_supported("fieldValidation", &text.into(), &KNOWN))
}
