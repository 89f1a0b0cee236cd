//! Pods that wait for the network: they cannot have one of their own before the runtime says that it
//! works. Those that use their machine's do not wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use k8s_openapi::api::core::v1::Pod;
use steersman::ObjectKey;
use steersman::events::NewEvent;
use tokio::sync::watch;

use super::{Shared, is_on_host, key_of, locked, uid_of};
use crate::cri::Said;
use crate::health::network_trouble;

/// The Pods that wait.
#[derive(Default)]
pub(super) struct NetworkWaits {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// By uid.
    pods: HashMap<String, ObjectKey>,
    /// Whether a task wakes them when they need not wait any more.
    watched: bool,
}

impl NetworkWaits {
    /// Whether a Pod has to wait now. People are told, and the Pod is woken when it need not any more.
    pub(super) fn holds(&self, shared: &Arc<Shared>, pod: &Pod) -> bool {
        if is_on_host(pod) {
            return false;
        }
        let said = shared.cri.said();
        let Some(why) = trouble(&said.borrow()) else { return false };
        let news = self.add(uid_of(pod), key_of(pod));
        if news.pod {
            let event = NewEvent::warning("NetworkNotReady").action("Starting");
            shared.recorder.event(pod, event.note(format!("network is not ready: {why}")));
        }
        if news.first {
            tokio::spawn(wake_all(Arc::downgrade(shared), said));
        }
        true
    }

    /// Forgets a Pod that is gone.
    pub(super) fn forget(&self, uid: &str) {
        locked(&self.waiting).pods.remove(uid);
    }

    fn add(&self, uid: &str, pod: ObjectKey) -> News {
        let mut waiting = locked(&self.waiting);
        let first = !std::mem::replace(&mut waiting.watched, true);
        News { pod: waiting.pods.insert(uid.to_owned(), pod).is_none(), first }
    }

    /// All that wait, who then do not any more. Whoever comes after this needs another to wake it.
    fn take(&self) -> Vec<ObjectKey> {
        let waiting = std::mem::take(&mut *locked(&self.waiting));
        waiting.pods.into_values().collect()
    }
}

/// What is new about a Pod that has to wait.
#[derive(Debug, PartialEq, Eq)]
struct News {
    /// That it does.
    pod: bool,
    /// That somebody has to wake those who wait.
    first: bool,
}

/// Wakes all who wait when there is a network.
async fn wake_all(shared: Weak<Shared>, mut said: watch::Receiver<Said>) {
    let _ = said.wait_for(|said| trouble(said).is_none()).await; // or until nobody asks any more
    let Some(shared) = shared.upgrade() else { return };
    for pod in shared.network_waits.take() {
        shared.wake(pod).await;
    }
}

/// Why there is no network. A runtime that has not said anything yet may have one.
fn trouble(said: &Said) -> Option<String> {
    if said.conditions.is_empty() { None } else { network_trouble(&said.conditions) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_wait_are_woken_together_unless_they_are_gone() {
        let waits = NetworkWaits::default();
        let key = |name: &str| ObjectKey::namespaced("default", name);
        assert_eq!(waits.add("u1", key("a")), News { pod: true, first: true });
        assert_eq!(waits.add("u1", key("a")), News { pod: false, first: false });
        assert_eq!(waits.add("u2", key("b")), News { pod: true, first: false });
        waits.forget("u1");
        assert_eq!(waits.take(), [key("b")]);
        assert_eq!(waits.take(), []);
        assert_eq!(waits.add("u2", key("b")), News { pod: true, first: true }, "it is down again");
    }
}
