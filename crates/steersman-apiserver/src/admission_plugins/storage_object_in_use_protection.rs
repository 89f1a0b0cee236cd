//! `StorageObjectInUseProtection` holds volumes, claims and classes of volume attributes by a
//! finalizer, which controllers take away when nobody uses them any more.

use futures::future::{self, BoxFuture};
use serde_json::Value;

use super::fields::{items, push};
use crate::admission_registration::Operation;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;

/// Group and plural of what is held, and its finalizer.
const HELD: [(&str, &str, &str); 3] = [
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    ("storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"),
];

/// Holds what may be in use.
pub(super) struct StorageObjectInUseProtection;

impl Plugin for StorageObjectInUseProtection {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.operation == Operation::Create && finalizer(write).is_some()
    }

    fn admit<'a>(
        &'a self,
        write: Attributes<'a>,
        new: &'a mut Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        let held = finalizer(&write).is_some_and(|finalizer| hold(&mut new["metadata"], finalizer));
        Box::pin(future::ready(Ok(held)))
    }
}

fn finalizer(write: &Attributes<'_>) -> Option<&'static str> {
    let mut held = HELD.into_iter().filter(|(group, plural, _)| write.is_of(group, plural));
    held.next().map(|(_, _, finalizer)| finalizer)
}

/// Whether a finalizer had to be added.
fn hold(metadata: &mut Value, finalizer: &str) -> bool {
    let is_held = items(&metadata["finalizers"]).iter().any(|held| held == finalizer);
    if !is_held {
        push(metadata, "finalizers", finalizer.into());
    }
    !is_held
}
