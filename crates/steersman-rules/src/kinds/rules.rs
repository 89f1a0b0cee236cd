//! Kinds whose behaviour is a handful of functions over their parts.
//!
//! A family's file holds the functions and one constant a kind; [`super::for_kind`] lists the
//! constants. Every check gets the object as a [`At`] and what was stored before, which is null
//! for a new object, so that values of old can be let pass.

use std::time::Duration;

use serde_json::Value;

use super::at::{At, Errors};
use super::document::set;
use super::{Plain, Strategy};
use crate::apply::Resets;
use crate::field::FieldError;

/// What a check does: the object, what was stored before (or null), and the mistakes so far.
pub(super) type Check = fn(&At<'_, '_>, &Value, &mut Errors);

/// A strategy put together from functions.
#[derive(Debug)]
pub(super) struct Rules {
    /// Fills in what is absent.
    pub(super) default: fn(&mut Value),
    /// The status of a new object; `None` keeps what the client sent.
    pub(super) status: Option<fn() -> Value>,
    /// Resets what a client may not change with an update.
    pub(super) keep: fn(&Value, &mut Value),
    /// The mistakes in an object, on every write.
    pub(super) check: Check,
    /// The mistakes in going from one object to another, besides those of the second.
    pub(super) change: Check,
    /// The mistakes in a new status.
    pub(super) check_status: Check,
    /// Fills in what is absent from a new status.
    pub(super) prepare_status: fn(&Value, &mut Value),
    /// What to tell a client whose object is accepted all the same.
    pub(super) warn: fn(&Value) -> Vec<String>,
    /// What a write through a subresource, or through none, resets.
    pub(super) resets: fn(&str) -> Resets<'static>,
    /// Whether a change counts as a new generation although the spec is as it was.
    pub(super) is_new_generation: fn(&Value, &Value) -> bool,
    /// How long an object stays after it was last written.
    pub(super) ttl: Option<Duration>,
}

impl Rules {
    /// Does nothing.
    pub(super) const NONE: Self = Self {
        default: |_| {},
        status: None,
        keep: |_, _| {},
        check: |_, _, _| {},
        change: |_, _, _| {},
        check_status: |_, _, _| {},
        prepare_status: |_, _| {},
        warn: |_| Vec::new(),
        resets: |subresource| Plain.resets(subresource),
        is_new_generation: |_, _| false,
        ttl: None,
    };
}

impl Strategy for Rules {
    fn default(&self, object: &mut Value) {
        (self.default)(object);
    }

    fn prepare_create(&self, object: &mut Value) {
        if let Some(status) = self.status {
            set(object, "status", status());
        }
    }

    fn prepare_update(&self, old: &Value, new: &mut Value) {
        (self.keep)(old, new);
    }

    fn prepare_status_update(&self, old: &Value, new: &mut Value) {
        (self.prepare_status)(old, new);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        (self.check)(&At::root(object), &Value::Null, &mut errors);
        errors
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let root = At::root(new);
        let mut errors = Vec::new();
        (self.check)(&root, old, &mut errors);
        (self.change)(&root, old, &mut errors);
        errors
    }

    fn validate_status_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        (self.check_status)(&At::root(new), old, &mut errors);
        errors
    }

    fn resets(&self, subresource: &str) -> Resets<'static> {
        (self.resets)(subresource)
    }

    fn is_new_generation(&self, old: &Value, new: &Value) -> bool {
        (self.is_new_generation)(old, new)
    }

    fn ttl(&self) -> Option<Duration> {
        self.ttl
    }

    fn warnings(&self, object: &Value, _old: Option<&Value>) -> Vec<String> {
        (self.warn)(object)
    }
}
