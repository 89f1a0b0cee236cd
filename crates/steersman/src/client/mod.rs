//! The client: typed requests for any kind, without naming an `Api` for each.
//!
//! A thin layer over [`kube::Client`]. Namespaced objects without a namespace go to the
//! client's default namespace, writes carry the client's field manager, and `get` distinguishes
//! "not found" from "failed".

mod answer;
mod create_or_update;
mod delete;
mod impersonation;
mod list;
mod merge;
mod metadata_alone;
mod observer;
mod of_kind;
mod requests;
mod subresource;
mod warnings;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Error as KubeError;
use kube::api::{DeleteParams, Patch};
use kube::core::{DynamicObject, GroupVersionKind, Status};
use serde::Serialize;

use crate::codec::encode;
use crate::error::Result;
use crate::kind::Kind;
use crate::object::{AnyObject, AsObject, Object, ObjectKey};
pub(crate) use answer::{Answer, found};
pub use create_or_update::Change;
pub(crate) use create_or_update::{Target, Way, brought};
pub use delete::Deleted;
pub use impersonation::Impersonation;
pub use list::{ListOptions, Pages};
pub use metadata_alone::or_whole_objects;
pub(crate) use observer::{WriteObserver, WrittenObject};
pub use of_kind::KindClient;
pub(crate) use requests::{Encoded, Pending, Requests};
pub use warnings::{LogWarnings, WarningLog};

/// Reads and writes objects of every kind.
#[derive(Clone)]
pub struct Client {
    /// Shared, since every reconcile has a copy and to clone a [`kube::Client`] is to allocate.
    kube: Arc<kube::Client>,
    field_manager: Arc<str>,
    /// Whether the server is asked to change nothing.
    dry_run: bool,
    /// In whose name requests are made, if not in its own.
    acting_as: Option<Impersonation>,
    /// Who observes its writes.
    observer: Option<Arc<dyn WriteObserver>>,
}

impl Client {
    /// A client that writes under the name `field_manager`.
    pub fn new(kube: kube::Client, field_manager: impl Into<Arc<str>>) -> Self {
        Self {
            kube: Arc::new(kube),
            field_manager: field_manager.into(),
            dry_run: false,
            acting_as: None,
            observer: None,
        }
    }

    /// The same client, writing under another name.
    #[must_use]
    pub fn with_field_manager(&self, field_manager: impl Into<Arc<str>>) -> Self {
        Self { field_manager: field_manager.into(), ..self.clone() }
    }

    /// The same client, whose writes are checked and answered by the server as if they were
    /// carried out, and are not.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        Self { dry_run: true, ..self.clone() }
    }

    /// The same client, whose requests are made in the name of another user. The server must allow
    /// its own user to impersonate that one. What goes through [`kube`](Self::kube) is its own.
    #[must_use]
    pub fn acting_as(&self, user: &Impersonation) -> Self {
        Self { acting_as: Some(user.clone()), ..self.clone() }
    }

    /// The same client, whose writes the observer is notified of.
    pub(crate) fn observed_by(&self, observer: Arc<dyn WriteObserver>) -> Self {
        Self { observer: Some(observer), ..self.clone() }
    }

    /// The client underneath, for what this one does not offer.
    pub fn kube(&self) -> &kube::Client {
        &self.kube
    }

    /// The name under which this client writes.
    pub fn field_manager(&self) -> &str {
        &self.field_manager
    }

    /// Reads and writes objects of a kind that may be known only at run time.
    pub fn of_kind<K: AnyObject>(&self, kind: &Kind<K>) -> KindClient<'_, K> {
        KindClient { client: self, kind: kind.clone() }
    }

    /// Asks the server for the names and the scope of a kind.
    pub async fn discover(&self, kind: &GroupVersionKind) -> Result<Kind<DynamicObject>> {
        self.discovery_of(kind).await
    }

    fn discovery_of<'a>(&'a self, kind: &'a GroupVersionKind) -> Pending<'a, Kind<DynamicObject>> {
        Box::pin(async move {
            let (resource, capabilities) = kube::discovery::pinned_kind(&self.kube, kind).await?;
            Ok(Kind::dynamic(resource, capabilities.scope))
        })
    }

    fn typed<K: Object>(&self) -> KindClient<'_, K> {
        KindClient { client: self, kind: Kind::of() }
    }

    fn requests<K: Object>(&self) -> Requests<'_> {
        Requests::new(self, Kind::<K>::of().erased())
    }

    /// Reads an object; `None` if there is none of that name.
    pub async fn get<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<Option<K>> {
        found(self.requests::<K>().get(key.into()).await?)
    }

    /// Creates an object.
    pub async fn create<K: Object>(&self, object: &K) -> Result<K> {
        self.requests::<K>().create(ObjectKey::of(object), encode(object)).await?.object()
    }

    /// Creates an object, whatever the server makes of it: the answer is not read.
    pub(crate) async fn create_unread<K: Object>(&self, object: &K) -> Result<()> {
        self.requests::<K>().create(ObjectKey::of(object), encode(object)).await.map(drop)
    }

    /// Replaces an object. With a resourceVersion in it, only if nobody changed it since.
    pub async fn update<K: Object>(&self, object: &impl AsObject<K>) -> Result<K> {
        let object = object.as_object();
        self.requests::<K>().update(ObjectKey::of(object), encode(object)).await?.object()
    }

    /// Replaces the status of an object, and nothing else.
    pub async fn update_status<K: Object>(&self, object: &impl AsObject<K>) -> Result<K> {
        self.replace_subresource("status", object).await
    }

    /// Replaces a subresource of an object that speaks the object's own kind.
    pub async fn replace_subresource<K: Object>(
        &self,
        sub: &str,
        object: &impl AsObject<K>,
    ) -> Result<K> {
        let object = object.as_object();
        let (key, body) = (ObjectKey::of(object), encode(object));
        self.requests::<K>().replace_subresource(sub, key, body).await?.object()
    }

    /// Posts to a subresource such as `binding`.
    pub async fn create_subresource<K: Object>(
        &self,
        sub: &str,
        key: impl Into<ObjectKey>,
        body: &impl Serialize,
    ) -> Result<()> {
        self.requests::<K>().create_subresource(sub, key.into(), encode(body)).await
    }

    /// Patches an object.
    pub async fn patch<K: Object, P: Serialize>(
        &self,
        key: impl Into<ObjectKey>,
        patch: &Patch<P>,
    ) -> Result<K> {
        let requests = self.requests::<K>();
        let request = requests.patch_request(&key.into(), None, patch);
        requests.patch(request).await?.object()
    }

    /// Patches an object, as [`patch`](Self::patch) does, and gives back only its metadata, without
    /// `managedFields`: of a large object, nothing else is decoded.
    pub async fn patch_unread<K: Object, P: Serialize>(
        &self,
        key: impl Into<ObjectKey>,
        patch: &Patch<P>,
    ) -> Result<ObjectMeta> {
        let requests = self.requests::<K>();
        let request = requests.patch_request(&key.into(), None, patch);
        requests.patch(request).await?.metadata()
    }

    /// Patches the status of an object, and nothing else.
    pub async fn patch_status<K: Object, P: Serialize>(
        &self,
        key: impl Into<ObjectKey>,
        patch: &Patch<P>,
    ) -> Result<K> {
        let requests = self.requests::<K>();
        let request = requests.patch_request(&key.into(), Some("status"), patch);
        requests.patch(request).await?.object()
    }

    /// Server-side apply: makes the object have these fields, owned by this client's field
    /// manager, taking them over from others if it must.
    pub async fn apply<K: Object>(&self, object: &K) -> Result<K> {
        self.requests::<K>().apply(object.meta(), encode(object), true).await?.object()
    }

    /// The same, but a field that another manager owns and that would change is a conflict.
    pub async fn apply_unless_conflict<K: Object>(&self, object: &K) -> Result<K> {
        self.requests::<K>().apply(object.meta(), encode(object), false).await?.object()
    }

    /// Deletes an object. An object that is not there is no error.
    pub async fn delete<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        params: &DeleteParams,
    ) -> Result<Deleted> {
        self.requests::<K>().delete(key.into(), params).await
    }
}

/// The server does not know a kind.
#[derive(Debug, thiserror::Error)]
#[error("{kind} ({api_version}) is not served; is its CustomResourceDefinition installed?")]
struct NotServed {
    kind: String,
    api_version: String,
    source: KubeError,
}

fn absent_as_none<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.status().is_some_and(names_an_object) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether this says that nothing is served at the path.
fn is_not_served(status: &Status) -> bool {
    // Of a group that it does not know, a server says so as text.
    status.code == 404 && !names_an_object(status)
}

/// Whether this says that one object does not exist, rather than that its kind is not served.
pub(crate) fn names_an_object(status: &Status) -> bool {
    let details = status.details.as_ref();
    status.is_not_found() && details.is_some_and(|details| !details.name.is_empty())
}
