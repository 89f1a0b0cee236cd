//! Objects that are gone: who asked to hear of it, and who of them still has to.
//!
//! The event of a deletion leaves the last state of the object here before its key is queued;
//! the worker that takes the key tells of it, until that succeeds. Only then is an object that
//! took the same name meanwhile reconciled; the two never run at the same time.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::Builder;
use super::keys::ForgetKey;
use super::record::Outcome;
use crate::cache::Item;
use crate::client::Client;
use crate::error::{Result, panic_text};
use crate::object::{AnyObject, ObjectKey};

/// Deletions of one name that are remembered; there are more only if telling of them fails while
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

type Tell<K> = Arc<dyn Fn(Gone<K>, Client) -> BoxFuture<'static, Result<()>> + Send + Sync>;

impl<K: AnyObject> Builder<K> {
    /// Hears of every object of the reconciled kind that is gone, with its last state, whatever
    /// `when` says. Called again with a growing delay if it fails; until it succeeds, an object
    /// that took the same name waits.
    ///
    /// It is for what can be forgotten: entries of a table, metrics. Deletions while the
    /// controller was not running are not told. What must not be missed needs a
    /// [`cleanup`](Self::cleanup).
    pub fn on_deleted<F, Fut>(mut self, tell: F) -> Self
    where
        F: Fn(Gone<K>, Client) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.on_deleted = Some(Arc::new(move |gone, client| Box::pin(tell(gone, client))));
        self
    }
}

/// Who hears of deletions, while a controller is built.
pub(super) type OnDeleted<K> = Option<Tell<K>>;

/// The deletions that somebody still has to be told of.
pub(super) struct Deletions<K> {
    tell: Tell<K>,
    untold: Mutex<HashMap<ObjectKey, VecDeque<Item<K>>>>,
}

impl<K: AnyObject> ForgetKey for Deletions<K> {
    fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }
}

impl<K: AnyObject> Deletions<K> {
    pub(super) fn new(tell: Tell<K>) -> Self {
        Self { tell, untold: Mutex::default() }
    }

    /// Notes that an object is gone. To be called before its key is queued.
    pub(super) fn note(&self, last: &Item<K>) {
        let mut untold = self.lock();
        let of_key = untold.entry(last.key().clone()).or_default();
        if of_key.len() == KEPT {
            of_key.pop_front();
            tracing::warn!(key = %last.key(), "a deletion could not be told and is forgotten");
        }
        of_key.push_back(last.clone());
    }

    /// Whether there is something to tell of this key.
    pub(super) fn concern(&self, key: &ObjectKey) -> bool {
        self.lock().contains_key(key)
    }

    /// Tells of every deletion of this key, in their order; gives what went wrong.
    pub(super) async fn tell(&self, key: &ObjectKey, client: &Client) -> Option<Outcome> {
        while let Some(item) = self.first(key) {
            let gone = Gone { key: key.clone(), last: item.object() };
            let told = async { (self.tell)(gone, client.clone()).await };
            match AssertUnwindSafe(told).catch_unwind().await {
                Ok(Ok(())) => self.told(key),
                Ok(Err(error)) if error.is_terminal() => {
                    tracing::error!(%error, "telling of a deletion failed for good");
                    self.told(key);
                }
                Ok(Err(error)) => return Some(error.into()),
                Err(panic) => return Some(Outcome::Panicked(panic_text(&*panic))),
            }
        }
        None
    }

    fn told(&self, key: &ObjectKey) {
        let mut untold = self.lock();
        if let Some(of_key) = untold.get_mut(key) {
            of_key.pop_front();
            if of_key.is_empty() {
                untold.remove(key);
            }
        }
    }

    fn first(&self, key: &ObjectKey) -> Option<Item<K>> {
        self.lock().get(key)?.front().cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, VecDeque<Item<K>>>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
