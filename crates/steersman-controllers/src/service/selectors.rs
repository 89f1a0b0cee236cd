//! Which Services a Pod belongs to, to look at them again when it changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::core::{Selector, SelectorExt};
use steersman::ObjectKey;
use steersman::cache::Item;
use steersman::handler::Requests;
use steersman::informer::Event;

use super::pods::{concerns_endpoints, is_endpoint};
use super::selector;

/// The selectors of all Services. Clones share their content.
#[derive(Clone, Default)]
pub(crate) struct Selectors {
    by_namespace: Arc<Mutex<ByNamespace>>,
}

/// Namespace → name of the Service → what it selects.
type ByNamespace = HashMap<Arc<str>, BTreeMap<Arc<str>, Selector>>;

impl Selectors {
    /// Takes a change of a Service into account.
    pub(crate) fn observe(&self, event: &Event<Service>) {
        let ObjectKey { namespace: Some(namespace), name } = event.object().key().clone() else {
            return;
        };
        let selected = match event {
            Event::Deleted { .. } => None,
            _ => event.object().object().and_then(|service| selector(&service).cloned()),
        };
        let mut by_namespace = self.lock();
        let services = by_namespace.entry(Arc::clone(&namespace)).or_default();
        match selected {
            Some(labels) => drop(services.insert(name, labels.into_iter().collect())),
            None => drop(services.remove(&name)),
        }
        if services.is_empty() {
            by_namespace.remove(&namespace);
        }
    }

    /// Asks for the Services that a change of a Pod concerns.
    pub(crate) fn of_pod(&self, event: &Event<Pod>, requests: &mut Requests) {
        let selecting = self.of(event);
        if !selecting.is_empty() && concerns_some_endpoint(event) {
            selecting.into_iter().for_each(|key| requests.add(key));
        }
    }

    /// The Services that select the Pod of an event, or did before. What most Pods change is no
    /// Service's business, and is found out without decoding them.
    pub(crate) fn of(&self, event: &Event<Pod>) -> Vec<ObjectKey> {
        event.objects().flat_map(|pod| self.selecting(pod)).collect()
    }

    /// The Services that select a Pod.
    fn selecting(&self, pod: &Item<Pod>) -> Vec<ObjectKey> {
        let by_namespace = self.lock();
        let Some(namespace) = pod.key().namespace.as_ref() else { return Vec::new() };
        let Some(services) = by_namespace.get(namespace) else { return Vec::new() };
        let labels = pod.labels().into_iter();
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let selecting = services.iter().filter(|(_, selector)| selector.matches(&labels));
        let key = |name: &Arc<str>| ObjectKey::namespaced(Arc::clone(namespace), Arc::clone(name));
        selecting.map(|(name, _)| key(name)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, ByNamespace> {
        self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether endpoints may differ because of what happened to a Pod that Services select.
pub(crate) fn concerns_some_endpoint(event: &Event<Pod>) -> bool {
    if let Event::Updated { old, new } = event
        && let (Some(old), Some(new)) = (old.object(), new.object())
        && !concerns_endpoints(&old, &new)
    {
        return false;
    }
    // A Pod without an address is nobody's endpoint yet.
    event.objects().filter_map(Item::object).any(|pod| is_endpoint(&pod, true))
}
