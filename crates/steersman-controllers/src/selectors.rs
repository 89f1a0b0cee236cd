//! Which owners select an orphan: the way from an object without a controller to the owners
//! that may adopt it.
//!
//! A handler sees one object and cannot search a cache, so the selectors of all owners are kept
//! here, by namespace, and follow every change of an owner.

use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::core::{Selector, SelectorExt};
use steersman::ObjectKey;
use steersman::informer::Event;
use steersman::object::{Cacheable, controller_of};

/// An owner that claims objects by their labels.
pub(crate) trait Selects: Cacheable {
    /// The labels it asks for.
    fn label_selector(&self) -> Option<&LabelSelector>;
}

/// The selectors of all objects of a kind. Clones share their content.
pub(crate) struct Selectors<K> {
    by_namespace: Arc<Mutex<ByNamespace>>,
    owner: PhantomData<fn() -> K>,
}

/// Namespace → name of the owner → what it selects.
type ByNamespace = HashMap<Arc<str>, BTreeMap<Arc<str>, Selector>>;

impl<K> Clone for Selectors<K> {
    fn clone(&self) -> Self {
        Self { by_namespace: Arc::clone(&self.by_namespace), owner: PhantomData }
    }
}

impl<K> Default for Selectors<K> {
    fn default() -> Self {
        Self { by_namespace: Arc::default(), owner: PhantomData }
    }
}

impl<K: Selects> Selectors<K> {
    /// The owners that might adopt an object with this metadata: none if it has a controller.
    pub(crate) fn of_orphan(&self, meta: &ObjectMeta) -> Vec<ObjectKey> {
        let (None, Some(namespace)) = (controller_of(meta), meta.namespace.as_deref()) else {
            return Vec::new();
        };
        let labels = meta.labels.clone().unwrap_or_default();
        let by_namespace = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        let owners = by_namespace.get(namespace).into_iter().flatten();
        let matching = owners.filter(|(_, selector)| selector.matches(&labels));
        matching.map(|(name, _)| ObjectKey::namespaced(namespace, Arc::clone(name))).collect()
    }

    /// Takes a change of an owner into account.
    pub(crate) fn observe(&self, event: &Event<K>) {
        let key = event.object().key().clone();
        let Some(namespace) = key.namespace else { return };
        let selector = match event {
            Event::Deleted { .. } => None,
            _ => event.object().object().and_then(|owner| selector_of(&*owner)),
        };
        let mut by_namespace = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        let owners = by_namespace.entry(Arc::clone(&namespace)).or_default();
        match selector {
            Some(selector) => drop(owners.insert(key.name, selector)),
            None => drop(owners.remove(&key.name)),
        }
        if owners.is_empty() {
            by_namespace.remove(&namespace);
        }
    }
}

/// What an owner selects; nothing if its selector is missing, invalid or empty, because an
/// empty one would claim the whole namespace.
pub(crate) fn selector_of<K: Selects>(owner: &K) -> Option<Selector> {
    let selector = Selector::try_from(owner.label_selector()?.clone()).ok()?;
    (!selector.selects_all()).then_some(selector)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::ReplicaSet;
    use serde_json::json;
    use steersman::cache::Item;

    use super::*;

    fn set(name: &str, app: &str) -> Item<ReplicaSet> {
        let set = json!({
            "metadata": {"namespace": "default", "name": name},
            "spec": {"selector": {"matchLabels": {"app": app}}},
        });
        Item::typed(serde_json::from_value(set).unwrap())
    }

    fn meta(labels: &[(&str, &str)]) -> ObjectMeta {
        let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        ObjectMeta {
            namespace: Some("default".into()),
            labels: Some(labels),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn an_orphan_finds_the_owners_that_select_it_until_they_are_deleted() {
        let selectors = Selectors::<ReplicaSet>::default();
        selectors.observe(&Event::Added { object: set("web", "web"), initial: false });
        selectors.observe(&Event::Added { object: set("api", "api"), initial: false });
        let orphan = meta(&[("app", "web"), ("tier", "front")]);
        assert_eq!(selectors.of_orphan(&orphan), [ObjectKey::from("default/web")]);
        let gone = Event::Deleted { object: set("web", "web"), final_state_unknown: false };
        selectors.observe(&gone);
        assert!(selectors.of_orphan(&orphan).is_empty());
    }

    #[test]
    fn an_empty_selector_claims_nothing() {
        let mut empty = ReplicaSet::clone(&set("web", "web").object().unwrap());
        empty.spec.as_mut().unwrap().selector = LabelSelector::default();
        assert!(selector_of(&empty).is_none());
    }
}
