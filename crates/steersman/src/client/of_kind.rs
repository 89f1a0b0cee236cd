//! Requests for one kind, which may be known only at run time. The verbs of [`Client`] are these
//! for the kind that a type stands for.

use kube::api::{DeleteParams, Patch};
use serde::Serialize;

use super::answer::found;
use super::requests::Requests;
use super::{Client, Deleted};
use crate::codec::encode;
use crate::error::Result;
use crate::kind::Kind;
use crate::object::{AnyObject, ObjectKey};

/// Reads and writes objects of one kind.
pub struct KindClient<'a, K> {
    pub(super) client: &'a Client,
    pub(super) kind: Kind<K>,
}

impl<'a, K: AnyObject> KindClient<'a, K> {
    pub(super) fn requests(&self) -> Requests<'a> {
        Requests::new(self.client, self.kind.erased())
    }

    /// Reads an object; `None` if there is none of that name.
    pub async fn get(&self, key: impl Into<ObjectKey>) -> Result<Option<K>> {
        found(self.requests().get(key.into()).await?)
    }

    /// Creates an object.
    pub async fn create(&self, object: &K) -> Result<K> {
        self.requests().create(ObjectKey::of(object), encode(object)).await?.object()
    }

    /// Replaces an object. With a resourceVersion in it, only if nobody changed it since.
    pub async fn update(&self, object: &K) -> Result<K> {
        self.requests().update(ObjectKey::of(object), encode(object)).await?.object()
    }

    /// Replaces the status of an object, and nothing else.
    pub async fn update_status(&self, object: &K) -> Result<K> {
        let (key, body) = (ObjectKey::of(object), encode(object));
        self.requests().replace_subresource("status", key, body).await?.object()
    }

    /// Replaces a subresource of an object that speaks the object's own kind.
    pub async fn replace_subresource(&self, sub: &str, object: &K) -> Result<K> {
        let (key, body) = (ObjectKey::of(object), encode(object));
        self.requests().replace_subresource(sub, key, body).await?.object()
    }

    /// Posts to a subresource such as `binding`.
    pub async fn create_subresource(
        &self,
        sub: &str,
        key: impl Into<ObjectKey>,
        body: &impl Serialize,
    ) -> Result<()> {
        self.requests().create_subresource(sub, key.into(), encode(body)).await
    }

    /// Patches an object.
    pub async fn patch<P: Serialize>(
        &self,
        key: impl Into<ObjectKey>,
        patch: &Patch<P>,
    ) -> Result<K> {
        let requests = self.requests();
        let request = requests.patch_request(&key.into(), None, patch);
        requests.patch(request).await?.object()
    }

    /// Patches the status of an object, and nothing else.
    pub async fn patch_status<P: Serialize>(
        &self,
        key: impl Into<ObjectKey>,
        patch: &Patch<P>,
    ) -> Result<K> {
        let requests = self.requests();
        let request = requests.patch_request(&key.into(), Some("status"), patch);
        requests.patch(request).await?.object()
    }

    /// Server-side apply: makes the object have these fields, owned by this client's field
    /// manager, taking them over from others if it must.
    pub async fn apply(&self, object: &K) -> Result<K> {
        self.requests().apply(object.meta(), encode(object), true).await?.object()
    }

    /// The same, but a field that another manager owns and that would change is a conflict.
    pub async fn apply_unless_conflict(&self, object: &K) -> Result<K> {
        self.requests().apply(object.meta(), encode(object), false).await?.object()
    }

    /// Deletes an object. An object that is not there is no error.
    pub async fn delete(
        &self,
        key: impl Into<ObjectKey>,
        params: &DeleteParams,
    ) -> Result<Deleted> {
        self.requests().delete(key.into(), params).await
    }
}
