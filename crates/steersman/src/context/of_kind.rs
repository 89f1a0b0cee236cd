//! What a reconcile does with objects of one kind, which may be known only at run time. The
//! verbs of [`Context`] are these for the kind that a type stands for.

use std::any::type_name;
use std::sync::Arc;

use kube::api::{DeleteParams, Patch, Preconditions};
use serde::Serialize;

use super::Context;
use crate::cache::Cache;
use crate::client::{Change, Deleted, KindClient, WriteObserver};
use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::object::{AnyObject, ObjectKey, is_controlled_by};
use crate::owner::set_controller_reference_of;

/// Reads and writes objects of kind `C` while a `K` is reconciled.
pub struct KindContext<'a, K, C> {
    pub(super) ctx: &'a Context<K>,
    pub(super) kind: Kind<C>,
}

impl<K: AnyObject, C: AnyObject> KindContext<'_, K, C> {
    /// The cache of the kind, which this controller declared.
    pub fn cache(&self) -> Result<Cache<C>> {
        self.ctx.inner.equipment.cache(&self.kind).ok_or_else(|| self.undeclared())
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
        self.client().apply(&child).await
    }

    /// Creates a child, owned by the object being reconciled.
    pub async fn create(&self, child: C) -> Result<C> {
        let child = self.adopt(child)?;
        self.client().create(&child).await
    }

    /// Replaces an object. With a resourceVersion in it, only if nobody changed it since.
    pub async fn update(&self, object: &C) -> Result<C> {
        self.client().update(object).await
    }

    /// Patches an object.
    pub async fn patch<P: Serialize>(&self, key: &ObjectKey, patch: &Patch<P>) -> Result<C> {
        self.client().patch(key, patch).await
    }

    /// Patches the status of an object that is not the one being reconciled.
    pub async fn patch_status<P: Serialize>(&self, key: &ObjectKey, patch: &Patch<P>) -> Result<C> {
        self.client().patch_status(key, patch).await
    }

    /// Deletes exactly this object, not another that took its name.
    pub async fn delete(&self, object: &C) -> Result<Deleted> {
        let uid = object.meta().uid.clone();
        let preconditions = Preconditions { uid, resource_version: None };
        self.delete_with(object, &DeleteParams::background().preconditions(preconditions)).await
    }

    /// Deletes an object as the parameters say.
    pub async fn delete_with(&self, object: &C, params: &DeleteParams) -> Result<Deleted> {
        let deleted = self.client().delete(ObjectKey::of(object), params).await?;
        // The answer may not say which object it was.
        if !params.dry_run
            && let Some(uid) = &object.meta().uid
        {
            let kind = self.kind.without_type();
            self.ctx.notes().deleted(&kind, &ObjectKey::of(object), uid);
        }
        Ok(deleted)
    }

    /// Brings a child to a state. See [`Context::create_or_update`].
    pub async fn create_or_update(
        &self,
        initial: C,
        mutate: impl FnOnce(&mut C) -> Result<()>,
    ) -> Result<(C, Change)> {
        self.bring(initial, mutate, false).await
    }

    /// Brings a child to a state by a patch. See [`Context::create_or_patch`].
    pub async fn create_or_patch(
        &self,
        initial: C,
        mutate: impl FnOnce(&mut C) -> Result<()>,
    ) -> Result<(C, Change)> {
        self.bring(initial, mutate, true).await
    }

    async fn bring(
        &self,
        initial: C,
        mutate: impl FnOnce(&mut C) -> Result<()>,
        patch: bool,
    ) -> Result<(C, Change)> {
        let initial = self.placed(initial);
        let key = ObjectKey::of(&initial);
        let existing = match self.cache() {
            Ok(cache) if cache.covers(key.namespace.as_deref()).is_ok() => {
                cache.get(&key).map(|cached| C::clone(&cached))
            }
            _ => self.client().get(&key).await?, // no cache holds it
        };
        let owned = |child: &mut C| {
            mutate(child)?;
            self.own(child)
        };
        self.client().bring(existing, initial, owned, patch).await
    }

    /// Deletes the children that are wanted no longer. See [`Context::prune`].
    pub async fn prune(&self, keep: impl Fn(&C) -> bool) -> Result<Vec<Arc<C>>> {
        let uid = self.ctx.object.meta().uid.as_deref().unwrap_or_default();
        let mut pruned = Vec::new();
        for child in self.children()? {
            let meta = child.meta();
            let ours = is_controlled_by(meta, uid) && meta.deletion_timestamp.is_none();
            if ours && !keep(&child) {
                self.delete(&child).await?;
                pruned.push(child);
            }
        }
        Ok(pruned)
    }

    pub(crate) fn client(&self) -> KindClient<'_, C> {
        self.ctx.live().of_kind(&self.kind)
    }

    /// The child, in its place and owned by the object being reconciled.
    pub(crate) fn adopt(&self, child: C) -> Result<C> {
        let mut child = self.placed(child);
        self.own(&mut child)?;
        Ok(child)
    }

    fn placed(&self, mut child: C) -> C {
        if self.kind.is_namespaced() && child.meta().namespace.is_none() {
            child.meta_mut().namespace = self.ctx.key.namespace.as_deref().map(str::to_owned);
        }
        child
    }

    fn own(&self, child: &mut C) -> Result<()> {
        Ok(set_controller_reference_of(child.meta_mut(), &*self.ctx.object, &self.ctx.kind)?)
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
