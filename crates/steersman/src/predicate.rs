//! Predicates: which events of the reconciled kind are worth a reconcile.
//!
//! The ready-made ones look at what changed between two versions of an object, and always let
//! additions, deletions, resyncs and the beginning of a deletion through: a finalizer or a
//! cleanup must never be missed. They read metadata only, so a cache that holds objects
//! compactly decodes no more than that.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::informer::Event;
use crate::object::Cacheable;

/// Decides whether an event is worth a reconcile.
pub trait Predicate<K>: Send + Sync + 'static {
    /// Whether this event matters.
    fn matters(&self, event: &Event<K>) -> bool;
}

impl<K, F: Fn(&Event<K>) -> bool + Send + Sync + 'static> Predicate<K> for F {
    fn matters(&self, event: &Event<K>) -> bool {
        self(event)
    }
}

/// Only updates that changed the desired state: `metadata.generation` went up. For kinds
/// whose status changes often. Kinds without a generation pass.
pub fn generation_changed<K: Cacheable>() -> impl Predicate<K> {
    on_update(|old, new| new.generation.is_none() || old.generation != new.generation)
}

/// Only updates that changed the labels.
pub fn labels_changed<K: Cacheable>() -> impl Predicate<K> {
    on_update(|old, new| old.labels != new.labels)
}

/// Only updates that changed the annotations.
pub fn annotations_changed<K: Cacheable>() -> impl Predicate<K> {
    on_update(|old, new| old.annotations != new.annotations)
}

/// What either predicate lets through.
pub fn any<K>(a: impl Predicate<K>, b: impl Predicate<K>) -> impl Predicate<K> {
    move |event: &Event<K>| a.matters(event) || b.matters(event)
}

/// What both predicates let through.
pub fn all<K>(a: impl Predicate<K>, b: impl Predicate<K>) -> impl Predicate<K> {
    move |event: &Event<K>| a.matters(event) && b.matters(event)
}

fn on_update<K: Cacheable>(
    changed: impl Fn(&ObjectMeta, &ObjectMeta) -> bool + Send + Sync + 'static,
) -> impl Predicate<K> {
    move |event: &Event<K>| match event {
        Event::Updated { old, new } => match (old.meta(), new.meta()) {
            (Some(old), Some(new)) => deletion_began(&old, &new) || changed(&old, &new),
            _ => true, // what cannot be read may matter
        },
        Event::Added { .. } | Event::Deleted { .. } | Event::Resynced { .. } => true,
    }
}

fn deletion_began(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    old.deletion_timestamp.is_none() && new.deletion_timestamp.is_some()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;
    use crate::cache::Item;
    use crate::clock;

    fn deployment(generation: i64) -> Item<Deployment> {
        let mut deployment = Deployment::default();
        deployment.metadata.generation = Some(generation);
        Item::typed(deployment)
    }

    fn update(old: i64, new: i64) -> Event<Deployment> {
        Event::Updated { old: deployment(old), new: deployment(new) }
    }

    #[test]
    fn a_status_change_does_not_pass_the_generation_predicate() {
        let predicate = generation_changed();
        assert!(!predicate.matters(&update(1, 1)));
        assert!(predicate.matters(&update(1, 2)));
    }

    #[test]
    fn deletions_and_their_beginning_always_pass() {
        let predicate = generation_changed();
        let gone = Event::Deleted { object: deployment(1), final_state_unknown: false };
        assert!(predicate.matters(&gone));
        let mut dying = Deployment::clone(&deployment(1).object().unwrap());
        dying.metadata.deletion_timestamp = Some(clock::now_time());
        let began = Event::Updated { old: deployment(1), new: Item::typed(dying) };
        assert!(predicate.matters(&began));
    }

    #[test]
    fn a_resync_that_was_asked_for_always_passes() {
        let resync = Event::Resynced { object: deployment(1) };
        assert!(generation_changed().matters(&resync));
        assert!(labels_changed().matters(&resync) && annotations_changed().matters(&resync));
    }

    #[test]
    fn predicates_combine() {
        assert!(any(generation_changed(), |_: &Event<Deployment>| true).matters(&update(1, 1)));
        assert!(!all(generation_changed(), |_: &Event<Deployment>| true).matters(&update(1, 1)));
    }
}
