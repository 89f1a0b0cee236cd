//! An event as its author gives it, before it is known by whom and how often.

use std::collections::BTreeMap;

use super::{EventType, Reference};

/// Something that happened to an object, under the names that the fields of an `Event` have.
///
/// ```
/// # use steersman::events::{NewEvent, Recorder};
/// # fn scaled(recorder: &Recorder, set: &k8s_openapi::api::apps::v1::ReplicaSet) {
/// let event = NewEvent::normal("FewerThanWanted").action("Scale").note("from 3 to 5 replicas");
/// recorder.event(set, event);
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an event does nothing until it is recorded"]
pub struct NewEvent {
    pub(super) event_type: EventType,
    pub(super) reason: String,
    pub(super) action: String,
    pub(super) note: String,
    pub(super) related: Option<Reference>,
    pub(super) annotations: BTreeMap<String, String>,
}

impl NewEvent {
    /// Something went as it should. `reason` says why it happened, in one word for programs.
    pub fn normal(reason: impl Into<String>) -> Self {
        Self::new(EventType::Normal, reason.into())
    }

    /// Something may have gone wrong. `reason` says why it happened, in one word for programs.
    pub fn warning(reason: impl Into<String>) -> Self {
        Self::new(EventType::Warning, reason.into())
    }

    fn new(event_type: EventType, reason: String) -> Self {
        let (action, note) = (String::new(), String::new());
        Self { event_type, reason, action, note, related: None, annotations: BTreeMap::new() }
    }

    /// What was done or tried, in one word; otherwise the reason stands for it.
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.action = action.into();
        self
    }

    /// What people are to read.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Something that programs are to read, as an annotation of the `Event`.
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// Another object that had a part in it.
    pub fn related(mut self, related: impl Into<Reference>) -> Self {
        self.related = Some(related.into());
        self
    }
}
