//! Pods that have a node, and wait until somebody permits that they are bound to it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::framework::{Code, Refusal};

/// Who waits, by uid.
#[derive(Clone, Debug, Default)]
pub struct WaitingPods(Arc<Mutex<HashMap<Arc<str>, watch::Sender<Permission>>>>);

/// How far a Pod is.
#[derive(Clone, Debug)]
enum Permission {
    /// These plug-ins have not permitted it yet.
    Awaited(BTreeMap<&'static str, Duration>),
    /// Somebody is against it.
    Rejected(&'static str, Refusal),
}

impl WaitingPods {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, watch::Sender<Permission>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The uids of the Pods that wait.
    pub fn uids(&self) -> Vec<Arc<str>> {
        self.lock().keys().cloned().collect()
    }

    /// A plug-in permits that a Pod is bound. When the last one does, it is.
    pub fn allow(&self, uid: &str, plugin: &str) {
        if let Some(waiting) = self.lock().get(uid) {
            waiting.send_modify(|permission| {
                if let Permission::Awaited(plugins) = permission {
                    plugins.remove(plugin);
                }
            });
        }
    }

    /// A plug-in is against it: the Pod goes back into the queue.
    pub fn reject(&self, uid: &str, plugin: &'static str, reason: impl Into<String>) {
        if let Some(waiting) = self.lock().get(uid) {
            let refusal = Refusal::unschedulable(reason.into());
            waiting.send_replace(Permission::Rejected(plugin, refusal));
        }
    }

    /// Another Pod needs the place: the Pod goes back into the queue, and does not count as
    /// unschedulable. Whether it waits still.
    pub(super) fn preempt(&self, uid: &str, by: &'static str) -> bool {
        let waiting = self.lock();
        let Some(waiting) = waiting.get(uid) else { return false };
        waiting.send_if_modified(|permission| {
            let Permission::Awaited(plugins) = permission else { return true };
            let waits = !plugins.is_empty();
            if waits {
                *permission = Permission::Rejected(by, Refusal::error("preempted"));
            }
            waits
        })
    }

    /// Notes that a Pod waits, before anybody can permit it.
    pub(super) fn begin(&self, uid: &Arc<str>, plugins: Vec<(&'static str, Duration)>) {
        let awaited = Permission::Awaited(plugins.into_iter().collect());
        self.lock().insert(Arc::clone(uid), watch::Sender::new(awaited));
    }

    /// Whether a Pod waits.
    pub(super) fn contains(&self, uid: &str) -> bool {
        self.lock().contains_key(uid)
    }

    /// Waits until a Pod is permitted by all.
    pub(super) async fn permitted(&self, uid: &str) -> Result<(), (&'static str, Refusal)> {
        let receiver = self.lock().get(uid).map(watch::Sender::subscribe);
        let Some(mut receiver) = receiver else { return Ok(()) };
        let began = Instant::now();
        let permitted = loop {
            let (plugin, time) = match &*receiver.borrow_and_update() {
                Permission::Rejected(plugin, refusal) => break Err((*plugin, refusal.clone())),
                Permission::Awaited(plugins) => match plugins.iter().min_by_key(|(_, time)| **time)
                {
                    None => break Ok(()),
                    Some((plugin, time)) => (*plugin, *time),
                },
            };
            match timeout_at(began + time, receiver.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => break Err((plugin, Refusal::unschedulable("removed"))),
                Err(_) => {
                    let why = format!(
                        "rejected due to timeout after waiting {}s at plugin {plugin}",
                        time.as_secs()
                    );
                    break Err((plugin, Refusal::new(Code::Unschedulable, why)));
                }
            }
        };
        self.lock().remove(uid);
        permitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(waiting: &WaitingPods) {
        let plugins = vec![("a", Duration::from_secs(10)), ("b", Duration::from_secs(20))];
        waiting.begin(&"uid".into(), plugins);
    }

    #[tokio::test(start_paused = true)]
    async fn all_must_permit_a_pod() {
        let waiting = WaitingPods::default();
        begun(&waiting);
        let permitted = tokio::spawn({
            let waiting = waiting.clone();
            async move { waiting.permitted("uid").await }
        });
        waiting.allow("uid", "a");
        tokio::time::sleep(Duration::from_secs(15)).await;
        assert!(!permitted.is_finished());
        waiting.allow("uid", "b");
        assert_eq!(permitted.await.unwrap(), Ok(()));
        assert!(waiting.uids().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_still_waits_can_be_preempted() {
        let waiting = WaitingPods::default();
        assert!(!waiting.preempt("uid", "p"), "it does not wait");
        begun(&waiting);
        assert!(waiting.preempt("uid", "p"));
        assert_eq!(waiting.permitted("uid").await, Err(("p", Refusal::error("preempted"))));
        begun(&waiting);
        waiting.allow("uid", "a");
        waiting.allow("uid", "b");
        assert!(!waiting.preempt("uid", "p"), "it is about to be bound");
        assert_eq!(waiting.permitted("uid").await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn one_is_enough_to_reject_it_and_so_is_too_long_a_wait() {
        let waiting = WaitingPods::default();
        begun(&waiting);
        waiting.reject("uid", "b", "no");
        assert_eq!(waiting.permitted("uid").await, Err(("b", Refusal::unschedulable("no"))));
        begun(&waiting);
        let (plugin, refusal) = waiting.permitted("uid").await.unwrap_err();
        let why = "rejected due to timeout after waiting 10s at plugin a";
        assert_eq!((plugin, refusal.message()), ("a", why.to_owned()));
    }
}
