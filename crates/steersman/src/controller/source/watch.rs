//! Which objects a controller watches besides its own, and which of their events matter.

use kube::core::PartialObjectMeta;

use crate::kind::Kind;
use crate::object::{AnyObject, Object};
use crate::predicate::Predicate;
use crate::workqueue::Priority;

/// A kind to watch, with what is particular about watching it. Where that is nothing, a [`Kind`]
/// is one as well.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use steersman::{Controller, predicate, source::Watch};
///
/// let builder = Controller::of::<ConfigMap>()
///     .owns_with(Watch::<Deployment>::of().when(predicate::generation_changed()));
/// # let _ = builder;
/// ```
#[must_use = "a watch does nothing until a controller has it"]
pub struct Watch<C> {
    pub(super) kind: Kind<C>,
    pub(super) predicates: Vec<Box<dyn Predicate<C>>>,
    pub(super) priority: Option<Priority>,
}

impl<C: Object> Watch<C> {
    /// Watches the kind that the type `C` stands for.
    pub fn of() -> Self {
        Self::of_kind(&Kind::of())
    }
}

impl<C: Object> Watch<PartialObjectMeta<C>> {
    /// Watches the metadata alone of the kind that the type `C` stands for.
    pub fn metadata() -> Self {
        Self::of_kind(&Kind::<C>::of().metadata())
    }
}

impl<C: AnyObject> Watch<C> {
    /// Watches a kind that may be known only at run time.
    pub fn of_kind(kind: &Kind<C>) -> Self {
        Self { kind: kind.clone(), predicates: Vec::new(), priority: None }
    }

    /// Only the events that matter; see [`predicate`](crate::predicate). Of several predicates,
    /// all must let an event pass.
    pub fn when(mut self, predicate: impl Predicate<C>) -> Self {
        self.predicates.push(Box::new(predicate));
        self
    }

    /// How urgent the reconciles are that live changes lead to. What was there at the start
    /// and resyncs still wait for live changes.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// The kind that is watched.
    pub fn kind(&self) -> &Kind<C> {
        &self.kind
    }
}

/// What names a kind to watch: a [`Watch`], or a [`Kind`] alone.
pub trait IntoWatch {
    /// The type of the objects.
    type Object: AnyObject;

    /// The watch.
    fn into_watch(self) -> Watch<Self::Object>;
}

impl<C: AnyObject> IntoWatch for Watch<C> {
    type Object = C;

    fn into_watch(self) -> Watch<C> {
        self
    }
}

impl<C: AnyObject> IntoWatch for Kind<C> {
    type Object = C;

    fn into_watch(self) -> Watch<C> {
        Watch::of_kind(&self)
    }
}

impl<C: AnyObject> IntoWatch for &Kind<C> {
    type Object = C;

    fn into_watch(self) -> Watch<C> {
        Watch::of_kind(self)
    }
}
