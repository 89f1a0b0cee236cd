//! Objects that are gone: who asked to be called, and for which deletions that is still due.
//!
//! The event of a deletion leaves the last state of the object here before its key is queued;
//! the worker that takes the key calls the hook, until that succeeds. Only then is an object that
//! took the same name meanwhile reconciled; the two never run at the same time.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::keys::ForgetKey;
use super::record::Outcome;
use crate::cache::Item;
use crate::client::Client;
use crate::error::{Result, panic_text};
use crate::object::{AnyObject, ObjectKey};

/// Deletions of one name that are remembered; there are more only if the hook fails while
/// the object comes and goes.
const KEPT: usize = 16;

/// An object that is gone.
pub struct Gone<K> {
    /// Which one it was.
    pub key: ObjectKey,
    /// As it was last seen, which may be older than its end if that was missed. `None` if it
    /// could not be read.
    pub last: Option<Arc<K>>,
}

type Hook<K> = Arc<dyn Fn(Gone<K>, Client) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// What is called for deletions, while a controller is built.
pub(super) type OnDeleted<K> = Option<Hook<K>>;

/// The deletions for which the hook has yet to succeed.
pub(super) struct Deletions<K> {
    hook: Hook<K>,
    pending: Mutex<HashMap<ObjectKey, VecDeque<Item<K>>>>,
}

impl<K: AnyObject> ForgetKey for Deletions<K> {
    fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }
}

impl<K: AnyObject> Deletions<K> {
    pub(super) fn new(hook: Hook<K>) -> Self {
        Self { hook, pending: Mutex::default() }
    }

    /// Notes that an object is gone. To be called before its key is queued.
    pub(super) fn note(&self, last: &Item<K>) {
        let mut pending = self.lock();
        let of_key = pending.entry(last.key().clone()).or_default();
        if of_key.len() == KEPT {
            of_key.pop_front();
            tracing::warn!(key = %last.key(), "the deletion hook keeps failing, a deletion is dropped");
        }
        of_key.push_back(last.clone());
    }

    /// Whether the hook is due for this key.
    pub(super) fn concern(&self, key: &ObjectKey) -> bool {
        self.lock().contains_key(key)
    }

    /// Calls the hook for every deletion of this key, in their order; gives what went wrong.
    pub(super) async fn run(&self, key: &ObjectKey, client: &Client) -> Option<Outcome> {
        while let Some(item) = self.first(key) {
            let gone = Gone { key: key.clone(), last: item.object() };
            let call = async { (self.hook)(gone, client.clone()).await };
            match AssertUnwindSafe(call).catch_unwind().await {
                Ok(Ok(())) => self.succeeded(key),
                Ok(Err(error)) if error.is_terminal() => {
                    tracing::error!(%error, "the deletion hook failed with a terminal error, not retried");
                    self.succeeded(key);
                }
                Ok(Err(error)) => return Some(error.into()),
                Err(panic) => return Some(Outcome::Panicked(panic_text(&*panic))),
            }
        }
        None
    }

    fn succeeded(&self, key: &ObjectKey) {
        let mut pending = self.lock();
        if let Some(of_key) = pending.get_mut(key) {
            of_key.pop_front();
            if of_key.is_empty() {
                pending.remove(key);
            }
        }
    }

    fn first(&self, key: &ObjectKey) -> Option<Item<K>> {
        self.lock().get(key)?.front().cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, VecDeque<Item<K>>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
