//! Who observes what a client writes.
//!
//! A reconcile waits for its own writes to become visible in the caches. The client knows nothing
//! of caches: it only calls the [`WriteObserver`] that it was given.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::kind::{ErasedKind, KindNames};
use crate::object::ObjectKey;

/// Is notified of every write that the server accepted, before the caller is. Writes that fail
/// and dry runs are not observed.
pub(crate) trait WriteObserver: Send + Sync {
    /// An object was created or changed.
    fn wrote(&self, object: &WrittenObject<'_>);

    /// The object with this uid was deleted.
    fn deleted(&self, kind: &KindNames<'_>, key: &ObjectKey, uid: &str);
}

/// An object as the server answered a write, without its type.
pub(crate) struct WrittenObject<'a> {
    pub(crate) kind: KindNames<'a>,
    pub(crate) meta: &'a ObjectMeta,
    /// The whole object, which few want: encoding it takes time. `None` if it cannot be encoded.
    pub(crate) content: &'a dyn Fn() -> Option<Value>,
}

/// A write to an object of this kind, of which this observer is to be notified.
pub(super) struct Observed<'a> {
    pub(super) observer: &'a dyn WriteObserver,
    pub(super) kind: ErasedKind,
}

impl Observed<'_> {
    /// Notifies the observer of the object with which the write was answered.
    pub(super) fn answered(&self, meta: &ObjectMeta, json: &str) {
        self.observer.wrote(&WrittenObject {
            kind: self.kind.names(),
            meta,
            content: &|| serde_json::from_str(json).ok(),
        });
    }
}
