//! Which owners select an orphan: the way from an object without a controller to the owners
//! that may adopt it.
//!
//! A handler sees one object and cannot search a cache, so the selectors of all owners are kept
//! here, by namespace, and follow every change of an owner.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::core::{Selector, SelectorExt};

use crate::informer::Event;
use crate::object::{Cacheable, ObjectKey, controller_of};

/// The selectors of all objects of a kind, to find the owners that may adopt an orphan. Clones
/// share their content.
pub struct Selectors<K> {
    by_namespace: Arc<Mutex<ByNamespace>>,
    selector: SelectorOf<K>,
}

/// What an owner selects.
type SelectorOf<K> = Arc<dyn Fn(&K) -> Option<Selector> + Send + Sync>;

/// Namespace → name of the owner → what it selects.
type ByNamespace = HashMap<Arc<str>, BTreeMap<Arc<str>, Selector>>;

impl<K> Clone for Selectors<K> {
    fn clone(&self) -> Self {
        let selector = Arc::clone(&self.selector);
        Self { by_namespace: Arc::clone(&self.by_namespace), selector }
    }
}

impl<K: Cacheable> Selectors<K> {
    /// No selectors yet; `selector` says which labels an owner asks for.
    pub fn new(selector: fn(&K) -> Option<&LabelSelector>) -> Self {
        Self::of(Arc::new(move |owner| parsed(selector(owner)?)))
    }

    /// The same for owners that ask for labels alone, such as ReplicationControllers.
    pub fn by_labels(labels: fn(&K) -> Option<&BTreeMap<String, String>>) -> Self {
        Self::of(Arc::new(move |owner| {
            let match_labels = Some(labels(owner)?.clone());
            parsed(&LabelSelector { match_labels, match_expressions: None })
        }))
    }

    fn of(selector: SelectorOf<K>) -> Self {
        Self { by_namespace: Arc::default(), selector }
    }

    /// The owners that might adopt an object with this metadata: none if it has a controller.
    pub fn of_orphan(&self, meta: &ObjectMeta) -> Vec<ObjectKey> {
        owners_of_orphan(&self.by_namespace, meta)
    }

    /// Takes a change of an owner into account; for
    /// [`observes`](crate::controller::Builder::observes).
    pub fn observe(&self, event: &Event<K>) {
        let selector = match event {
            Event::Deleted { .. } => None,
            _ => event.object().object().and_then(|owner| (self.selector)(&owner)),
        };
        file(&self.by_namespace, event.object().key(), selector);
    }
}

/// Notes what an owner selects.
fn file(by_namespace: &Mutex<ByNamespace>, owner: &ObjectKey, selector: Option<Selector>) {
    let ObjectKey { namespace: Some(namespace), name } = owner.clone() else { return };
    let mut by_namespace = by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
    let owners = by_namespace.entry(Arc::clone(&namespace)).or_default();
    match selector {
        Some(selector) => drop(owners.insert(name, selector)),
        None => drop(owners.remove(&name)),
    }
    if owners.is_empty() {
        by_namespace.remove(&namespace);
    }
}

/// The owners whose selectors match an object that nobody controls.
fn owners_of_orphan(by_namespace: &Mutex<ByNamespace>, meta: &ObjectMeta) -> Vec<ObjectKey> {
    let (None, Some(namespace)) = (controller_of(meta), meta.namespace.as_deref()) else {
        return Vec::new();
    };
    let labels = meta.labels.clone().unwrap_or_default();
    let by_namespace = by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
    let owners = by_namespace.get(namespace).into_iter().flatten();
    let matching = owners.filter(|(_, selector)| selector.matches(&labels));
    matching.map(|(name, _)| ObjectKey::namespaced(namespace, Arc::clone(name))).collect()
}

/// What a selector selects; nothing if it is invalid or empty, because an empty one would claim
/// the whole namespace.
pub(super) fn parsed(selector: &LabelSelector) -> Option<Selector> {
    let selector = Selector::try_from(selector.clone()).ok()?;
    (!selector.selects_all()).then_some(selector)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::ReplicaSet;
    use serde_json::json;

    use super::*;
    use crate::cache::Item;

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
        let selectors =
            Selectors::new(|set: &ReplicaSet| set.spec.as_ref().map(|spec| &spec.selector));
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
        assert!(parsed(&LabelSelector::default()).is_none());
    }
}
