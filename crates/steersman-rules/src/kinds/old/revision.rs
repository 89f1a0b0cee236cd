//! `ControllerRevisions`: what a set of pods was, kept to go back to.

use serde_json::Value;

use crate::field::FieldError;
use crate::rules::Strategy;
use crate::rules::at::At;

/// The strategy of controller revisions.
#[derive(Debug)]
pub(in crate::kinds) struct ControllerRevision;

impl Strategy for ControllerRevision {
    fn validate_create(&self, revision: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let root = At::root(revision);
        root.at("revision").not_negative(&mut errors);
        let data = root.at("data");
        if data.is_absent() {
            errors.push(data.required("data is mandatory"));
        } else if !data.value.is_object() {
            errors.push(data.required("data must be a valid JSON object"));
        }
        errors
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let root = At::root(new);
        root.at("revision").not_negative(&mut errors);
        if old["data"] != new["data"] {
            errors.push(root.at("data").invalid("field is immutable"));
        }
        errors
    }
}
