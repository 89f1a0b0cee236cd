//! Requests for one kind, which may be known only at run time. The verbs of [`Client`] are these
//! for the kind that a type stands for.

use kube::Error as KubeError;
use kube::api::{DeleteParams, GetParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Client, Deleted, NotServed, WrittenObject, absent_as_none, is_not_served};
use crate::error::Result;
use crate::kind::Kind;
use crate::object::{AnyObject, ObjectKey};

/// Reads and writes objects of one kind.
pub struct KindClient<'a, K> {
    pub(super) client: &'a Client,
    pub(super) kind: Kind<K>,
}

impl<K: AnyObject> KindClient<'_, K> {
    /// Reads an object; `None` if there is none of that name.
    pub async fn get(&self, key: impl Into<ObjectKey>) -> Result<Option<K>> {
        let key = key.into();
        let request = self.at(key.namespace.as_deref());
        let request = if K::metadata_api() {
            request.get_metadata(&key.name, &GetParams::default())
        } else {
            request.get(&key.name, &GetParams::default())
        };
        absent_as_none(self.send(request).await)
    }

    /// Creates an object.
    pub async fn create(&self, object: &K) -> Result<K> {
        let request = self.of(object).create(&self.post(), self.encode(object)?);
        self.write(request).await
    }

    /// Replaces an object. With a resourceVersion in it, only if nobody changed it since.
    pub async fn update(&self, object: &K) -> Result<K> {
        let name = object.meta().name.as_deref().unwrap_or_default();
        let request = self.of(object).replace(name, &self.post(), self.encode(object)?);
        self.write(request).await
    }

    /// Replaces the status of an object, and nothing else.
    pub async fn update_status(&self, object: &K) -> Result<K> {
        self.replace_subresource("status", object).await
    }

    /// Replaces a subresource of an object that speaks the object's own kind.
    pub async fn replace_subresource(&self, sub: &str, object: &K) -> Result<K> {
        let name = object.meta().name.as_deref().unwrap_or_default();
        let body = self.encode(object)?;
        let request = self.of(object).replace_subresource(sub, name, &self.post(), body);
        self.write(request).await
    }

    /// Posts to a subresource such as `binding`.
    pub async fn create_subresource(
        &self,
        sub: &str,
        key: impl Into<ObjectKey>,
        body: &impl Serialize,
    ) -> Result<()> {
        let key = key.into();
        let body = serde_json::to_vec(body)?;
        let request = self.at(key.namespace.as_deref());
        let request = request.create_subresource(sub, &key.name, &self.post(), body);
        let _: Value = self.send(request).await?;
        Ok(())
    }

    /// Patches an object.
    pub async fn patch<P: Serialize>(
        &self,
        key: impl Into<ObjectKey>,
        patch: &Patch<P>,
    ) -> Result<K> {
        let key = key.into();
        let request = self.at(key.namespace.as_deref());
        let request = request.patch(&key.name, &self.patch_params(patch), patch);
        self.write(request).await
    }

    /// Patches the status of an object, and nothing else.
    pub async fn patch_status<P: Serialize>(
        &self,
        key: impl Into<ObjectKey>,
        patch: &Patch<P>,
    ) -> Result<K> {
        let key = key.into();
        let params = self.patch_params(patch);
        let request = self.at(key.namespace.as_deref());
        let request = request.patch_subresource("status", &key.name, &params, patch);
        self.write(request).await
    }

    /// Server-side apply: makes the object have these fields, owned by this client's field
    /// manager, taking them over from others if it must.
    pub async fn apply(&self, object: &K) -> Result<K> {
        self.apply_with(object, true).await
    }

    /// The same, but a field that another manager owns and that would change is a conflict.
    pub async fn apply_unless_conflict(&self, object: &K) -> Result<K> {
        self.apply_with(object, false).await
    }

    async fn apply_with(&self, object: &K, force: bool) -> Result<K> {
        let mut wanted = object.clone();
        wanted.meta_mut().managed_fields = None; // an applied object that names its managers is refused
        let key = ObjectKey::of(object);
        let patch = Patch::Apply(self.document(&wanted)?);
        let mut params = self.patch_params(&patch);
        params.force = force;
        let request = self.at(key.namespace.as_deref()).patch(&key.name, &params, &patch);
        self.write(request).await
    }

    /// Deletes an object. An object that is not there is no error.
    pub async fn delete(
        &self,
        key: impl Into<ObjectKey>,
        params: &DeleteParams,
    ) -> Result<Deleted> {
        let key = key.into();
        let dry_run = params.dry_run || self.client.dry_run;
        let params = DeleteParams { dry_run, ..params.clone() };
        let request = self.at(key.namespace.as_deref()).delete(&key.name, &params);
        let answer = absent_as_none(self.send::<Value>(request).await)?;
        if !dry_run {
            let given = params.preconditions.as_ref().and_then(|only| only.uid.as_deref());
            let answered = answer.as_ref().and_then(deleted_uid);
            self.observe_deletion(&key, given.or(answered));
        }
        Ok(match answer {
            None => Deleted::NotFound,
            Some(body) => Deleted::from_answer(&body),
        })
    }

    /// The collection that holds `object`.
    fn of(&self, object: &K) -> Request {
        self.at(object.meta().namespace.as_deref())
    }

    /// The collection of the kind in a namespace, or in the default one.
    pub(super) fn at(&self, namespace: Option<&str>) -> Request {
        let namespace = namespace.unwrap_or_else(|| self.client.kube.default_namespace());
        Request::new(self.kind.path(Some(namespace)))
    }

    pub(super) fn post(&self) -> PostParams {
        let field_manager = Some(self.client.field_manager.to_string());
        PostParams { field_manager, dry_run: self.client.dry_run }
    }

    pub(super) fn patch_params<P: Serialize>(&self, patch: &Patch<P>) -> PatchParams {
        let mut params = PatchParams::apply(&self.client.field_manager);
        params.force = matches!(patch, Patch::Apply(_));
        params.dry_run = self.client.dry_run;
        params
    }

    fn encode(&self, object: &K) -> Result<Vec<u8>> {
        Ok(match self.kind.dynamic_names() {
            None => serde_json::to_vec(object)?,
            Some(_) => serde_json::to_vec(&self.document(object)?)?,
        })
    }

    /// An object as the server wants it. One of a kind known only at run time may have come from
    /// a list, whose items do not say of which kind they are.
    pub(crate) fn document(&self, object: &K) -> Result<Value> {
        let mut document = serde_json::to_value(object)?;
        if let (Some(names), Value::Object(fields)) = (self.kind.dynamic_names(), &mut document) {
            fields.entry("apiVersion").or_insert_with(|| names.api_version.as_str().into());
            fields.entry("kind").or_insert_with(|| names.kind.as_str().into());
        }
        Ok(document)
    }

    /// Sends a write whose answer is the object, and notifies the observer of it.
    async fn write(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<K> {
        let object: K = self.send(request).await?;
        if let Some(observer) = self.client.observer.as_ref().filter(|_| !self.client.dry_run) {
            observer.wrote(&WrittenObject {
                kind: self.kind.without_type(),
                meta: object.meta(),
                content: &|| serde_json::to_value(&object).ok(),
            });
        }
        Ok(object)
    }

    /// Notifies the observer of a deletion. Without a uid nobody could distinguish the object from
    /// its successor.
    pub(super) fn observe_deletion(&self, key: &ObjectKey, uid: Option<&str>) {
        let (Some(observer), Some(uid)) = (&self.client.observer, uid) else { return };
        let mut key = key.clone();
        if self.kind.is_namespaced() && key.namespace.is_none() {
            key.namespace = Some(self.client.kube.default_namespace().into());
        }
        observer.deleted(&self.kind.without_type(), &key, uid);
    }

    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T> {
        let request = request.map_err(KubeError::BuildRequest)?;
        self.client.kube.request(request).await.map_err(|error| match error {
            KubeError::Api(status) if is_not_served(&status) => NotServed {
                kind: self.kind.name().into_owned(),
                api_version: self.kind.api_version().into_owned(),
                source: KubeError::Api(status),
            }
            .into(),
            error => error.into(),
        })
    }
}

/// The uid of a deleted object, as the answer has it: the object itself, or a Status of it.
fn deleted_uid(answer: &Value) -> Option<&str> {
    answer["metadata"]["uid"].as_str().or_else(|| answer["details"]["uid"].as_str())
}
