//! The context of one reconcile: how it reads, writes and reports.
//!
//! Reads come from the shared caches, writes go to the server under the controller's name and
//! are noted, so that the next reconcile of the same key sees them. Status is collected and
//! written once, when the reconcile ends.

mod of_kind;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use kube::api::{DeleteParams, Patch};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::caches::Caches;
use crate::cause::Causes;
use crate::client::{Client, Deleted, names_an_object};
use crate::error::{Error, Result};
use crate::kind::{Kind, KindId};
use crate::merge_diff::merge_diff;
use crate::object::{AnyObject, Object, ObjectKey};
use crate::own_writes::OwnWrites;
pub use of_kind::KindContext;

/// What a reconcile of a `K` works with. Cheap to clone.
pub struct Context<K> {
    object: Arc<K>,
    key: ObjectKey,
    kind: Kind<K>,
    scope: Arc<ReconcileScope>,
}

/// What all contexts of a controller share, and the causes of one reconcile.
pub(crate) struct ReconcileScope {
    pub(crate) client: Client,
    pub(crate) caches: Caches,
    /// The kinds that the controller said it reads.
    pub(crate) declared: Arc<HashSet<KindId>>,
    pub(crate) own_writes: Arc<OwnWrites>,
    pub(crate) causes: Causes,
    pub(crate) status: Mutex<Option<Value>>,
    /// The version that this reconcile itself gave to the object being reconciled.
    pub(crate) own_version: Mutex<Option<String>>,
}

impl<K> Clone for Context<K> {
    fn clone(&self) -> Self {
        Self {
            object: Arc::clone(&self.object),
            key: self.key.clone(),
            kind: self.kind.clone(),
            scope: Arc::clone(&self.scope),
        }
    }
}

impl<K: AnyObject> Context<K> {
    pub(crate) fn new(object: Arc<K>, kind: Kind<K>, scope: ReconcileScope) -> Self {
        let key = ObjectKey::of(&*object);
        Self { object, key, kind, scope: Arc::new(scope) }
    }

    /// The object being reconciled.
    pub fn object(&self) -> &Arc<K> {
        &self.object
    }

    /// The key of the object being reconciled.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The kind of the object being reconciled.
    pub fn kind(&self) -> &Kind<K> {
        &self.kind
    }

    /// Why this reconcile happens.
    pub fn causes(&self) -> &Causes {
        &self.scope.causes
    }

    /// Reads and writes on the server, past the cache. Such writes are not waited for.
    pub fn live(&self) -> &Client {
        &self.scope.client
    }

    /// Reads and writes objects of a kind that may be known only at run time.
    pub fn of_kind<C: AnyObject>(&self, kind: &Kind<C>) -> KindContext<'_, K, C> {
        KindContext { ctx: self, kind: kind.clone() }
    }

    fn typed<C: Object>(&self) -> KindContext<'_, K, C> {
        KindContext { ctx: self, kind: Kind::of() }
    }

    /// The cache of a kind that this controller declared.
    pub fn cache<C: Object>(&self) -> Result<Cache<C>> {
        self.typed().cache()
    }

    /// The cached object of that name in the namespace of the object being reconciled.
    pub fn get<C: Object>(&self, name: &str) -> Result<Option<Arc<C>>> {
        self.typed().get(name)
    }

    /// The cached objects in the namespace of the object being reconciled, or all of them if
    /// either kind is cluster-scoped.
    pub fn list<C: Object>(&self) -> Result<Vec<Arc<C>>> {
        self.typed().list()
    }

    /// The cached objects that are owned by the object being reconciled.
    pub fn children<C: Object>(&self) -> Result<Vec<Arc<C>>> {
        self.typed().children()
    }

    /// Server-side apply: makes a child have these fields. It becomes owned by the object
    /// being reconciled and, unless it says otherwise, lives in the same namespace.
    ///
    /// An object of that name that nobody controls is taken over as well, and is then deleted
    /// with its new owner: choose names that only this controller uses.
    pub async fn apply<C: Object>(&self, child: C) -> Result<C> {
        self.typed().apply(child).await
    }

    /// Creates a child, owned by the object being reconciled.
    pub async fn create<C: Object>(&self, child: C) -> Result<C> {
        self.typed().create(child).await
    }

    /// Replaces an object. With a resourceVersion in it, only if nobody changed it since.
    pub async fn update<C: Object>(&self, object: &C) -> Result<C> {
        self.typed().update(object).await
    }

    /// Patches an object.
    pub async fn patch<C: Object, P: Serialize>(
        &self,
        key: &ObjectKey,
        patch: &Patch<P>,
    ) -> Result<C> {
        self.typed().patch(key, patch).await
    }

    /// Patches the status of an object that is not the one being reconciled.
    pub async fn patch_status<C: Object, P: Serialize>(
        &self,
        key: &ObjectKey,
        patch: &Patch<P>,
    ) -> Result<C> {
        self.typed().patch_status(key, patch).await
    }

    /// Deletes exactly this object, not another that took its name.
    pub async fn delete<C: Object>(&self, object: &C) -> Result<Deleted> {
        self.typed().delete(object).await
    }

    /// Deletes an object as the parameters say.
    pub async fn delete_with<C: Object>(
        &self,
        object: &C,
        params: &DeleteParams,
    ) -> Result<Deleted> {
        self.typed().delete_with(object, params).await
    }

    /// Sets the status that is written when this reconcile ends, whether it succeeds or not,
    /// if it differs from what the object has.
    pub fn status(&self, status: impl Serialize) {
        match serde_json::to_value(status) {
            Ok(status) => *self.collected_status() = Some(status),
            Err(error) => tracing::error!(%error, "status cannot be encoded"),
        }
    }

    /// Writes the collected status, if there is one and it changes anything.
    pub(crate) async fn flush_status(&self) -> Result<()> {
        let Some(wanted) = self.collected_status().take() else {
            return Ok(());
        };
        let current = serde_json::to_value(&*self.object)?;
        let current = current.get("status").cloned().unwrap_or(Value::Null);
        let Some(difference) = merge_diff(&current, &wanted) else {
            return Ok(());
        };
        let patch = Patch::Merge(self.status_patch(&difference));
        match self.of_kind(&self.kind).patch_status(&self.key, &patch).await {
            Err(error) if error.status().is_some_and(names_an_object) => Ok(()), // nobody to report to
            Err(error) if error.is_not_found() => Err(Error::terminal(format!(
                "{} has no status to write: its definition lacks the status subresource",
                self.kind.name()
            ))),
            result => result.map(drop),
        }
    }

    /// The patch is for this object and no other of its name. A list is replaced whole, so with
    /// one in it, nobody may have changed the object since it was read.
    fn status_patch(&self, difference: &Value) -> Value {
        let mut metadata = json!({"uid": self.object.meta().uid});
        if has_list(difference) {
            let own = self.scope.own_version.lock().unwrap_or_else(PoisonError::into_inner);
            let version = own.as_ref().or(self.object.meta().resource_version.as_ref());
            metadata["resourceVersion"] = json!(version);
        }
        json!({"metadata": metadata, "status": difference})
    }

    fn collected_status(&self) -> std::sync::MutexGuard<'_, Option<Value>> {
        self.scope.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(fields) => fields.values().any(has_list),
        _ => false,
    }
}
