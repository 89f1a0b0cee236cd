//! What the controller remembers of every autoscaler: when it is due, whom it selects, and its
//! [history](super::history).
//!
//! An entry appears and vanishes with its autoscaler, as the cache tells.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Pod;
use kube::core::{Selector, SelectorExt};
use steersman::informer::Event;
use steersman::{ObjectKey, clock};

use super::history::History;
use super::settings::AutoscalerSettings;

/// What is remembered of all autoscalers. Nobody waits while it is locked.
pub(super) struct Memory {
    known: Mutex<HashMap<ObjectKey, Known>>,
    settings: AutoscalerSettings,
}

struct Known {
    /// When it is looked at next.
    due: Timestamp,
    /// Which Pods it is about, once its target has told.
    selector: Option<Selector>,
    history: History,
}

impl Memory {
    pub(super) fn new(settings: AutoscalerSettings) -> Self {
        Self { known: Mutex::default(), settings }
    }

    /// Follows the autoscalers that there are. A new one has its turn after one period.
    pub(super) fn observe(&self, event: &Event<HorizontalPodAutoscaler>) {
        let key = event.object().key();
        let mut known = self.lock();
        match event {
            Event::Deleted { .. } => drop(known.remove(key)),
            _ if known.contains_key(key) => {}
            _ => {
                let due = clock::now() + self.settings.sync_period;
                let history = History::new(self.settings.downscale_stabilization);
                let new = Known { due, selector: None, history };
                known.insert(key.clone(), new);
            }
        }
    }

    /// How long an autoscaler has to wait for its turn. If it is its turn, the next one comes
    /// after one period.
    pub(super) fn wait(&self, key: &ObjectKey, now: Timestamp) -> Option<Duration> {
        let mut known = self.lock();
        let known = known.get_mut(key)?;
        let rest = Duration::try_from(known.due.duration_since(now)).unwrap_or_default();
        if rest.is_zero() {
            known.due = now + self.settings.sync_period;
            return None;
        }
        Some(rest)
    }

    /// Works on the history of an autoscaler; on none if that is gone meanwhile.
    pub(super) fn with<T>(&self, key: &ObjectKey, work: impl FnOnce(&mut History) -> T) -> T {
        match self.lock().get_mut(key) {
            Some(known) => work(&mut known.history),
            None => work(&mut History::new(self.settings.downscale_stabilization)),
        }
    }

    /// Notes whom an autoscaler selects.
    pub(super) fn selects(&self, key: &ObjectKey, selector: &Selector) {
        if let Some(known) = self.lock().get_mut(key) {
            known.selector = Some(selector.clone());
        }
    }

    /// The autoscalers of a namespace that select any of these Pods, in order.
    pub(super) fn selecting(&self, namespace: &str, pods: &[impl AsRef<Pod>]) -> Vec<ObjectKey> {
        let known = self.lock();
        let selects = |(key, known): &(&ObjectKey, &Known)| {
            let Some(selector) = &known.selector else { return false };
            key.namespace.as_deref() == Some(namespace)
                && pods.iter().any(|pod| {
                    let labels = pod.as_ref().metadata.labels.clone().unwrap_or_default();
                    selector.matches(&labels)
                })
        };
        let mut keys: Vec<ObjectKey> =
            known.iter().filter(selects).map(|(key, _)| key.clone()).collect();
        keys.sort_by(|a, b| a.name.cmp(&b.name));
        keys
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
