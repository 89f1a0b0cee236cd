//! Why a key is reconciled: the answer travels beside the key.
//!
//! Events, timers and retries note their cause in the `CauseBook` before they enqueue a key; the
//! worker takes what was noted when the reconcile begins. Each event also leaves its
//! origin, by which the [hot-loop detection](crate::controller::HotLoop) recognises the
//! controller's own writes.

mod book;
mod change;
mod content;

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub use book::Causes;
pub(crate) use book::{CauseBook, Waiting};
pub use change::{ObjectChange, Parts};

use crate::cache::Untyped;
use crate::codec::{EncodeErased, encode_small};
use crate::informer::Event;
use crate::kind::Kind;
use crate::object::{AnyObject, ObjectKey, version_of};

/// One reason for a reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Something happened to an object.
    Event {
        /// Its kind.
        kind: String,
        /// Which object.
        key: ObjectKey,
        /// What happened to it.
        change: ObjectChange,
    },
    /// The last reconcile failed; this is the retry with this number.
    Retry(u32),
    /// The last reconcile asked to be called again after a time.
    Timer,
    /// Somebody asked for it without an event.
    Requested,
    /// A source of the controller's own asked for it: a channel, a stream, a clock.
    Source(Arc<str>),
    /// Another replica reconciled the object before.
    HandedOver,
}

/// A kind whose events are causes, without its type.
#[derive(Clone)]
pub(crate) struct WatchedType {
    /// The kind's name.
    pub(crate) name: String,
    encode: Option<EncodeErased>,
}

impl WatchedType {
    pub(crate) fn of<K: AnyObject>(kind: &Kind<K>) -> Self {
        Self { name: kind.name().into_owned(), encode: encode_small::<K>() }
    }
}

impl Cause {
    /// The cause that an event of this kind is, and where it comes from.
    pub(crate) fn of(kind: &WatchedType, event: &Event<Untyped>) -> Noted {
        let change = match event {
            Event::Added { initial: true, .. } => ObjectChange::Listed,
            Event::Added { initial: false, .. } => ObjectChange::Created,
            Event::Updated { old, new } => match (old.meta(), new.meta()) {
                (Some(old_meta), Some(new_meta)) => {
                    let content = || content::difference(old, new, kind.encode);
                    ObjectChange::between(&old_meta, &new_meta, content)
                }
                _ => ObjectChange::Updated(Parts::CONTENT),
            },
            Event::Deleted { .. } => ObjectChange::Deleted,
            Event::Resynced { .. } => ObjectChange::Resynced,
            Event::Generic { .. } => ObjectChange::Generic,
        };
        let object = event.object();
        let cause = Self::Event { kind: kind.name.clone(), key: object.key().clone(), change };
        let origin = || {
            let gone = (change == ObjectChange::Deleted).then(|| object.uid().map(uid_hash));
            Some(Origin { version: version_of(object.resource_version())?, gone: gone.flatten() })
        };
        let happened = change.happened();
        Noted { cause, origin: happened.then(origin).flatten() }
    }

    /// Every [`label`](Self::label) there is.
    pub(crate) const LABELS: [&'static str; 15] = [
        "listed",
        "created",
        "spec",
        "status",
        "content",
        "metadata",
        "deleting",
        "deleted",
        "resync",
        "generic",
        "retry",
        "timer",
        "requested",
        "source",
        "handed_over",
    ];

    /// One word for metrics: there are few of them.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Event { change, .. } => match change {
                ObjectChange::Listed => "listed",
                ObjectChange::Created => "created",
                ObjectChange::Updated(parts) if parts.contains(Parts::SPEC) => "spec",
                ObjectChange::Updated(Parts::STATUS) => "status",
                ObjectChange::Updated(parts) if parts.has_content() => "content",
                ObjectChange::Updated(_) => "metadata",
                ObjectChange::Deleting => "deleting",
                ObjectChange::Deleted => "deleted",
                ObjectChange::Resynced => "resync",
                ObjectChange::Generic => "generic",
            },
            Self::Retry(_) => "retry",
            Self::Timer => "timer",
            Self::Requested => "requested",
            Self::Source(_) => "source",
            Self::HandedOver => "handed_over",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event { kind, key, change } => write!(f, "{kind} {key} {change}"),
            Self::Retry(count) => write!(f, "retry {count}"),
            Self::Timer => f.write_str("timer"),
            Self::Requested => f.write_str("requested"),
            Self::Source(name) => write!(f, "asked for by {name}"),
            Self::HandedOver => f.write_str("became this replica's"),
        }
    }
}

/// A cause, and the write that it goes back to if it is one.
#[derive(Clone)]
pub(crate) struct Noted {
    cause: Cause,
    origin: Option<Origin>,
}

impl From<Cause> for Noted {
    fn from(cause: Cause) -> Self {
        Self { cause, origin: None }
    }
}

/// The write behind an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The version that the object got by it.
    pub(crate) version: u64,
    /// If the object is gone: which it was, as [`uid_hash`] tells.
    pub(crate) gone: Option<u64>,
}

/// Stands for a uid where many are remembered.
pub(crate) fn uid_hash(uid: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Node, Pod, Secret};
    use serde_json::json;

    use super::*;
    use crate::cache::Item;

    fn of<K: AnyObject>(kind: &Kind<K>, event: Event<K>) -> Noted {
        Cause::of(&WatchedType::of(kind), &event.cast())
    }

    fn pod(pod: serde_json::Value) -> Item<Pod> {
        Item::typed(serde_json::from_value(pod).unwrap())
    }

    fn update(new: serde_json::Value) -> String {
        let old = pod(json!({"metadata": {"name": "p", "generation": 1}}));
        let noted = of(&Kind::<Pod>::of(), Event::Updated { old, new: pod(new) });
        noted.cause.to_string()
    }

    #[test]
    fn an_update_says_which_parts_changed() {
        let meta = |meta| update(json!({"metadata": meta}));
        assert_eq!(meta(json!({"name": "p", "generation": 1})), "Pod p changed its status");
        assert_eq!(
            meta(json!({"name": "p", "generation": 2, "labels": {"a": "b"}})),
            "Pod p changed its spec, labels"
        );
        assert_eq!(
            meta(json!({"name": "p", "generation": 1, "finalizers": ["a/b"], "annotations": {}})),
            "Pod p changed its annotations, finalizers"
        );
        let began =
            json!({"name": "p", "generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(meta(began), "Pod p is being deleted");
        assert_eq!(meta(json!({"name": "p"})), "Pod p changed its spec");
    }

    /// What is said of a Secret that was `old`, held typed.
    fn secret(old: serde_json::Value, new: serde_json::Value) -> String {
        let item = |content: serde_json::Value| {
            let mut secret =
                json!({"metadata": {"name": "s"}, "data": {"password": "aHVudGVyMg=="}});
            json_patch::merge(&mut secret, &content);
            Item::<Secret>::typed(serde_json::from_value(secret).unwrap())
        };
        let noted = of(&Kind::<Secret>::of(), Event::Updated { old: item(old), new: item(new) });
        assert!(["content", "metadata"].contains(&noted.cause.label()));
        noted.cause.to_string()
    }

    #[test]
    fn an_update_without_a_generation_says_which_fields_changed_and_not_to_what() {
        let changed = |new| secret(json!({}), new);
        assert_eq!(changed(json!({"data": {"password": "c2VjcmV0"}})), "Secret s changed its data");
        assert_eq!(changed(json!({"data": null})), "Secret s changed its data");
        assert_eq!(
            changed(json!({"immutable": true, "type": "a/b", "metadata": {"labels": {"a": "b"}}})),
            "Secret s changed its labels, immutable, type"
        );
        assert_eq!(
            changed(json!({"metadata": {"annotations": {"a": "b"}}})),
            "Secret s changed its annotations"
        );
        assert_eq!(changed(json!({"metadata": {"resourceVersion": "2"}})), "Secret s updated");
    }

    #[test]
    fn a_kind_without_generation_may_have_a_spec_and_a_status() {
        let node = |node| Item::<Node>::typed(serde_json::from_value(node).unwrap());
        let old = node(json!({"metadata": {"name": "n"}, "spec": {"unschedulable": true}}));
        let new = node(json!({"metadata": {"name": "n"}, "status": {"phase": "Running"}}));
        let noted = of(&Kind::<Node>::of(), Event::Updated { old, new });
        assert_eq!(noted.cause.to_string(), "Node n changed its spec, status");
        assert_eq!(noted.cause.label(), "spec");
    }

    #[tokio::test]
    async fn only_events_go_back_to_a_write() {
        let created = |version: &str| {
            let meta = json!({"name": "p", "uid": "1", "resourceVersion": version});
            let object = pod(json!({"metadata": meta}));
            of(&Kind::<Pod>::of(), Event::Added { object, initial: false })
        };
        let (book, key) = (CauseBook::default(), ObjectKey::from("default/a"));
        assert!(!book.take(&key).causes.all_go_back_to(|_| true), "there are none");
        book.note(&key, created("7"));
        book.note(&key, created("8"));
        let causes = book.take(&key).causes;
        assert!(causes.all_go_back_to(|origin| [7, 8].contains(&origin.version)));
        assert!(!causes.all_go_back_to(|origin| origin.version == 8));
        book.note(&key, created("8"));
        book.note(&key, Cause::Timer);
        assert!(!book.take(&key).causes.all_go_back_to(|_| true));
    }
}
