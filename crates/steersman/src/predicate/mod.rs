//! Predicates: which events are worth a reconcile.
//!
//! A predicate says yes, no, or nothing: `generation_changed` is about updates, and of a creation
//! it says nothing, which lets it pass. That is also what `not` leaves alone. Of deletions and of
//! their beginning (a new `deletionTimestamp`) no predicate says anything unless it is
//! [strict](Rule::strict), so that neither a finalizer nor a cleanup is ever missed by accident.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use steersman::predicate::{annotation_changed, generation_changed, label_selector};
//! use steersman::{Controller, selector};
//!
//! let web = selector::parse("app=web,tier in (front,back)")?;
//! let builder = Controller::of::<ConfigMap>()
//!     .when(generation_changed().or(annotation_changed()).and(label_selector(web)));
//! # let _ = builder;
//! # Ok::<(), steersman::Error>(())
//! ```

mod changes;
mod funcs;

use crate::informer::Event;
use crate::object::Cacheable;
pub use changes::{
    annotation_changed, generation_changed, label_changed, label_selector, resource_version_changed,
};
pub use funcs::{Funcs, funcs};

/// Decides whether an event is worth a reconcile. Every `Fn(&Event<K>) -> bool` is one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a predicate over events of `{K}`",
    note = "a predicate is one of `steersman::predicate`, a `Fn(&Event<{K}>) -> bool`, or a \
            struct that implements `Predicate<{K}>`"
)]
pub trait Predicate<K>: Send + Sync + 'static {
    /// Whether this event matters.
    fn matters(&self, event: &Event<K>) -> bool;

    /// The same, or `None` where this predicate has nothing to say, which lets the event pass.
    /// Unless it is to be `strict`, it has nothing to say of deletions and their beginning.
    fn verdict(&self, event: &Event<K>, strict: bool) -> Option<bool>
    where
        K: Cacheable,
    {
        (strict || !is_of_deletion(event)).then(|| self.matters(event))
    }
}

impl<K, F: Fn(&Event<K>) -> bool + Send + Sync + 'static> Predicate<K> for F {
    fn matters(&self, event: &Event<K>) -> bool {
        self(event)
    }
}

/// Whether all predicates let an event pass.
pub(crate) fn pass<K: Cacheable>(predicates: &[Box<dyn Predicate<K>>], event: &Event<K>) -> bool {
    predicates.iter().all(|predicate| predicate.verdict(event, false) != Some(false))
}

/// A predicate that can be combined with others.
#[must_use = "a predicate does nothing until a controller has it"]
pub struct Rule<K> {
    decide: Box<Decide<K>>,
    strict: bool,
}

type Decide<K> = dyn Fn(&Event<K>, bool) -> Option<bool> + Send + Sync;

impl<K: Cacheable> Rule<K> {
    /// Makes a predicate combinable: `Rule::new(|event: &Event<Pod>| …).and(…)`.
    pub fn new(predicate: impl Predicate<K>) -> Self {
        Self::deciding(move |event, strict| predicate.verdict(event, strict))
    }

    fn deciding(decide: impl Fn(&Event<K>, bool) -> Option<bool> + Send + Sync + 'static) -> Self {
        Self { decide: Box::new(decide), strict: false }
    }

    /// Lets pass what both let pass.
    pub fn and(self, other: impl Predicate<K>) -> Self {
        Self::deciding(move |event, strict| {
            match (self.verdict(event, strict), other.verdict(event, strict)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            }
        })
    }

    /// Lets pass what either lets pass.
    pub fn or(self, other: impl Predicate<K>) -> Self {
        Self::deciding(move |event, strict| {
            match (self.verdict(event, strict), other.verdict(event, strict)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            }
        })
    }

    /// Lets pass what this one keeps away, and keeps away what it says yes to. Where it says
    /// nothing, as of deletions, this says nothing either.
    #[expect(clippy::should_implement_trait, reason = "reads like its companions and and or")]
    pub fn not(self) -> Self {
        Self::deciding(move |event, strict| self.verdict(event, strict).map(|says| !says))
    }

    /// Decides about deletions and their beginning as well, instead of always letting them pass.
    /// Who uses it must not have a finalizer, nor anything to clean up.
    pub fn strict(self) -> Self {
        Self { strict: true, ..self }
    }
}

impl<K: Cacheable> Predicate<K> for Rule<K> {
    fn matters(&self, event: &Event<K>) -> bool {
        self.verdict(event, false) != Some(false)
    }

    fn verdict(&self, event: &Event<K>, strict: bool) -> Option<bool> {
        (self.decide)(event, strict || self.strict)
    }
}

/// What both let pass.
pub fn and<K: Cacheable>(a: impl Predicate<K>, b: impl Predicate<K>) -> Rule<K> {
    Rule::new(a).and(b)
}

/// What either lets pass.
pub fn or<K: Cacheable>(a: impl Predicate<K>, b: impl Predicate<K>) -> Rule<K> {
    Rule::new(a).or(b)
}

/// What the predicate keeps away; see [`Rule::not`].
pub fn not<K: Cacheable>(predicate: impl Predicate<K>) -> Rule<K> {
    Rule::new(predicate).not()
}

/// Whether an object was deleted, or its deletion began.
fn is_of_deletion<K: Cacheable>(event: &Event<K>) -> bool {
    match event {
        Event::Deleted { .. } => true,
        Event::Updated { old, new } => match (old.meta(), new.meta()) {
            (Some(old), Some(new)) => {
                old.deletion_timestamp.is_none() && new.deletion_timestamp.is_some()
            }
            _ => true, // what cannot be read may be that
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests;
