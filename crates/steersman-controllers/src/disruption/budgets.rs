//! Which budgets cover a Pod, to look at them again when it changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{Selector, SelectorExt};
use steersman::ObjectKey;
use steersman::informer::Event;

/// The selectors of all budgets. Clones share their content.
#[derive(Clone, Default)]
pub(super) struct Budgets {
    by_namespace: Arc<Mutex<ByNamespace>>,
}

/// Namespace → name of the budget → what it selects.
type ByNamespace = HashMap<Arc<str>, BTreeMap<Arc<str>, Selector>>;

impl Budgets {
    /// Takes a change of a budget into account.
    pub(super) fn observe(&self, event: &Event<PodDisruptionBudget>) {
        let ObjectKey { namespace: Some(namespace), name } = event.object().key().clone() else {
            return;
        };
        let selector = match event {
            Event::Deleted { .. } => None,
            _ => event.object().object().and_then(|budget| selector(&budget)),
        };
        let mut by_namespace = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        let budgets = by_namespace.entry(Arc::clone(&namespace)).or_default();
        match selector {
            Some(selector) => drop(budgets.insert(name, selector)),
            None => drop(budgets.remove(&name)),
        }
        if budgets.is_empty() {
            by_namespace.remove(&namespace);
        }
    }

    /// The budgets that cover a Pod with this metadata.
    pub(super) fn of_pod(&self, pod: &ObjectMeta) -> Vec<ObjectKey> {
        let Some(namespace) = pod.namespace.as_deref() else { return Vec::new() };
        let labels = pod.labels.clone().unwrap_or_default();
        let by_namespace = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        let budgets = by_namespace.get(namespace).into_iter().flatten();
        let covering = budgets.filter(|(_, selector)| selector.matches(&labels));
        covering.map(|(name, _)| ObjectKey::namespaced(namespace, Arc::clone(name))).collect()
    }
}

/// What a budget selects: an empty selector everything, none nothing.
pub(super) fn selector(budget: &PodDisruptionBudget) -> Option<Selector> {
    let selector = budget.spec.as_ref()?.selector.clone()?;
    Selector::try_from(selector).ok()
}
