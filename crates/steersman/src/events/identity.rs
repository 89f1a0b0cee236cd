//! What makes two events the same, in a form that the API accepts.
//!
//! The server refuses an event whose texts are too long, empty or of the wrong letters. Here they
//! are made to fit, since an event that is cut short says more than one that was refused.

use std::collections::BTreeMap;

use super::cut::cut;
use super::reporter::Reporter;
use super::{EventForm, EventType, NewEvent, Reference};

/// The API's limits, in bytes.
pub(super) const NOTE_MAX: usize = 1024;
const REASON_MAX: usize = 128;
const ACTION_MAX: usize = 128;
const NAME_MAX: usize = 253;

/// What stands before the note of an event that speaks for many.
pub(super) const COMBINED: &str = "(combined from similar events): ";

/// Events that agree in all of this are one series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Identity {
    pub(super) group: Group,
    pub(super) related: Option<Reference>,
    /// `None` if the series speaks for events with many notes.
    pub(super) note: Option<Box<str>>,
    pub(super) annotations: BTreeMap<String, String>,
}

/// Events that agree in all of this are similar.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Group {
    pub(super) subject: Subject,
    pub(super) event_type: EventType,
    pub(super) reason: Box<str>,
    /// Empty in counted events, which do not tell.
    pub(super) action: Box<str>,
}

/// Who reports, about what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Subject {
    pub(super) reporter: Reporter,
    pub(super) regarding: Reference,
}

/// Events that agree in this share an allowance of writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Allowance(Subject, Option<EventType>);

impl Identity {
    pub(super) fn new(reporter: Reporter, regarding: Reference, event: NewEvent) -> Self {
        let NewEvent { event_type, reason, action, note, related, annotations } = event;
        let why = one_of(&reason, &action);
        let (related, note, action) = match reporter.form {
            EventForm::Series => (related, cut(&note, NOTE_MAX).into(), one_of(&action, &reason)),
            // The old form has no such fields, and no limit of what it may say.
            EventForm::Counted => (None, note.into(), "".into()),
        };
        let subject = Subject { reporter, regarding };
        let group = Group { subject, event_type, reason: why, action };
        Self { group, related, note: Some(note), annotations }
    }

    /// The series that speaks for all events similar to this one.
    pub(super) fn combined(&self) -> Self {
        Self { group: self.similar(), related: None, note: None, annotations: BTreeMap::new() }
    }

    /// In which form it is written.
    pub(super) fn form(&self) -> EventForm {
        self.group.subject.reporter.form
    }

    /// What it has in common with similar events. client-go's recorder of counted events does not
    /// ask which part of an object they are about.
    pub(super) fn similar(&self) -> Group {
        match self.form() {
            EventForm::Series => self.group.clone(),
            EventForm::Counted => {
                Group { subject: self.group.subject.of_the_whole(), ..self.group.clone() }
            }
        }
    }

    /// What has one allowance of writes with it. client-go's recorder of counted events has one
    /// for each type of events about an object.
    pub(super) fn allowance(&self) -> Allowance {
        let subject = &self.group.subject;
        match self.form() {
            EventForm::Series => Allowance(subject.clone(), None),
            EventForm::Counted => Allowance(subject.of_the_whole(), Some(self.group.event_type)),
        }
    }
}

impl Subject {
    /// The same of the whole object.
    fn of_the_whole(&self) -> Self {
        let Self { reporter, regarding } = self;
        Self { reporter: reporter.clone(), regarding: regarding.clone().part("") }
    }
}

/// The text, or the other one if it is empty: the API wants both a reason and an action.
fn one_of(text: &str, other: &str) -> Box<str> {
    const { assert!(REASON_MAX == ACTION_MAX) };
    let text = if text.is_empty() { other } else { text };
    if text.is_empty() { "Unspecified".into() } else { cut(text, REASON_MAX).into() }
}

/// The object's name, as far as it fits and the API takes it, and a number: as in client-go the
/// nanosecond at which the event began, so that lists have an object's events in their order, and with
/// them `kubectl describe`, which knows seconds only.
pub(super) fn event_name(object: &str, number: u64) -> String {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let lower = object.to_ascii_lowercase();
    let name: String = lower.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    let suffix = format!("{number:016x}");
    let name = cut(&name, NAME_MAX - suffix.len() - 1).trim_matches(['-', '.']);
    let labels: Vec<&str> = name.split('.').map(|label| label.trim_matches('-')).collect();
    let labels = labels.into_iter().filter(|label| !label.is_empty());
    labels.chain([suffix.as_str()]).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::api::events::v1::Event;

    use super::*;
    use crate::events::document::{Document, Origin, Tally};

    #[test]
    fn names_fit_whatever_the_object_is_called() {
        for (object, name) in [
            ("web", "web.000000000000002a"),
            ("system:node", "system-node.000000000000002a"),
            ("Web_1.", "web-1.000000000000002a"),
            ("a-.b", "a.b.000000000000002a"),
            ("::", "000000000000002a"),
        ] {
            assert_eq!(event_name(object, 42), name, "{object}");
        }
        let long = event_name(&"a".repeat(253), u64::MAX);
        assert_eq!(long.len(), 253);
        assert!(long.ends_with(".ffffffffffffffff"), "{long}");
    }

    /// What is written of an event that happened once, by itself or for others.
    fn series(identity: &Identity, combines: bool) -> Event {
        let time = crate::clock::now_micro_time();
        let origin = Origin::new(identity, combines, time.clone());
        let all = identity.combined();
        let identity = if combines { &all } else { identity };
        match Document::new(identity, &origin, &Tally { count: 1, last: time }) {
            Document::Series(event) => event,
            Document::Counted(event) => panic!("not a series: {event:?}"),
        }
    }

    #[test]
    fn what_programs_are_to_read_is_annotated_unless_it_is_said_of_many() {
        let object = Reference::of(&ConfigMap::default());
        let event = NewEvent::warning("Evicted").annotation("starved_resource", "memory");
        let identity = Identity::new(Reporter::new("c"), object, event);
        let annotations = series(&identity, false).metadata.annotations.unwrap();
        assert_eq!(annotations["starved_resource"], "memory");
        assert_eq!(series(&identity, true).metadata.annotations, None);
    }

    #[test]
    fn texts_are_cut_between_letters_and_never_empty() {
        let object = Reference::of(&ConfigMap::default());
        let note = format!("{}é", "n".repeat(1023));
        let event = NewEvent::warning("").action("a".repeat(200)).note(note);
        let identity = Identity::new(Reporter::new("c"), object, event);
        assert_eq!(identity.note.as_ref().unwrap().len(), 1023);
        let event = series(&identity, false);
        assert_eq!(event.reason.as_ref().unwrap().len(), 128, "the action stands in");
        assert_eq!(event.reason, event.action);
        assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
        assert_eq!(series(&identity, true).note.unwrap().len(), 1024);
    }
}
