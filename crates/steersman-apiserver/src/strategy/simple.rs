//! Kinds whose whole behaviour is a function or two.

use serde_json::{Value, json};

use super::Strategy;
use super::document::set;
use crate::field::FieldError;

/// A strategy put together from functions; the families of small kinds are made of these.
#[derive(Debug)]
pub(super) struct Simple {
    /// Fills in what is absent.
    pub(super) default: fn(&mut Value),
    /// The status of a new object; `None` keeps what the client sent.
    pub(super) status: Option<fn() -> Value>,
    /// The mistakes in an object.
    pub(super) validate: fn(&Value) -> Vec<FieldError>,
    /// The mistakes in going from one object to another, besides those of the second.
    pub(super) validate_change: fn(&Value, &Value) -> Vec<FieldError>,
}

impl Simple {
    /// Does nothing.
    pub(super) const NOTHING: Self = Self {
        default: |_| {},
        status: None,
        validate: |_| Vec::new(),
        validate_change: |_, _| Vec::new(),
    };

    /// Starts objects without a status.
    pub(super) const CLEARED: Self = Self { status: Some(|| json!({})), ..Self::NOTHING };
}

impl Strategy for Simple {
    fn default(&self, object: &mut Value) {
        (self.default)(object);
    }

    fn prepare_create(&self, object: &mut Value) {
        if let Some(status) = self.status {
            set(object, "status", status());
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        (self.validate)(object)
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = (self.validate)(new);
        errors.extend((self.validate_change)(old, new));
        errors
    }
}
