//! What an apply did not change, remembered from one reconcile to the next.
//!
//! A server may write what is applied in its own way: it adds defaults inside of lists that it
//! takes as a whole, and a webhook may set a field back. Comparing would find the difference
//! again and again. What was found in the server's answer to an apply is remembered, and what is
//! found in the cache while that shows this very version, from which it may have stripped
//! something; as long as the same is wanted and the same is found, another apply would change
//! nothing.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

/// Objects that are remembered. Forgetting costs a request that changes nothing.
const REMEMBERED_MAX: usize = 8192;

/// What a controller's applies left different, by the uid of the object.
#[derive(Default)]
pub(crate) struct AppliedMemory {
    left: Mutex<HashMap<String, Left>>,
}

/// What an apply left different.
struct Left {
    /// What was applied, and what was found then, as digests.
    wanted: u64,
    found: u64,
    /// The version that the object has by the apply.
    version: Option<String>,
}

impl AppliedMemory {
    /// Whether an apply of `wanted` to the object with this metadata has left just these
    /// differences.
    pub(crate) fn left(
        &self,
        meta: &ObjectMeta,
        wanted: &Value,
        found: &(impl Hash + ?Sized),
    ) -> bool {
        let wanted = digest(&wanted.to_string());
        let found = digest(found);
        let mut all = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let left = all.get_mut(meta.uid.as_deref().unwrap_or_default());
        let Some(left) = left.filter(|left| left.wanted == wanted) else { return false };
        if left.version.is_some() && left.version == meta.resource_version {
            left.found = found; // just as the apply left it
        }
        left.found == found
    }

    /// Remembers what an apply has left different in the object with this metadata.
    pub(crate) fn note(&self, meta: &ObjectMeta, wanted: &Value, found: &(impl Hash + ?Sized)) {
        let left = Left {
            wanted: digest(&wanted.to_string()),
            found: digest(found),
            version: meta.resource_version.clone(),
        };
        let mut all = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED_MAX {
            all.clear();
        }
        all.insert(meta.uid.clone().unwrap_or_default(), left);
    }

    /// Forgets an object of which an apply has left nothing different.
    pub(crate) fn forget(&self, meta: &ObjectMeta) {
        let uid = meta.uid.as_deref().unwrap_or_default();
        self.left.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

fn digest(what: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
