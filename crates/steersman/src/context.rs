//! The context of one reconcile: how it reads, writes and reports.
//!
//! Reads come from the shared caches, writes go to the server under the controller's name and
//! are noted, so that the next reconcile of the same key sees them. Status is collected and
//! written once, when the reconcile ends.

use std::any::{Any, TypeId, type_name};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Resource;
use kube::api::{DeleteParams, Patch, Preconditions};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cache::{Cache, OwnWrite};
use crate::caches::Caches;
use crate::cause::Causes;
use crate::client::{Client, Deleted, names_an_object};
use crate::error::{Error, Result};
use crate::merge_diff::merge_diff;
use crate::object::{Object, ObjectKey, set_controller_reference, version_of};
use crate::own_writes::OwnWrites;

/// What a reconcile of a `K` works with. Cheap to clone.
pub struct Context<K> {
    object: Arc<K>,
    key: ObjectKey,
    scope: Arc<ReconcileScope>,
}

/// What all contexts of a controller share, and the causes of one reconcile.
pub(crate) struct ReconcileScope {
    pub(crate) client: Client,
    pub(crate) caches: Caches,
    /// The kinds that the controller said it reads.
    pub(crate) declared: Arc<HashSet<TypeId>>,
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
            scope: Arc::clone(&self.scope),
        }
    }
}

impl<K: Object> Context<K> {
    pub(crate) fn new(object: Arc<K>, scope: ReconcileScope) -> Self {
        let key = ObjectKey::of(&*object);
        Self { object, key, scope: Arc::new(scope) }
    }

    /// The object being reconciled.
    pub fn object(&self) -> &Arc<K> {
        &self.object
    }

    /// The key of the object being reconciled.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Why this reconcile happens.
    pub fn causes(&self) -> &Causes {
        &self.scope.causes
    }

    /// Reads and writes on the server, past the cache. Such writes are not waited for.
    pub fn live(&self) -> &Client {
        &self.scope.client
    }

    /// The cache of a kind that this controller declared.
    pub fn cache<C: Object>(&self) -> Result<Cache<C>> {
        let declared = self.scope.declared.contains(&TypeId::of::<C>());
        let cache = self.scope.caches.find().filter(|_| declared);
        cache.ok_or_else(undeclared::<C>)
    }

    /// The cached object of that name in the namespace of the object being reconciled.
    pub fn get<C: Object>(&self, name: &str) -> Result<Option<Arc<C>>> {
        if C::NAMESPACED && self.key.namespace.is_none() {
            return Err(Error::terminal(format!(
                "{} is cluster-scoped, so {} {name} needs a namespace: use \
                 `ctx.cache()?.get(&ObjectKey::namespaced(…))`",
                K::kind(&()),
                C::kind(&()),
            )));
        }
        let namespace = self.key.namespace.clone().filter(|_| C::NAMESPACED);
        Ok(self.cache()?.get(&ObjectKey { namespace, name: name.into() }))
    }

    /// The cached objects in the namespace of the object being reconciled, or all of them if
    /// either kind is cluster-scoped.
    pub fn list<C: Object>(&self) -> Result<Vec<Arc<C>>> {
        let cache = self.cache()?;
        Ok(match &self.key.namespace {
            Some(namespace) if C::NAMESPACED => cache.list_namespace(namespace),
            _ => cache.list(),
        })
    }

    /// The cached objects that are owned by the object being reconciled.
    pub fn children<C: Object>(&self) -> Result<Vec<Arc<C>>> {
        let uid = self.object.meta().uid.as_deref().unwrap_or_default();
        Ok(self.cache()?.by_owner(uid))
    }

    /// Server-side apply: makes a child have these fields. It becomes owned by the object
    /// being reconciled and, unless it says otherwise, lives in the same namespace.
    ///
    /// An object of that name that nobody controls is taken over as well, and is then deleted
    /// with its new owner: choose names that only this controller uses.
    pub async fn apply<C: Object>(&self, child: C) -> Result<C> {
        let child = self.adopt(child)?;
        self.written(self.scope.client.apply(&child).await)
    }

    /// Creates a child, owned by the object being reconciled.
    pub async fn create<C: Object>(&self, child: C) -> Result<C> {
        let child = self.adopt(child)?;
        self.written(self.scope.client.create(&child).await)
    }

    /// Replaces an object. With a resourceVersion in it, only if nobody changed it since.
    pub async fn update<C: Object>(&self, object: &C) -> Result<C> {
        self.written(self.scope.client.update(object).await)
    }

    /// Patches an object.
    pub async fn patch<C: Object, P: Serialize>(
        &self,
        key: &ObjectKey,
        patch: &Patch<P>,
    ) -> Result<C> {
        self.written(self.scope.client.patch(key, patch).await)
    }

    /// Patches the status of an object that is not the one being reconciled.
    pub async fn patch_status<C: Object, P: Serialize>(
        &self,
        key: &ObjectKey,
        patch: &Patch<P>,
    ) -> Result<C> {
        self.written(self.scope.client.patch_status(key, patch).await)
    }

    /// Deletes exactly this object, not another that took its name.
    pub async fn delete<C: Object>(&self, object: &C) -> Result<Deleted> {
        let uid = object.meta().uid.clone();
        let preconditions = Preconditions { uid, resource_version: None };
        self.delete_with(object, &DeleteParams::background().preconditions(preconditions)).await
    }

    /// Deletes an object as the parameters say.
    pub async fn delete_with<C: Object>(
        &self,
        object: &C,
        params: &DeleteParams,
    ) -> Result<Deleted> {
        let key = ObjectKey::of(object);
        let deleted = self.scope.client.delete::<C>(&key, params).await?;
        self.note::<C>(OwnWrite::Deleted { key, uid: object.meta().uid.clone() });
        Ok(deleted)
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
        let written = self.scope.client.patch_status::<K, _>(&self.key, &patch).await;
        match self.written(written) {
            Err(error) if error.status().is_some_and(names_an_object) => Ok(()), // nobody to report to
            Err(error) if error.is_not_found() => Err(Error::terminal(format!(
                "{} has no status to write: its definition lacks the status subresource",
                K::kind(&())
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

    fn adopt<C: Object>(&self, mut child: C) -> Result<C> {
        if C::NAMESPACED && child.meta().namespace.is_none() {
            child.meta_mut().namespace = self.key.namespace.as_deref().map(str::to_owned);
        }
        set_controller_reference(child.meta_mut(), &*self.object)?;
        Ok(child)
    }

    fn written<C: Object>(&self, result: Result<C>) -> Result<C> {
        if let Ok(object) = &result
            && let Some(version) = version_of(object.meta().resource_version.as_deref())
        {
            self.note::<C>(OwnWrite::Version(version));
            let object: &dyn Any = object;
            let own = object.downcast_ref::<K>().map(Resource::meta);
            if let Some(meta) = own.filter(|meta| meta.uid == self.object.meta().uid) {
                let mut own = self.scope.own_version.lock().unwrap_or_else(PoisonError::into_inner);
                own.clone_from(&meta.resource_version);
            }
        }
        result
    }

    fn note<C: Object>(&self, write: OwnWrite) {
        if let Ok(cache) = self.cache::<C>() {
            self.scope.own_writes.note(&self.key, Arc::new(cache), write);
        }
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

/// A cached read of a kind that the controller does not follow would be a surprise: stale, or
/// a watch of the whole cluster that nobody asked for.
fn undeclared<C: Object>() -> Error {
    let kind = C::kind(&());
    let ty = type_name::<C>().rsplit("::").next().unwrap_or_default();
    Error::terminal(format!(
        "this controller did not declare that it reads {kind} objects from the cache: add \
         `.reads::<{ty}>()`, `.owns::<{ty}>()` or `.watches(|o: &{ty}| …)` to it, or read from \
         the server with `ctx.live()`"
    ))
}
