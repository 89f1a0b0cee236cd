//! What a reconcile does with objects of one kind, which may be known only at run time. The
//! verbs of [`Context`] are these for the kind that a type stands for.

use std::any::type_name;
use std::sync::{Arc, PoisonError};

use kube::api::{DeleteParams, Patch, Preconditions};
use serde::Serialize;

use super::Context;
use crate::cache::{Cache, OwnWrite};
use crate::client::{Deleted, KindClient};
use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::object::{AnyObject, ObjectKey, set_controller_reference_of};

/// Reads and writes objects of kind `C` while a `K` is reconciled.
pub struct KindContext<'a, K, C> {
    pub(super) ctx: &'a Context<K>,
    pub(super) kind: Kind<C>,
}

impl<K: AnyObject, C: AnyObject> KindContext<'_, K, C> {
    /// The cache of the kind, which this controller declared.
    pub fn cache(&self) -> Result<Cache<C>> {
        let declared = self.ctx.scope.declared.contains(&self.kind.id());
        let cache = self.ctx.scope.caches.find_of(&self.kind).filter(|_| declared);
        cache.ok_or_else(|| self.undeclared())
    }

    /// The cached object of that name in the namespace of the object being reconciled.
    pub fn get(&self, name: &str) -> Result<Option<Arc<C>>> {
        let namespaced = self.kind.is_namespaced();
        if namespaced && self.ctx.key.namespace.is_none() {
            return Err(Error::terminal(format!(
                "{} is cluster-scoped, so {} {name} needs a namespace: use \
                 `ctx.cache()?.get(&ObjectKey::namespaced(…))`",
                self.ctx.kind.name(),
                self.kind.name(),
            )));
        }
        let namespace = self.ctx.key.namespace.clone().filter(|_| namespaced);
        let cache = self.cache()?;
        cache.covers(namespace.as_deref()).map_err(Error::terminal)?;
        Ok(cache.get(&ObjectKey { namespace, name: name.into() }))
    }

    /// The cached objects in the namespace of the object being reconciled, or all of them if
    /// either kind is cluster-scoped.
    pub fn list(&self) -> Result<Vec<Arc<C>>> {
        let cache = self.cache()?;
        Ok(match &self.ctx.key.namespace {
            Some(namespace) if self.kind.is_namespaced() => {
                cache.covers(Some(namespace)).map_err(Error::terminal)?;
                cache.list_namespace(namespace)
            }
            _ => cache.list(),
        })
    }

    /// The cached objects that are owned by the object being reconciled.
    pub fn children(&self) -> Result<Vec<Arc<C>>> {
        let uid = self.ctx.object.meta().uid.as_deref().unwrap_or_default();
        let cache = self.cache()?;
        if self.kind.is_namespaced() && self.ctx.key.namespace.is_some() {
            cache.covers(self.ctx.key.namespace.as_deref()).map_err(Error::terminal)?;
        }
        Ok(cache.by_owner(uid))
    }

    /// Server-side apply: makes a child have these fields. See [`Context::apply`].
    pub async fn apply(&self, child: C) -> Result<C> {
        let child = self.adopt(child)?;
        self.written(self.client().apply(&child).await)
    }

    /// Creates a child, owned by the object being reconciled.
    pub async fn create(&self, child: C) -> Result<C> {
        let child = self.adopt(child)?;
        self.written(self.client().create(&child).await)
    }

    /// Replaces an object. With a resourceVersion in it, only if nobody changed it since.
    pub async fn update(&self, object: &C) -> Result<C> {
        self.written(self.client().update(object).await)
    }

    /// Patches an object.
    pub async fn patch<P: Serialize>(&self, key: &ObjectKey, patch: &Patch<P>) -> Result<C> {
        self.written(self.client().patch(key, patch).await)
    }

    /// Patches the status of an object that is not the one being reconciled.
    pub async fn patch_status<P: Serialize>(&self, key: &ObjectKey, patch: &Patch<P>) -> Result<C> {
        self.written(self.client().patch_status(key, patch).await)
    }

    /// Deletes exactly this object, not another that took its name.
    pub async fn delete(&self, object: &C) -> Result<Deleted> {
        let uid = object.meta().uid.clone();
        let preconditions = Preconditions { uid, resource_version: None };
        self.delete_with(object, &DeleteParams::background().preconditions(preconditions)).await
    }

    /// Deletes an object as the parameters say.
    pub async fn delete_with(&self, object: &C, params: &DeleteParams) -> Result<Deleted> {
        let key = ObjectKey::of(object);
        let deleted = self.client().delete(&key, params).await?;
        self.note(OwnWrite::Deleted { key, uid: object.meta().uid.clone() });
        Ok(deleted)
    }

    fn client(&self) -> KindClient<'_, C> {
        self.ctx.scope.client.of_kind(&self.kind)
    }

    fn adopt(&self, mut child: C) -> Result<C> {
        if self.kind.is_namespaced() && child.meta().namespace.is_none() {
            child.meta_mut().namespace = self.ctx.key.namespace.as_deref().map(str::to_owned);
        }
        set_controller_reference_of(child.meta_mut(), &*self.ctx.object, &self.ctx.kind)?;
        Ok(child)
    }

    fn written(&self, result: Result<C>) -> Result<C> {
        if let Ok(object) = &result {
            let hot_loops = &self.ctx.scope.own_writes.hot_loops;
            hot_loops.wrote(&self.ctx.key, &self.kind.name(), object);
            let (meta, own) = (object.meta(), self.ctx.object.meta());
            if let Ok(cache) = self.cache()
                && let Some(write) = cache.own_write(meta)
            {
                self.ctx.scope.own_writes.note(&self.ctx.key, Arc::new(cache), write);
            }
            if meta.uid.is_some() && meta.uid == own.uid {
                let own = self.ctx.scope.own_version.lock();
                own.unwrap_or_else(PoisonError::into_inner).clone_from(&meta.resource_version);
            }
        }
        result
    }

    fn note(&self, write: OwnWrite) {
        if let Ok(cache) = self.cache() {
            self.ctx.scope.own_writes.note(&self.ctx.key, Arc::new(cache), write);
        }
    }

    /// A cached read of a kind that the controller does not follow would be a surprise: stale,
    /// or a watch of the whole cluster that nobody asked for.
    fn undeclared(&self) -> Error {
        let kind = self.kind.name();
        let ty = type_name::<C>().rsplit("::").next().unwrap_or_default().trim_end_matches('>');
        let declarations = if self.kind.dynamic_names().is_some() {
            "`.reads_with(&kind)`, `.owns_with(&kind)` or `.watches_with(&kind, …)`".to_owned()
        } else if self.kind.is_metadata_only() {
            format!("`.reads_with(Kind::<{ty}>::of().metadata())` or `.owns_metadata::<{ty}>()`")
        } else {
            format!("`.reads::<{ty}>()`, `.owns::<{ty}>()` or `.watches(|o: &{ty}| …)`")
        };
        Error::terminal(format!(
            "this controller did not declare that it reads {kind} objects from the cache: add \
             {declarations} to it, or read from the server with `ctx.live()`"
        ))
    }
}
