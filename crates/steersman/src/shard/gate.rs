//! The gate before a controller's workers: which keys this replica may reconcile now.
//!
//! Workers ask it before each reconcile and hold a [`Pass`] during it; whoever shares the keys
//! among replicas ([`shard`](crate::shard)) sets the rule, and is notified when a key whose pass is no
//! longer due has been left. Without a rule nothing passes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::object::ObjectKey;

/// Which keys pass. Quick, and never the author's code: it is asked under the gate's lock.
pub(crate) type Admits = Arc<dyn Fn(&ObjectKey) -> bool + Send + Sync>;

/// Lets some keys through.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    left: Notify,
}

#[derive(Default)]
struct State {
    admits: Option<Admits>,
    /// The keys that are being reconciled, and how to abort that.
    running: HashMap<ObjectKey, CancellationToken>,
}

impl State {
    fn admits(&self, key: &ObjectKey) -> bool {
        self.admits.as_ref().is_some_and(|admits| admits(key))
    }
}

/// The right to reconcile one key, until it is dropped.
pub(crate) struct Pass {
    gate: Arc<Gate>,
    key: ObjectKey,
    revoked: CancellationToken,
}

impl Gate {
    /// Asks to reconcile a key. A key has one pass at a time, as it has one worker.
    pub(crate) fn enter(self: &Arc<Self>, key: &ObjectKey) -> Option<Pass> {
        let mut state = self.lock();
        if !state.admits(key) {
            return None;
        }
        let revoked = CancellationToken::new();
        state.running.insert(key.clone(), revoked.clone());
        Some(Pass { gate: Arc::clone(self), key: key.clone(), revoked })
    }

    /// Changes the rule for all who ask from now on, and gives back the old one.
    pub(crate) fn set(&self, admits: Option<Admits>) -> Option<Admits> {
        std::mem::replace(&mut self.lock().admits, admits)
    }

    /// Whether a key is being reconciled that would not be admitted any more.
    pub(crate) fn has_strays(&self) -> bool {
        let state = self.lock();
        state.running.keys().any(|key| !state.admits(key))
    }

    /// Aborts the reconciles of all keys that would not be admitted any more.
    pub(crate) fn revoke(&self) {
        let state = self.lock();
        for (key, revoked) in &state.running {
            if !state.admits(key) {
                revoked.cancel();
            }
        }
    }

    /// Ready when some key has been left since this was last ready.
    pub(crate) async fn left(&self) {
        self.left.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    /// Ready when the reconcile must be aborted.
    pub(crate) async fn revoked(&self) {
        self.revoked.cancelled().await;
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.gate.lock().running.remove(&self.key);
        self.gate.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(name: &'static str) -> Option<Admits> {
        Some(Arc::new(move |key: &ObjectKey| &*key.name == name))
    }

    #[tokio::test]
    async fn a_key_that_lost_its_right_is_a_stray_until_it_is_left() {
        let gate = Arc::new(Gate::default());
        let a = ObjectKey::from("a");
        let b = ObjectKey::from("b");
        assert!(gate.enter(&a).is_none(), "nothing passes without a rule");
        gate.set(only("a"));
        let pass = gate.enter(&a).unwrap();
        assert!(gate.enter(&b).is_none() && !gate.has_strays());
        gate.set(only("b"));
        assert!(gate.has_strays());
        gate.revoke();
        pass.revoked().await;
        drop(pass);
        gate.left().await;
        assert!(!gate.has_strays());
        let pass = gate.enter(&b).unwrap();
        gate.revoke();
        assert!(!pass.revoked.is_cancelled(), "what is admitted goes on");
    }
}
