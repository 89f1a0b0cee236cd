//! What was seen, and what was done about it.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;

use super::comparison::Difference;
use crate::events::Reference;
use crate::kind::{Kind, KindId};
use crate::object::{AnyObject, ErasedObject, Object, ObjectKey, downcast};

/// The wanted children as they are, and what was done to make them so.
#[derive(Default)]
pub struct Seen {
    pub(super) objects: Vec<SeenObject>,
    pub(super) actions: Vec<Action>,
}

/// One wanted child.
pub(super) struct SeenObject {
    pub(super) kind: KindId,
    pub(super) key: ObjectKey,
    pub(super) reference: Reference,
    /// `None` if it could not be looked at or made.
    pub(super) object: Option<Arc<dyn ErasedObject>>,
}

/// Something that was done about a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The child's kind.
    pub kind: String,
    /// Which child.
    pub key: ObjectKey,
    /// What was done.
    pub what: What,
}

/// What was done about a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It was not there.
    Created,
    /// It was not as wanted.
    Applied(Vec<Difference>),
    /// It was wanted no longer.
    Deleted,
    /// Nothing yet: it is being deleted, and will be made again when it is gone.
    Terminating,
}

impl Seen {
    /// The wanted children of a kind, in the order in which they were wanted. Each is as the
    /// server showed it last: the answer to an apply, or what is in the cache.
    pub fn of<C: Object>(&self) -> Vec<Arc<C>> {
        self.of_kind(&Kind::of())
    }

    /// The wanted children of a kind that may be known only at run time.
    pub fn of_kind<C: AnyObject>(&self, kind: &Kind<C>) -> Vec<Arc<C>> {
        let id = kind.id();
        let objects = self.objects.iter().filter(|seen| seen.kind == id);
        objects.filter_map(|seen| downcast(seen.object.clone()?)).collect()
    }

    /// The wanted child of this name.
    pub fn get<C: Object>(&self, name: &str) -> Option<Arc<C>> {
        self.of::<C>().into_iter().find(|child| child.meta().name.as_deref() == Some(name))
    }

    /// What was done, in this order; empty if everything was as wanted.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Whether nothing had to be done.
    pub fn is_settled(&self) -> bool {
        self.actions.is_empty()
    }

    /// Every wanted child by name and uid, for a status.
    pub fn inventory(&self) -> Vec<ObjectReference> {
        self.objects.iter().map(|seen| seen.reference.to_object_reference()).collect()
    }

    /// Whether a child must be gone before it can be made.
    pub(super) fn waits(&self) -> bool {
        self.actions.iter().any(|action| action.what == What::Terminating)
    }

    /// The same words as long as the same is wanted, whatever was done for it.
    pub(super) fn summary(&self) -> String {
        match self.objects.len() {
            1 => "1 object is as wanted".to_owned(),
            objects => format!("{objects} objects are as wanted"),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.actions.is_empty() {
            return f.write_str(&self.summary());
        }
        let actions: Vec<String> = self.actions.iter().map(Action::to_string).collect();
        f.write_str(&actions.join("; "))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, key, what } = self;
        match what {
            What::Created => write!(f, "created {kind} {key}"),
            What::Deleted => write!(f, "deleted {kind} {key}"),
            What::Terminating => write!(f, "waits for {kind} {key} to be gone"),
            What::Applied(differences) => {
                let shown: Vec<String> =
                    differences.iter().take(5).map(Difference::to_string).collect();
                write!(f, "applied {kind} {key}: {}", shown.join(", "))
            }
        }
    }
}
