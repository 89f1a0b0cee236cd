//! Pods for which something is done before they are bound, which can still be called off.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Who cancelled it, if anybody did.
type Cancelled = Option<&'static str>;

/// Who is prepared to be bound, by uid.
#[derive(Debug, Default)]
pub(super) struct PreBinding(Mutex<HashMap<Arc<str>, watch::Sender<Cancelled>>>);

/// A Pod that is prepared; nobody can cancel that any more when this is dropped.
pub(super) struct Preparation<'a> {
    all: &'a PreBinding,
    uid: Arc<str>,
    cancelled: watch::Receiver<Cancelled>,
}

impl PreBinding {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, watch::Sender<Cancelled>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on it can be cancelled that a Pod is bound.
    pub(super) fn begin(&self, uid: &Arc<str>) -> Preparation<'_> {
        let (sender, cancelled) = watch::channel(None);
        self.lock().insert(Arc::clone(uid), sender);
        Preparation { all: self, uid: Arc::clone(uid), cancelled }
    }

    /// Cancels that a Pod is bound. Whether it was not too late.
    pub(super) fn cancel(&self, uid: &str, by: &'static str) -> bool {
        let all = self.lock();
        let Some(preparation) = all.get(uid) else { return false };
        preparation.send_replace(Some(by));
        true
    }
}

impl Preparation<'_> {
    /// Waits until it is cancelled. Why it was.
    pub(super) async fn cancelled(&mut self) -> String {
        match self.cancelled.wait_for(Option::is_some).await.map(|by| *by) {
            Ok(Some(by)) => preempted(by),
            _ => std::future::pending().await,
        }
    }

    /// All is prepared, and the Pod is bound unless somebody was against it.
    pub(super) fn finish(self) -> Result<(), String> {
        self.all.lock().remove(&self.uid);
        match *self.cancelled.borrow() {
            Some(by) => Err(preempted(by)),
            None => Ok(()),
        }
    }
}

impl Drop for Preparation<'_> {
    fn drop(&mut self) {
        self.all.lock().remove(&self.uid);
    }
}

fn preempted(by: &str) -> String {
    format!("preempted by {by}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_binding_can_be_cancelled_until_all_is_prepared() {
        let all = PreBinding::default();
        assert!(!all.cancel("uid", "p"), "it has not begun");
        let mut preparation = all.begin(&"uid".into());
        assert!(all.cancel("uid", "p") && all.cancel("uid", "p"));
        assert_eq!(preparation.cancelled().await, "preempted by p");
        assert_eq!(preparation.finish(), Err("preempted by p".to_owned()));
        let preparation = all.begin(&"uid".into());
        assert_eq!(preparation.finish(), Ok(()));
        assert!(!all.cancel("uid", "p"), "it is being bound");
        drop(all.begin(&"uid".into()));
        assert!(!all.cancel("uid", "p"), "that went wrong");
    }
}
