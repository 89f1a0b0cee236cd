//! What a reconcile does with objects of one kind, which may be known only at run time. The
//! verbs of [`Context`](super::Context) are these for the kind that a type stands for.

use std::any::type_name;
use std::sync::Arc;

use kube::api::{DeleteParams, Patch};
use serde::Serialize;

use super::ErasedContext;
use crate::cache::Cache;
use crate::client::{Change, Deleted, Requests, Target, Way, brought, found};
use crate::codec::encode;
use crate::error::{Error, Result};
use crate::kind::{ErasedKind, Kind};
use crate::object::{AnyObject, ErasedObject, ObjectKey};

/// Reads and writes objects of kind `C` in a reconcile.
pub struct KindContext<'a, C> {
    pub(super) ctx: &'a ErasedContext,
    pub(super) kind: Kind<C>,
}

impl<'a, C: AnyObject> KindContext<'a, C> {
    /// The cache of the kind, which this controller declared.
    pub fn cache(&self) -> Result<Cache<C>> {
        match self.ctx.equipment().cache(&self.kind) {
            Some(cache) => Ok(cache),
            None => Err(undeclared(&self.kind.erased(), type_name::<C>())),
        }
    }

    /// The cache, which holds the objects of this namespace, or all if there is none.
    fn cache_of(&self, namespace: Option<&str>) -> Result<Cache<C>> {
        let cache = self.cache()?;
        cache.covers(namespace).map_err(Error::terminal)?;
        Ok(cache)
    }

    /// The cached object of that name in the namespace of the object being reconciled.
    pub fn get(&self, name: &str) -> Result<Option<Arc<C>>> {
        self.cached(&self.ctx.key_beside(&self.kind.erased(), name)?)
    }

    /// The cached object with this key.
    pub(crate) fn cached(&self, key: &ObjectKey) -> Result<Option<Arc<C>>> {
        Ok(self.cache_of(key.namespace.as_deref())?.get(key))
    }

    /// The cached objects in the namespace of the object being reconciled, or all of them if
    /// either kind is cluster-scoped.
    pub fn list(&self) -> Result<Vec<Arc<C>>> {
        Ok(match self.ctx.namespace_of(&self.kind.erased()) {
            Some(namespace) => self.cache_of(Some(namespace))?.list_namespace(namespace),
            None => self.cache()?.list(),
        })
    }

    /// The cached objects that are owned by the object being reconciled.
    pub fn children(&self) -> Result<Vec<Arc<C>>> {
        let uid = self.ctx.meta().uid.as_deref().unwrap_or_default();
        let namespace = self.ctx.namespace_of(&self.kind.erased());
        let cache = if namespace.is_some() { self.cache_of(namespace)? } else { self.cache()? };
        Ok(cache.by_owner(uid))
    }

    /// Server-side apply: makes a child have these fields. See [`Context::apply`](super::Context::apply).
    pub async fn apply(&self, child: C) -> Result<C> {
        self.ctx.apply(&self.kind, child)?.await?.object()
    }

    /// Creates a child, owned by the object being reconciled.
    pub async fn create(&self, child: C) -> Result<C> {
        self.ctx.create(&self.kind, child)?.await?.object()
    }

    /// Replaces an object. With a resourceVersion in it, only if nobody changed it since.
    pub async fn update(&self, object: &C) -> Result<C> {
        self.requests().update(ObjectKey::of(object), encode(object)).await?.object()
    }

    /// Patches an object.
    pub async fn patch<P: Serialize>(&self, key: &ObjectKey, patch: &Patch<P>) -> Result<C> {
        let requests = self.requests();
        let request = requests.patch_request(key, None, patch);
        requests.patch(request).await?.object()
    }

    /// Patches the status of an object that is not the one being reconciled.
    pub async fn patch_status<P: Serialize>(&self, key: &ObjectKey, patch: &Patch<P>) -> Result<C> {
        let requests = self.requests();
        let request = requests.patch_request(key, Some("status"), patch);
        requests.patch(request).await?.object()
    }

    /// Deletes exactly this object, not another that took its name.
    pub async fn delete(&self, object: &C) -> Result<Deleted> {
        self.ctx.delete(self.kind.erased(), object.meta()).await
    }

    /// Deletes an object as the parameters say.
    pub async fn delete_with(&self, object: &C, params: &DeleteParams) -> Result<Deleted> {
        self.ctx.delete_with(self.kind.erased(), object.meta(), params).await
    }

    /// Brings a child to a state. See [`Context::create_or_update`](super::Context::create_or_update).
    pub async fn create_or_update(
        &self,
        initial: C,
        mutate: impl FnOnce(&mut C) -> Result<()>,
    ) -> Result<(C, Change)> {
        self.bring(initial, mutate, Way::Update).await
    }

    /// Brings a child to a state by a patch. See [`Context::create_or_patch`](super::Context::create_or_patch).
    pub async fn create_or_patch(
        &self,
        initial: C,
        mutate: impl FnOnce(&mut C) -> Result<()>,
    ) -> Result<(C, Change)> {
        self.bring(initial, mutate, Way::Patch).await
    }

    pub(super) async fn bring(
        &self,
        mut initial: C,
        mutate: impl FnOnce(&mut C) -> Result<()>,
        way: Way,
    ) -> Result<(C, Change)> {
        self.ctx.place(&self.kind.erased(), initial.meta_mut());
        let key = ObjectKey::of(&initial);
        let existing = match self.cached(&key) {
            Ok(cached) => cached.map(Arc::unwrap_or_clone),
            Err(_) => found(self.requests().get(key).await?)?, // no cache holds it
        };
        let (old, target) = Target::new(existing, initial, |child: &mut C| {
            mutate(child)?;
            self.ctx.own(child.meta_mut())
        })?;
        brought(self.requests().bring(target, way).await?, old)
    }

    /// Deletes the children that are wanted no longer. See [`Context::prune`](super::Context::prune).
    pub async fn prune(&self, keep: impl Fn(&C) -> bool) -> Result<Vec<Arc<C>>> {
        let mut unwanted = self.children()?;
        unwanted.retain(|child| self.ctx.controls(child.meta()) && !keep(child));
        self.ctx.delete_all(self.kind.erased(), erased(&unwanted)).await?;
        Ok(unwanted)
    }

    fn requests(&self) -> Requests<'a> {
        self.ctx.requests(self.kind.erased())
    }
}

/// The objects without their type.
pub(crate) fn erased<C: AnyObject>(objects: &[Arc<C>]) -> Vec<Arc<dyn ErasedObject>> {
    objects.iter().map(|object| Arc::clone(object) as _).collect()
}

/// A cached read of a kind that the controller does not follow would be a surprise: stale, or a
/// watch of the whole cluster that nobody asked for.
#[cold]
fn undeclared(kind: &ErasedKind, type_name: &str) -> Error {
    let names = kind.names();
    let ty = type_name.rsplit("::").next().unwrap_or_default().trim_end_matches('>');
    let declarations = if kind.dynamic_names().is_some() {
        "`.reads_with(&kind)`, `.owns_with(&kind)` or `.watches_with(&kind, …)`".to_owned()
    } else if names.metadata_only {
        format!("`.reads_with(Kind::<{ty}>::of().metadata())` or `.owns_metadata::<{ty}>()`")
    } else {
        format!("`.reads::<{ty}>()`, `.owns::<{ty}>()` or `.watches(|o: &{ty}| …)`")
    };
    Error::terminal(format!(
        "this controller did not declare that it reads {} objects from the cache: add \
         {declarations} to it, or read from the server with `ctx.live()`",
        names.name
    ))
}
