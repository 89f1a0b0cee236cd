//! What the rules of kinds are written with: a value and its place ([`at`]), the parts of a kind's
//! behaviour ([`Rules`]), and rules that many kinds share.
//!
//! A kind's file holds its functions and a constant of [`Rules`] that names them. Every check gets
//! the object as an [`At`] and what was stored before, which is null for a new object, so that
//! values of old can be let pass.

pub(crate) mod address;
pub(crate) mod amounts;
pub(crate) mod at;
pub(crate) mod condition;
pub(crate) mod document;
pub(crate) mod go_json;
pub mod internal;
pub(crate) mod label_selector;
pub(crate) mod node_label;
pub(crate) mod resource_name;
pub(crate) mod rollout;
pub(crate) mod status_addresses;
pub(crate) mod webhook_client;

pub use resource_name::is_extended;

use std::time::Duration;

use serde_json::Value;

use self::at::{At, Errors};
use self::document::set;
use crate::apply::Resets;
use crate::field::FieldError;

/// What a check does: the object, what was stored before (or null), and the mistakes so far.
pub(crate) type Check = fn(&At<'_, '_>, &Value, &mut Errors);

/// The behaviour of one kind, put together from functions over its document.
#[derive(Debug)]
pub struct Rules {
    /// Fills in what is absent.
    pub(crate) default: fn(&mut Value),
    /// The status of a new object; `None` keeps what the client sent.
    pub(crate) status: Option<fn() -> Value>,
    /// Whether a client may give status when creating; nodes register themselves with theirs.
    pub(crate) keeps_status: bool,
    /// Completes a new object, when it has its name, uid and status.
    pub(crate) create: fn(&mut Value),
    /// Resets what a client may not change with an update.
    pub(crate) keep: fn(&Value, &mut Value),
    /// The mistakes in an object, on every write.
    pub(crate) check: Check,
    /// The mistakes in an object of which a part is changed through a subresource, where those
    /// are others than `check` finds in a new object.
    pub(crate) check_existing: Option<Check>,
    /// The mistakes in going from one object to another, besides those of the second.
    pub(crate) change: Check,
    /// The mistakes in a new status.
    pub(crate) check_status: Check,
    /// Fills in what is absent from a new status.
    pub(crate) prepare_status: fn(&Value, &mut Value),
    /// What is valid but hardly meant, for the client to read; the second is what it changes, if
    /// anything.
    pub(crate) warn: fn(&Value, Option<&Value>) -> Vec<String>,
    /// The same of an object whose status is written.
    pub(crate) warn_status: fn(&Value) -> Vec<String>,
    /// The annotations that only the whole object has: to Kubernetes they are fields of the kind,
    /// which metadata on its own lacks.
    pub(crate) annotated_fields: &'static [&'static str],
    /// Why an object is none of its kind although the type of each of its fields is right: an
    /// annotation that is a field to Kubernetes holds what the field cannot.
    pub(crate) unreadable: fn(&Value) -> Option<String>,
    /// What a write through a subresource, or through none, resets.
    pub(crate) resets: fn(&str) -> Resets<'static>,
    /// Whether a change counts as a new generation although the spec is as it was.
    pub(crate) is_new_generation: fn(&Value, &Value) -> bool,
    /// How long an object stays after it was last written.
    pub(crate) ttl: Option<Duration>,
    /// How long deletion waits for a graceful end, in seconds, if the client asked for so many;
    /// zero deletes at once.
    pub(crate) grace_period: fn(&Value, Option<i64>) -> i64,
    /// Marks an object whose deletion begins, such as a namespace's phase.
    pub(crate) begin_deletion: fn(&mut Value),
    /// Whether something besides `metadata.finalizers` still holds a deleted object.
    pub(crate) holds_deletion: fn(&Value) -> bool,
}

impl Rules {
    /// Does nothing.
    pub(crate) const NONE: Self = Self {
        default: |_| {},
        status: None,
        keeps_status: false,
        create: |_| {},
        keep: |_, _| {},
        check: |_, _, _| {},
        check_existing: None,
        change: |_, _, _| {},
        check_status: |_, _, _| {},
        prepare_status: |_, _| {},
        warn: |_, _| Vec::new(),
        warn_status: |_| Vec::new(),
        annotated_fields: &[],
        unreadable: |_| None,
        resets: |subresource| if subresource.is_empty() { &[&["status"]] } else { &[] },
        is_new_generation: |_, _| false,
        ttl: None,
        grace_period: |_, _| 0,
        begin_deletion: |_| {},
        holds_deletion: |_| false,
    };
}

/// The rules as the server asks for them.
impl Rules {
    /// Fills in what the client left out, as Kubernetes does. Runs before validation, on every write.
    pub fn fill_in(&self, object: &mut Value) {
        (self.default)(object);
    }

    /// Resets what a client may not set when creating, such as status.
    pub fn prepare_create(&self, object: &mut Value) {
        if let Some(status) = self.status {
            set(object, "status", status());
        }
        (self.create)(object);
    }

    /// Resets what a client may not change with an update of the main resource.
    pub fn prepare_update(&self, old: &Value, new: &mut Value) {
        (self.keep)(old, new);
    }

    /// Puts back what a writer of the status may not change, or does not know of.
    pub fn prepare_status_update(&self, old: &Value, new: &mut Value) {
        (self.prepare_status)(old, new);
    }

    /// The mistakes in a new object.
    pub fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Errors::default();
        (self.check)(&At::root(object), &Value::Null, &mut errors);
        errors.into()
    }

    /// The mistakes in an object that exists, a part of which has changed.
    pub fn validate_existing(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Errors::default();
        let check = self.check_existing.unwrap_or(self.check);
        check(&At::root(object), &Value::Null, &mut errors);
        errors.into()
    }

    /// The mistakes in an update, such as changes of immutable fields.
    pub fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let root = At::root(new);
        let mut errors = Errors::default();
        (self.check)(&root, old, &mut errors);
        (self.change)(&root, old, &mut errors);
        errors.into()
    }

    /// The mistakes in an update through the status subresource.
    pub fn validate_status_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = Errors::default();
        (self.check_status)(&At::root(new), old, &mut errors);
        errors.into()
    }

    /// What a write through a subresource, or through none, resets; nobody owns it by that.
    pub fn resets(&self, subresource: &str) -> Resets<'static> {
        (self.resets)(subresource)
    }

    /// Whether a change counts as a new generation although the spec is as it was.
    pub fn is_new_generation(&self, old: &Value, new: &Value) -> bool {
        (self.is_new_generation)(old, new)
    }

    /// How long an object stays after it was last written; `None` is until it is deleted.
    pub fn ttl(&self) -> Option<Duration> {
        self.ttl
    }

    /// What is valid but hardly meant, for the client to read; `old` is what it changes, if
    /// anything.
    pub fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        (self.warn)(object, old)
    }

    /// What is valid but hardly meant in the status of an object, for its writer to read.
    pub fn status_warnings(&self, object: &Value) -> Vec<String> {
        (self.warn_status)(object)
    }

    /// The annotations that only the whole object has: to Kubernetes they are fields of the kind,
    /// which metadata on its own lacks.
    pub fn annotated_fields(&self) -> &'static [&'static str] {
        self.annotated_fields
    }

    /// Why an object is none of its kind although the type of each of its fields is right.
    pub fn unreadable(&self, object: &Value) -> Option<String> {
        (self.unreadable)(object)
    }

    /// Whether a client may give status when creating; nodes register themselves with theirs.
    pub fn keeps_status(&self) -> bool {
        self.keeps_status
    }

    /// How long deletion waits for a graceful end, in seconds; zero deletes at once.
    /// `requested` is what the client asked for.
    pub fn grace_period(&self, object: &Value, requested: Option<i64>) -> i64 {
        (self.grace_period)(object, requested)
    }

    /// Marks an object whose deletion begins, such as a namespace's phase.
    pub fn begin_deletion(&self, object: &mut Value) {
        (self.begin_deletion)(object);
    }

    /// Whether something besides `metadata.finalizers` still holds a deleted object.
    pub fn holds_deletion(&self, object: &Value) -> bool {
        (self.holds_deletion)(object)
    }
}
