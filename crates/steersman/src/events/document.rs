//! An event as it is sent, in either form.

use k8s_openapi::api::core::v1::{Event as CountedEvent, EventSource};
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use kube::api::Patch;
use serde_json::json;

use super::cut::cut;
use super::identity::{COMBINED, Group, Identity, NOTE_MAX, event_name};
use super::{EventForm, Reference};
use crate::client::Client;
use crate::clock;
use crate::error::Result;
use crate::object::ObjectKey;

/// What is of one event, and not of all that are equal to it.
pub(super) struct Origin {
    name: Box<str>,
    /// When it happened first.
    time: MicroTime,
    /// If it speaks for similar events: the object of the first of them, and the note of the
    /// first or, where notes may change, of the last.
    spoken_for: Option<(Reference, Box<str>)>,
}

/// How often something has happened, and when it did last.
pub(super) struct Tally {
    pub(super) count: i32,
    pub(super) last: MicroTime,
}

/// An event as it is sent.
#[derive(Debug)]
pub(super) enum Document {
    Series(Event),
    Counted(CountedEvent),
}

impl Origin {
    /// An event that begins with this occurrence, which it may combine with others.
    pub(super) fn new(first: &Identity, combines: bool, time: MicroTime) -> Self {
        let Group { subject, .. } = &first.group;
        let name = event_name(subject.regarding.name(), clock::next_nanosecond()).into();
        let note = || first.note.clone().unwrap_or_default();
        let spoken_for = combines.then(|| (subject.regarding.clone(), note()));
        Self { name, time, spoken_for }
    }

    /// Takes in what the last of the events said for which this one speaks.
    pub(super) fn now_says(&mut self, last: &Identity) {
        if let Some((_, note)) = &mut self.spoken_for {
            *note = last.note.clone().unwrap_or_default();
        }
    }

    fn metadata(&self, identity: &Identity) -> ObjectMeta {
        let annotations = &identity.annotations;
        ObjectMeta {
            name: Some(self.name.to_string()),
            namespace: Some(self.regarding(identity).namespace_of_events().to_owned()),
            annotations: Some(annotations.clone()).filter(|all| !all.is_empty()),
            ..ObjectMeta::default()
        }
    }

    fn regarding<'a>(&'a self, identity: &'a Identity) -> &'a Reference {
        match &self.spoken_for {
            Some((regarding, _)) => regarding,
            None => &identity.group.subject.regarding,
        }
    }

    fn note(&self, identity: &Identity) -> String {
        match &self.spoken_for {
            Some((_, note)) => format!("{COMBINED}{note}"),
            None => identity.note.as_deref().unwrap_or_default().to_owned(),
        }
    }
}

impl Document {
    pub(super) fn new(identity: &Identity, origin: &Origin, tally: &Tally) -> Self {
        match identity.form() {
            EventForm::Series => Self::Series(series(identity, origin, tally)),
            EventForm::Counted => Self::Counted(counted(identity, origin, tally)),
        }
    }

    pub(super) async fn create(&self, client: &Client) -> Result<()> {
        match self {
            Self::Series(event) => client.create_unread(event).await,
            Self::Counted(event) => client.create_unread(event).await,
        }
    }

    /// Tells the server what another occurrence has changed.
    pub(super) async fn update(&self, client: &Client) -> Result<()> {
        match self {
            Self::Series(event) => {
                let patch = Patch::Merge(json!({"series": event.series}));
                client.patch_unread::<Event, _>(ObjectKey::of(event), &patch).await.map(drop)
            }
            Self::Counted(event) => {
                let patch = Patch::Strategic(json!({
                    "count": event.count,
                    "lastTimestamp": event.last_timestamp,
                    "message": event.message,
                }));
                client.patch_unread::<CountedEvent, _>(ObjectKey::of(event), &patch).await.map(drop)
            }
        }
    }
}

fn series(identity: &Identity, origin: &Origin, tally: &Tally) -> Event {
    let Group { subject, event_type, reason, action } = &identity.group;
    let last_observed_time = tally.last.clone();
    Event {
        metadata: origin.metadata(identity),
        type_: Some(event_type.as_str().to_owned()),
        reason: Some(reason.to_string()),
        action: Some(action.to_string()),
        note: Some(cut(&origin.note(identity), NOTE_MAX).to_owned()),
        regarding: Some(origin.regarding(identity).to_versioned_reference()),
        related: identity.related.as_ref().map(Reference::to_versioned_reference),
        event_time: Some(origin.time.clone()),
        // A series has at least two.
        series: (tally.count > 1).then_some(EventSeries { count: tally.count, last_observed_time }),
        reporting_controller: Some(subject.reporter.controller.to_string()),
        reporting_instance: Some(subject.reporter.named_instance()),
        ..Event::default()
    }
}

/// As client-go's `tools/record` has it: the reporting controller and instance are the component
/// and the host of the source, and an event that speaks for others has only the source.
fn counted(identity: &Identity, origin: &Origin, tally: &Tally) -> CountedEvent {
    let Group { subject, event_type, reason, .. } = &identity.group;
    let (controller, host) = (subject.reporter.controller.to_string(), subject.reporter.host());
    let alone = origin.spoken_for.is_none();
    CountedEvent {
        metadata: origin.metadata(identity),
        type_: Some(event_type.as_str().to_owned()),
        reason: Some(reason.to_string()),
        message: Some(origin.note(identity)),
        involved_object: origin.regarding(identity).to_versioned_reference(),
        count: Some(tally.count),
        first_timestamp: Some(Time(origin.time.0)),
        last_timestamp: Some(Time(tally.last.0)),
        reporting_component: Some(if alone { controller.clone() } else { String::new() }),
        reporting_instance: Some(host.filter(|_| alone).unwrap_or_default().to_owned()),
        source: Some(EventSource { component: Some(controller), host: host.map(str::to_owned) }),
        ..CountedEvent::default()
    }
}
