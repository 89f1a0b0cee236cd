//! A predicate from plain functions, one for each kind of event.

use super::{Predicate, is_of_deletion};
use crate::informer::Event;
use crate::object::Cacheable;

/// A function over one object.
type One<K> = Option<Box<dyn Fn(&K) -> bool + Send + Sync>>;
/// A function over what an object was and what it is.
type Two<K> = Option<Box<dyn Fn(&K, &K) -> bool + Send + Sync>>;

/// Asks a function of its own for each kind of event. Where there is none, the event passes.
#[must_use = "a predicate does nothing until a controller has it"]
pub struct Funcs<K> {
    create: One<K>,
    update: Two<K>,
    delete: One<K>,
    generic: One<K>,
}

/// Lets everything pass unless a function says otherwise:
/// `funcs().on_update(|old: &Pod, new: &Pod| …).on_delete(|_| false)`.
pub fn funcs<K: Cacheable>() -> Funcs<K> {
    Funcs { create: None, update: None, delete: None, generic: None }
}

impl<K: Cacheable> Funcs<K> {
    /// Objects that are new to the cache.
    pub fn on_create(mut self, matters: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        self.create = Some(Box::new(matters));
        self
    }

    /// Objects that changed, as they were and as they are. An update that began the deletion
    /// passes in any case, unless the predicate is [strict](super::Rule::strict).
    pub fn on_update(mut self, matters: impl Fn(&K, &K) -> bool + Send + Sync + 'static) -> Self {
        self.update = Some(Box::new(matters));
        self
    }

    /// Objects that are gone. Returning `false` here keeps deletions away.
    pub fn on_delete(mut self, matters: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        self.delete = Some(Box::new(matters));
        self
    }

    /// Objects that somebody pointed at without a change.
    pub fn on_generic(mut self, matters: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        self.generic = Some(Box::new(matters));
        self
    }
}

impl<K: Cacheable> Predicate<K> for Funcs<K> {
    fn matters(&self, event: &Event<K>) -> bool {
        self.verdict(event, false) != Some(false)
    }

    fn verdict(&self, event: &Event<K>, strict: bool) -> Option<bool> {
        let asked = match event {
            Event::Added { .. } => &self.create,
            Event::Deleted { .. } => &self.delete,
            Event::Generic { .. } => &self.generic,
            Event::Resynced { .. } => return None,
            Event::Updated { old, new } => {
                let asked = self.update.as_ref()?;
                if !strict && is_of_deletion(event) {
                    return None;
                }
                return Some(asked(&*old.object()?, &*new.object()?));
            }
        };
        Some(asked.as_ref()?(&*event.object().object()?))
    }
}
