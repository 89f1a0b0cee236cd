//! What applying did not change.
//!
//! A server may write what is applied in its own way: it adds defaults inside of lists that it
//! takes as a whole, and a webhook may set a field back. Comparing would find the difference
//! again and again. What was found in the server's answer to an apply is remembered; as long as
//! the same is wanted and the same is found, another apply would change nothing.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::comparison::Difference;

/// Objects that are remembered. Forgetting costs a request that changes nothing.
const REMEMBERED_MAX: usize = 8192;

/// What a controller's applies left different, by the uid of the object.
#[derive(Default)]
pub(crate) struct Memory {
    left: Mutex<HashMap<String, u64>>,
}

impl Memory {
    /// Whether an apply of `wanted` to this object has left just these differences.
    pub(super) fn left(&self, uid: &str, wanted: &Value, found: &[Difference]) -> bool {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.get(uid) == Some(&digest(wanted, found))
    }

    /// Remembers what an apply has left different.
    pub(super) fn note(&self, uid: &str, wanted: &Value, found: &[Difference]) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if found.is_empty() {
            left.remove(uid);
            return;
        }
        if left.len() >= REMEMBERED_MAX {
            left.clear();
        }
        left.insert(uid.to_owned(), digest(wanted, found));
    }
}

fn digest(wanted: &Value, found: &[Difference]) -> u64 {
    let mut hasher = DefaultHasher::new();
    wanted.to_string().hash(&mut hasher);
    found.hash(&mut hasher);
    hasher.finish()
}
