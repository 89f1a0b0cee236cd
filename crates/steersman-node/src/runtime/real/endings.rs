//! Which Pods are to end. What a container does right after its start may take an hour, for which
//! nobody waits whose Pod ends before.

use std::collections::HashSet;

use tokio::sync::watch;

/// The Pods that are to end, by uid.
pub(super) struct Endings {
    pods: watch::Sender<HashSet<String>>,
}

impl Default for Endings {
    fn default() -> Self {
        Self { pods: watch::channel(HashSet::new()).0 }
    }
}

impl Endings {
    /// Notes that a Pod is to end.
    pub(super) fn tell(&self, uid: &str) {
        self.pods.send_if_modified(|pods| pods.insert(uid.to_owned()));
    }

    pub(super) fn forget(&self, uid: &str) {
        self.pods.send_if_modified(|pods| {
            pods.remove(uid);
            false // nobody waits for it
        });
    }

    /// Waits until a Pod is to end.
    pub(super) async fn told(&self, uid: &str) {
        let mut pods = self.pods.subscribe();
        let _ = pods.wait_for(|pods| pods.contains(uid)).await; // the sender is here
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn whoever_waits_for_a_pod_to_end_hears_of_it_before_and_after() {
        let endings = Endings::default();
        let mut waiting = Box::pin(endings.told("a"));
        assert!(waiting.as_mut().now_or_never().is_none());
        endings.tell("b");
        assert!(waiting.as_mut().now_or_never().is_none(), "it is another");
        endings.tell("a");
        assert!(waiting.now_or_never().is_some());
        assert!(endings.told("a").now_or_never().is_some(), "it was told before");
        endings.forget("a");
        assert!(endings.told("a").now_or_never().is_none());
    }
}
