//! What makes two events the same, in a form that the API accepts.
//!
//! The server refuses an event whose texts are too long, empty or of the wrong letters. Here they
//! are made to fit, since an event that is cut short says more than one that was refused.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use super::{EventType, NewEvent, Reference};
use crate::client::Impersonation;
use crate::random;

/// The API's limits, in bytes.
const NOTE_MAX: usize = 1024;
const REASON_MAX: usize = 128;
const ACTION_MAX: usize = 128;
const INSTANCE_MAX: usize = 128;
const CONTROLLER_MAX: usize = 63;
const NAME_MAX: usize = 253;

/// What stands before the note of an event that speaks for many.
const COMBINED: &str = "(combined from similar events): ";

/// Who reports events.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Reporter {
    controller: Arc<str>,
    instance: Arc<str>,
    /// In whose name it reports, if not in that of the client.
    pub(super) acting_as: Option<Impersonation>,
}

impl Reporter {
    pub(super) fn new(controller: &str) -> Self {
        let controller = qualified_name(controller);
        let instance = format!("{controller}-{}", host());
        let instance = cut(&instance, INSTANCE_MAX).into();
        Self { instance, controller: controller.into(), acting_as: None }
    }

    /// The same, in the name of another user.
    pub(super) fn acting_as(&self, user: &Impersonation) -> Self {
        Self { acting_as: Some(user.clone()), ..self.clone() }
    }

    /// Another instance of the same controller.
    pub(super) fn instance(&self, instance: &str) -> Self {
        let instance = cut(instance, INSTANCE_MAX);
        let instance = if instance.is_empty() { &*self.instance } else { instance };
        Self { instance: instance.into(), ..self.clone() }
    }
}

/// Events that agree in all of this are one series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Identity {
    pub(super) group: Group,
    pub(super) related: Option<Reference>,
    /// `None` if the series speaks for events with many notes.
    pub(super) note: Option<Box<str>>,
    annotations: BTreeMap<String, String>,
}

/// Events that agree in all of this are similar.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Group {
    pub(super) subject: Subject,
    event_type: EventType,
    reason: Box<str>,
    action: Box<str>,
}

/// Who reports, about what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Subject {
    pub(super) reporter: Reporter,
    pub(super) regarding: Reference,
}

impl Identity {
    pub(super) fn new(reporter: Reporter, regarding: Reference, event: NewEvent) -> Self {
        let NewEvent { event_type, reason, action, note, related, annotations } = event;
        let group = Group {
            subject: Subject { reporter, regarding },
            event_type,
            reason: one_of(&reason, &action),
            action: one_of(&action, &reason),
        };
        let note = if note.len() > NOTE_MAX { cut(&note, NOTE_MAX).into() } else { note.into() };
        Self { group, related, note: Some(note), annotations }
    }

    /// The series that speaks for all events similar to this one.
    pub(super) fn combined(&self) -> Self {
        let annotations = BTreeMap::new();
        Self { group: self.group.clone(), related: None, note: None, annotations }
    }

    /// An event as it is created. `note` is that of its first occurrence.
    pub(super) fn to_event(&self, note: &str, time: &MicroTime) -> Event {
        let Group { subject: Subject { reporter, regarding }, .. } = &self.group;
        let note = match self.note {
            Some(_) => note.to_owned(),
            None => cut(&format!("{COMBINED}{note}"), NOTE_MAX).to_owned(),
        };
        Event {
            metadata: ObjectMeta {
                name: Some(event_name(regarding.name(), random::next_u64())),
                namespace: Some(regarding.namespace_of_events().to_owned()),
                annotations: Some(self.annotations.clone()).filter(|all| !all.is_empty()),
                ..ObjectMeta::default()
            },
            type_: Some(self.group.event_type.as_str().to_owned()),
            reason: Some(self.group.reason.to_string()),
            action: Some(self.group.action.to_string()),
            note: Some(note),
            regarding: Some(regarding.to_object_reference()),
            related: self.related.as_ref().map(Reference::to_object_reference),
            event_time: Some(time.clone()),
            reporting_controller: Some(reporter.controller.to_string()),
            reporting_instance: Some(reporter.instance.to_string()),
            ..Event::default()
        }
    }
}

/// The text, or the other one if it is empty: the API wants both a reason and an action.
fn one_of(text: &str, other: &str) -> Box<str> {
    const { assert!(REASON_MAX == ACTION_MAX) };
    let text = if text.is_empty() { other } else { text };
    if text.is_empty() { "Unspecified".into() } else { cut(text, REASON_MAX).into() }
}

/// The longest beginning of `text` of at most `max` bytes.
fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// The object's name, as far as it fits and the API takes it, and a number.
fn event_name(object: &str, number: u64) -> String {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let lower = object.to_ascii_lowercase();
    let name: String = lower.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    let suffix = format!("{number:016x}");
    let name = cut(&name, NAME_MAX - suffix.len() - 1).trim_matches(['-', '.']);
    let labels: Vec<&str> = name.split('.').map(|label| label.trim_matches('-')).collect();
    let labels = labels.into_iter().filter(|label| !label.is_empty());
    labels.chain([suffix.as_str()]).collect::<Vec<_>>().join(".")
}

/// A name as `example.com/controller`, of the letters that the API takes there.
fn qualified_name(controller: &str) -> String {
    let (prefix, name) = match controller.rsplit_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, controller),
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    let letters = |text: &str| -> String {
        let text: String = text.chars().map(|c| if fits(c) { c } else { '-' }).collect();
        let ends = ['-', '_', '.'];
        cut(text.trim_matches(ends), CONTROLLER_MAX).trim_matches(ends).to_owned()
    };
    let name = Some(letters(name)).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| "steersman".to_owned());
    match prefix.map(|prefix| letters(prefix).to_ascii_lowercase().replace('_', "-")) {
        Some(prefix) if !prefix.is_empty() => format!("{prefix}/{name}"),
        _ => name,
    }
}

/// The name of the machine or the Pod.
fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        let name = std::env::var("HOSTNAME").ok();
        let name = name.or_else(|| std::fs::read_to_string("/etc/hostname").ok());
        let name = name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        name.unwrap_or_else(|| "localhost".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

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

    #[test]
    fn controllers_have_qualified_names() {
        for (given, name) in [
            ("deployment-controller", "deployment-controller"),
            ("example.com/my controller", "example.com/my-controller"),
            ("Exa_mple/x", "exa-mple/x"),
            ("", "steersman"),
            ("/", "steersman"),
        ] {
            assert_eq!(qualified_name(given), name, "{given}");
        }
        assert_eq!(qualified_name(&"x".repeat(80)).len(), 63);
    }

    #[test]
    fn an_instance_has_a_name_that_fits() {
        let kubelet = Reporter::new("kubelet");
        assert_eq!(&*kubelet.instance("node-1").instance, "node-1");
        assert_eq!(&*kubelet.instance("node-1").controller, "kubelet");
        assert_eq!(kubelet.instance("").instance, kubelet.instance);
        assert_eq!(kubelet.instance(&"n".repeat(200)).instance.len(), 128);
    }

    #[test]
    fn what_programs_are_to_read_is_annotated_unless_it_is_said_of_many() {
        let object = Reference::of(&ConfigMap::default());
        let event = NewEvent::warning("Evicted").annotation("starved_resource", "memory");
        let identity = Identity::new(Reporter::new("c"), object, event);
        let time = crate::clock::now_micro_time();
        let annotations = identity.to_event("n", &time).metadata.annotations.unwrap();
        assert_eq!(annotations["starved_resource"], "memory");
        assert_eq!(identity.combined().to_event("n", &time).metadata.annotations, None);
    }

    #[test]
    fn texts_are_cut_between_letters_and_never_empty() {
        let object = Reference::of(&ConfigMap::default());
        let note = format!("{}é", "n".repeat(1023));
        let event = NewEvent::warning("").action("a".repeat(200)).note(note);
        let identity = Identity::new(Reporter::new("c"), object, event);
        assert_eq!(identity.note.as_ref().unwrap().len(), 1023);
        let event = identity.to_event("n", &crate::clock::now_micro_time());
        assert_eq!(event.reason.as_ref().unwrap().len(), 128, "the action stands in");
        assert_eq!(event.reason, event.action);
        assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
        let combined = identity.combined().to_event(&"x".repeat(1024), &event.event_time.unwrap());
        assert_eq!(combined.note.unwrap().len(), 1024);
    }
}
