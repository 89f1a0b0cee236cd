//! Requests for one kind, which may be known only at run time. The verbs of [`Client`] are these
//! for the kind that a type stands for.

use kube::Error as KubeError;
use kube::api::{DeleteParams, GetParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, ObjectList, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Client, Deleted, ListOptions, NotServed, absent_as_none, is_not_served};
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

    /// Lists the objects that match, in one answer.
    pub async fn list(&self, options: &ListOptions) -> Result<Vec<K>> {
        let request = Request::new(self.kind.path(options.namespace.as_deref()));
        let request = if K::metadata_api() {
            request.list_metadata(&options.params())
        } else {
            request.list(&options.params())
        };
        let list: ObjectList<K> = self.send(request).await?;
        Ok(list.items)
    }

    /// Creates an object.
    pub async fn create(&self, object: &K) -> Result<K> {
        let request = self.of(object).create(&self.post(), self.encode(object)?);
        self.send(request).await
    }

    /// Replaces an object. With a resourceVersion in it, only if nobody changed it since.
    pub async fn update(&self, object: &K) -> Result<K> {
        let name = object.meta().name.as_deref().unwrap_or_default();
        let request = self.of(object).replace(name, &self.post(), self.encode(object)?);
        self.send(request).await
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
        self.send(request).await
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
        self.send(request).await
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
        self.send(request).await
    }

    /// Server-side apply: makes the object have these fields, owned by this client's field
    /// manager, taking them over from others if it must.
    pub async fn apply(&self, object: &K) -> Result<K> {
        let mut wanted = object.clone();
        wanted.meta_mut().managed_fields = None; // an applied object that names its managers is refused
        let key = ObjectKey::of(object);
        match self.kind.dynamic_names() {
            None => self.patch(key, &Patch::Apply(&wanted)).await,
            Some(names) => self.patch(key, &Patch::Apply(document(&wanted, names)?)).await,
        }
    }

    /// Deletes an object. An object that is not there is no error.
    pub async fn delete(
        &self,
        key: impl Into<ObjectKey>,
        params: &DeleteParams,
    ) -> Result<Deleted> {
        let key = key.into();
        let request = self.at(key.namespace.as_deref()).delete(&key.name, params);
        let answer = absent_as_none(self.send::<Value>(request).await)?;
        Ok(match answer {
            None => Deleted::NotFound,
            Some(body) => Deleted::told_by(&body),
        })
    }

    /// The collection that holds `object`.
    fn of(&self, object: &K) -> Request {
        self.at(object.meta().namespace.as_deref())
    }

    /// The collection of the kind in a namespace, or in the default one.
    fn at(&self, namespace: Option<&str>) -> Request {
        let namespace = namespace.unwrap_or_else(|| self.client.kube.default_namespace());
        Request::new(self.kind.path(Some(namespace)))
    }

    fn post(&self) -> PostParams {
        let field_manager = Some(self.client.field_manager.to_string());
        PostParams { field_manager, ..PostParams::default() }
    }

    fn patch_params<P: Serialize>(&self, patch: &Patch<P>) -> PatchParams {
        let params = PatchParams::apply(&self.client.field_manager);
        if matches!(patch, Patch::Apply(_)) { params.force() } else { params }
    }

    fn encode(&self, object: &K) -> Result<Vec<u8>> {
        Ok(match self.kind.dynamic_names() {
            None => serde_json::to_vec(object)?,
            Some(names) => serde_json::to_vec(&document(object, names)?)?,
        })
    }

    async fn send<T: DeserializeOwned>(
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

/// An object of a kind known only at run time. It may have come from a list, whose items do not
/// say of which kind they are, and the server wants to know.
fn document(object: &impl Serialize, names: &ApiResource) -> Result<Value> {
    let mut document = serde_json::to_value(object)?;
    if let Value::Object(fields) = &mut document {
        fields.entry("apiVersion").or_insert_with(|| names.api_version.as_str().into());
        fields.entry("kind").or_insert_with(|| names.kind.as_str().into());
    }
    Ok(document)
}
