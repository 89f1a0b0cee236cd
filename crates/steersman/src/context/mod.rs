//! The context of one reconcile: how it reads, writes and reports.
//!
//! Reads come from the shared caches, writes go to the server under the controller's field
//! manager and are noted, so that the next reconcile of the same key sees them. Status is collected and
//! written once, when the reconcile ends.

mod applied;
mod declared;
mod erased;
mod notes;
mod of_kind;
mod pruned;
mod report;
mod status;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch};
use serde::Serialize;
use tracing::Span;

use crate::cache::Cache;
use crate::caches::Caches;
use crate::cause::Causes;
use crate::client::{Change, Client, Deleted, Impersonation, Requests, Way};
use crate::codec::encode;
use crate::error::Result;
use crate::events::{NewEvent, Recorder, Reference};
use crate::kind::Kind;
use crate::object::{AnyObject, AsObject, Object, ObjectKey, downcast};
use crate::own_writes::OwnWrites;
pub(crate) use applied::AppliedMemory;
pub(crate) use declared::Declared;
pub(crate) use erased::ErasedContext;
pub use of_kind::KindContext;
pub(crate) use of_kind::erased;
pub(crate) use pruned::LookedAt;

/// What a reconcile of a `K` works with. Cheap to clone.
pub struct Context<K> {
    object: Arc<K>,
    kind: Kind<K>,
    erased: Arc<ErasedContext>,
}

/// What all reconciles of a controller share. It is one thing, since each of them counts its
/// references, which costs time where many run at once.
pub(crate) struct Equipment {
    pub(crate) client: Client,
    pub(crate) caches: Caches,
    /// The kinds that the controller said it reads.
    pub(crate) declared: Declared,
    pub(crate) own_writes: Arc<OwnWrites>,
    pub(crate) recorder: Recorder,
    /// What earlier applies left different.
    pub(crate) applied: AppliedMemory,
    /// How the status is written.
    pub(crate) status_way: Way,
    /// Which fields of the status a server is known to keep or to prune.
    pub(crate) status_fields: LookedAt,
}

impl Equipment {
    /// The cache of a kind that the controller declared.
    fn cache<C: AnyObject>(&self, kind: &Kind<C>) -> Option<Cache<C>> {
        self.caches.find_of(kind).filter(|_| self.declared.contains(kind))
    }
}

impl<K> Clone for Context<K> {
    fn clone(&self) -> Self {
        Self {
            object: Arc::clone(&self.object),
            kind: self.kind.clone(),
            erased: Arc::clone(&self.erased),
        }
    }
}

impl<K: AnyObject> Context<K> {
    /// The typed view of a context; `None` if its object is of another type.
    pub(crate) fn of_erased(erased: &Arc<ErasedContext>, kind: &Kind<K>) -> Option<Self> {
        let object = downcast(Arc::clone(&erased.object))?;
        Some(Self { object, kind: kind.clone(), erased: Arc::clone(erased) })
    }

    /// The same context, without the type of its object.
    pub(crate) fn erased(&self) -> &Arc<ErasedContext> {
        &self.erased
    }

    fn requests<C: Object>(&self) -> Requests<'_> {
        self.erased.requests(Kind::<C>::of().erased())
    }

    /// The object being reconciled.
    pub fn object(&self) -> &Arc<K> {
        &self.object
    }

    /// The key of the object being reconciled.
    pub fn key(&self) -> &ObjectKey {
        &self.erased.key
    }

    /// The kind of the object being reconciled.
    pub fn kind(&self) -> &Kind<K> {
        &self.kind
    }

    /// Why this reconcile happens.
    pub fn causes(&self) -> &Causes {
        &self.erased.causes
    }

    /// The span of this reconcile, whose fields everything logged in it carries. A task that
    /// is spawned needs it: `tokio::spawn(work.instrument(ctx.span().clone()))`.
    pub fn span(&self) -> &Span {
        &self.erased.span
    }

    /// Makes all requests of this reconcile in the name of another user, also that which writes its
    /// status, as an agent does that works for many. Its Events are recorded by
    /// [`Recorder::acting_as`].
    ///
    /// # Errors
    ///
    /// If it has made a request already, or acts as somebody.
    pub fn act_as(&self, user: &Impersonation) -> Result<()> {
        self.erased.act_as(user)
    }

    /// Reads and writes on the server, past the cache. What it writes, the next reconcile of
    /// this object sees in the cache all the same. It gives children no owner.
    pub fn live(&self) -> &Client {
        self.erased.client()
    }

    /// Records an Event about the object being reconciled; see [`Recorder::event`]. Never waits,
    /// never fails.
    pub fn event(&self, event: NewEvent) {
        let names = self.erased.kind.names();
        let regarding = Reference::with(&names.api_version, &names.name, self.erased.meta());
        self.recorder().event(regarding, event);
    }

    /// Records events about any object, as this controller.
    pub fn recorder(&self) -> &Recorder {
        &self.erased.equipment.recorder
    }

    /// Reads and writes objects of a kind that may be known only at run time.
    pub fn of_kind<C: AnyObject>(&self, kind: &Kind<C>) -> KindContext<'_, C> {
        KindContext { ctx: &self.erased, kind: kind.clone() }
    }

    fn typed<C: Object>(&self) -> KindContext<'_, C> {
        KindContext { ctx: &self.erased, kind: Kind::of() }
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
        self.erased.apply(&Kind::of(), child)?.await?.object()
    }

    /// Creates a child, owned by the object being reconciled.
    pub async fn create<C: Object>(&self, child: C) -> Result<C> {
        self.erased.create(&Kind::of(), child)?.await?.object()
    }

    /// Creates a child, as [`create`](Self::create) does, and gives back only its metadata, without
    /// `managedFields`: of many or large children, nothing else is decoded.
    pub async fn create_unread<C: Object>(&self, child: C) -> Result<ObjectMeta> {
        self.erased.create(&Kind::of(), child)?.await?.metadata()
    }

    /// Brings a child to the state that `mutate` gives it, from what it is or, if it does not
    /// exist, from `initial`, which names it. Reads it from the cache, or from the server where
    /// this controller has no cache of it. Writes only a difference, and only if nobody changed
    /// the child meanwhile. It becomes owned by the object being reconciled.
    ///
    /// Prefer [`apply`](Self::apply), which leaves fields of others alone by itself.
    pub async fn create_or_update<C: Object>(
        &self,
        initial: C,
        mutate: impl FnOnce(&mut C) -> Result<()>,
    ) -> Result<(C, Change)> {
        self.typed().bring(initial, mutate, Way::Update).await
    }

    /// The same, but patches what differs, so that what others change meanwhile is kept.
    pub async fn create_or_patch<C: Object>(
        &self,
        initial: C,
        mutate: impl FnOnce(&mut C) -> Result<()>,
    ) -> Result<(C, Change)> {
        self.typed().bring(initial, mutate, Way::Patch).await
    }

    /// Deletes the children of a kind that are wanted no longer: those in the cache that the
    /// object being reconciled controls and that `keep` does not want. Gives back what was
    /// deleted.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # async fn example(ctx: steersman::Context<ConfigMap>) -> steersman::Result<()> {
    /// ctx.prune(|secret: &Secret| secret.metadata.name.as_deref() == Some("wanted")).await?;
    /// # Ok(()) }
    /// ```
    pub async fn prune<C: Object>(&self, keep: impl Fn(&C) -> bool) -> Result<Vec<Arc<C>>> {
        self.typed().prune(keep).await
    }

    /// Patches what differs between two states of an object; see [`Client::merge`].
    pub async fn merge<C: Object>(&self, old: &impl AsObject<C>, new: &C) -> Result<C> {
        self.live().merge(old, new).await
    }

    /// Replaces an object. With a resourceVersion in it, only if nobody changed it since.
    pub async fn update<C: Object>(&self, object: &impl AsObject<C>) -> Result<C> {
        let object = object.as_object();
        self.requests::<C>().update(ObjectKey::of(object), encode(object)).await?.object()
    }

    /// Replaces the status of an object, and what else the server takes with it, for a role that
    /// allows no more than `update`. With a resourceVersion in it, only if nobody changed the object
    /// since. The status of the object being reconciled is better [reported](Self::status).
    pub async fn update_status<C: Object>(&self, object: &impl AsObject<C>) -> Result<C> {
        let object = object.as_object();
        let (key, body) = (ObjectKey::of(object), encode(object));
        self.requests::<C>().replace_subresource("status", key, body).await?.object()
    }

    /// Patches an object.
    pub async fn patch<C: Object, P: Serialize>(
        &self,
        key: &ObjectKey,
        patch: &Patch<P>,
    ) -> Result<C> {
        let requests = self.requests::<C>();
        let request = requests.patch_request(key, None, patch);
        requests.patch(request).await?.object()
    }

    /// Patches the status of an object that is not the one being reconciled.
    pub async fn patch_status<C: Object, P: Serialize>(
        &self,
        key: &ObjectKey,
        patch: &Patch<P>,
    ) -> Result<C> {
        let requests = self.requests::<C>();
        let request = requests.patch_request(key, Some("status"), patch);
        requests.patch(request).await?.object()
    }

    /// Deletes exactly this object, not another that took its name.
    pub async fn delete<C: Object>(&self, object: &impl AsObject<C>) -> Result<Deleted> {
        self.erased.delete(Kind::<C>::of().erased(), object.as_object().meta()).await
    }

    /// Deletes an object as the parameters say.
    pub async fn delete_with<C: Object>(
        &self,
        object: &impl AsObject<C>,
        params: &DeleteParams,
    ) -> Result<Deleted> {
        let metadata = object.as_object().meta();
        self.erased.delete_with(Kind::<C>::of().erased(), metadata, params).await
    }
}
