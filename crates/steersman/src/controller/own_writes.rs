//! Reads that never miss the controller's own writes.
//!
//! Every write through a [`Context`](crate::Context) is noted under the key being reconciled.
//! Before that key is reconciled again, the controller waits until the caches show what it
//! wrote. A cache that does not catch up in time delays the reconcile but cannot block it for
//! ever.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::cache::{AnyCache, OwnWrite};
use crate::object::ObjectKey;

/// How long a reconcile waits for a cache to show a write.
const PATIENCE: Duration = Duration::from_secs(10);
/// Writes remembered per key; a reconcile that writes more waits for the last ones.
const KEPT: usize = 1024;

type Pending = Vec<(Arc<dyn AnyCache>, OwnWrite)>;

/// The writes that caches have yet to show, by the key whose reconcile made them.
#[derive(Default)]
pub(crate) struct OwnWrites {
    pending: Mutex<HashMap<ObjectKey, Pending>>,
}

impl OwnWrites {
    pub(crate) fn note(&self, key: &ObjectKey, cache: Arc<dyn AnyCache>, write: OwnWrite) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let writes = pending.entry(key.clone()).or_default();
        if writes.len() == KEPT {
            writes.remove(0);
        }
        writes.push((cache, write));
    }

    /// Waits until the caches show what the last reconcile of `key` wrote; false if they did
    /// not in time.
    pub(crate) async fn visible(&self, key: &ObjectKey) -> bool {
        let writes = {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            pending.remove(key).unwrap_or_default()
        };
        let all = async {
            for (cache, write) in writes {
                cache.shows(write).await;
            }
        };
        tokio::time::timeout(PATIENCE, all).await.is_ok()
    }

    /// Forgets the writes of a key that no longer exists.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}
