//! Objects that are gone: who asked to be called, and for which deletions that is still due.
//!
//! The event of a deletion leaves the last state of the object here before its key is queued;
//! the worker that takes the key calls the hook, until that succeeds. Only then is an object that
//! took the same name meanwhile reconciled; the two never run at the same time.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::keys::ForgetKey;
use super::record::Outcome;
use crate::cache::{Item, Untyped};
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

/// What is called for deletions, with the last state that was seen.
pub(super) type Hook =
    Arc<dyn Fn(&Item<Untyped>, Client) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// The author's hook without the type of its objects.
pub(super) fn hook<K: AnyObject, Fut>(
    hook: impl Fn(Gone<K>, Client) -> Fut + Send + Sync + 'static,
) -> Hook
where
    Fut: Future<Output = Result<()>> + Send + 'static,
{
    Arc::new(move |last, client| {
        let gone = Gone { key: last.key().clone(), last: last.clone().cast().object() };
        Box::pin(hook(gone, client))
    })
}

/// The deletions for which the hook has yet to succeed.
pub(super) struct Deletions {
    hook: Hook,
    pending: Mutex<HashMap<ObjectKey, VecDeque<Item<Untyped>>>>,
}

impl ForgetKey for Deletions {
    fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }
}

impl Deletions {
    pub(super) fn new(hook: Hook) -> Self {
        Self { hook, pending: Mutex::default() }
    }

    /// Notes that an object is gone. To be called before its key is queued.
    pub(super) fn note(&self, last: &Item<Untyped>) {
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
            // The call itself is inside the future, so that its panics are caught as well.
            let call = async { (self.hook)(&item, client.clone()).await };
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

    fn first(&self, key: &ObjectKey) -> Option<Item<Untyped>> {
        self.lock().get(key)?.front().cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, VecDeque<Item<Untyped>>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
