//! What the rules of kinds are written with: a value and its place ([`at`]), the parts of a kind's
//! behaviour ([`Rules`]), and rules that many kinds share.

pub(crate) mod address;
pub(crate) mod at;
pub(crate) mod condition;
pub(crate) mod document;
pub mod internal;
pub(crate) mod label_selector;
pub(crate) mod resource_name;
pub(crate) mod rollout;
mod rules;
pub(crate) mod webhook_client;

use std::fmt::Debug;
use std::time::Duration;

use serde_json::Value;

use crate::apply::Resets;
use crate::field::FieldError;

pub use self::rules::Rules;

/// Defaults and rules of one kind, over its document.
pub trait Strategy: Debug + Send + Sync {
    /// Fills in what the client left out, as Kubernetes does. Runs before validation, on every write.
    fn default(&self, _object: &mut Value) {}

    /// Resets what a client may not set when creating, such as status.
    fn prepare_create(&self, _object: &mut Value) {}

    /// Resets what a client may not change with an update of the main resource.
    fn prepare_update(&self, _old: &Value, _new: &mut Value) {}

    /// The mistakes in a new object.
    fn validate_create(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// The mistakes in an object that exists, a part of which has changed.
    fn validate_existing(&self, object: &Value) -> Vec<FieldError> {
        self.validate_create(object)
    }

    /// The mistakes in an update, such as changes of immutable fields.
    fn validate_update(&self, _old: &Value, new: &Value) -> Vec<FieldError> {
        self.validate_create(new)
    }

    /// Puts back what a writer of the status may not change, or does not know of.
    fn prepare_status_update(&self, _old: &Value, _new: &mut Value) {}

    /// The mistakes in an update through the status subresource.
    fn validate_status_update(&self, _old: &Value, _new: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What is valid but hardly meant, for the client to read; `old` is what it changes, if
    /// anything.
    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// Whether a change counts as a new generation although the spec is as it was.
    fn is_new_generation(&self, _old: &Value, _new: &Value) -> bool {
        false
    }

    /// How long deletion waits for a graceful end, in seconds; zero deletes at once.
    /// `requested` is what the client asked for.
    fn grace_period(&self, _object: &Value, _requested: Option<i64>) -> i64 {
        0
    }

    /// Whether a client may give status when creating; nodes register themselves with theirs.
    fn keeps_status(&self) -> bool {
        false
    }

    /// What a write through a subresource, or through none, resets; nobody owns it by that.
    fn resets(&self, subresource: &str) -> Resets<'static> {
        if subresource.is_empty() { &[&["status"]] } else { &[] }
    }

    /// The annotations that only the whole object has: to Kubernetes they are fields of the kind,
    /// which metadata on its own lacks.
    fn annotated_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// How long an object stays after it was last written; `None` is until it is deleted.
    fn ttl(&self) -> Option<Duration> {
        None
    }

    /// Why an object may not be deleted, if it may not.
    fn refuses_deletion(&self, _object: &Value) -> Option<&'static str> {
        None
    }

    /// Marks an object whose deletion begins, such as a namespace's phase.
    fn begin_deletion(&self, _object: &mut Value) {}

    /// Whether something besides `metadata.finalizers` still holds a deleted object.
    fn holds_deletion(&self, _object: &Value) -> bool {
        false
    }
}

/// A kind without behaviour of its own.
#[derive(Debug)]
pub struct Plain;

impl Strategy for Plain {}
