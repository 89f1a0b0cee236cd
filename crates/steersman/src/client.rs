//! The client: typed requests for any kind, without naming an `Api` for each.
//!
//! A thin layer over [`kube::Client`]. Namespaced objects without a namespace go to the
//! client's default namespace, writes carry the client's field manager, and `get` tells
//! "not there" from "failed".

use std::sync::Arc;

use kube::Error as KubeError;
use kube::api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ObjectList, Request, Status};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::object::{Object, ObjectKey};

/// Reads and writes objects of every kind.
#[derive(Clone)]
pub struct Client {
    kube: kube::Client,
    field_manager: Arc<str>,
}

/// Which objects to list.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Only objects in this namespace; `None` lists all namespaces.
    pub namespace: Option<String>,
    /// Only objects whose labels match, as in `kubectl -l`.
    pub labels: Option<String>,
    /// Only objects whose fields match, as in `kubectl --field-selector`.
    pub fields: Option<String>,
}

impl ListOptions {
    /// Every object in one namespace.
    pub fn namespace(namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..Self::default() }
    }

    /// Narrows the list to objects whose labels match.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    fn params(&self) -> ListParams {
        ListParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            ..ListParams::default()
        }
    }
}

/// What became of a delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The object is gone.
    Gone,
    /// The object stays until its finalizers are done or its grace period is over.
    Terminating,
    /// There was no such object.
    NotFound,
}

impl Deleted {
    /// Reads the answer to a deletion. Of most kinds that are gone it is a Status, of some (Pods,
    /// Services) the object itself, which nothing holds.
    fn told_by(answer: &serde_json::Value) -> Self {
        let metadata = &answer["metadata"];
        let held = metadata["finalizers"].as_array().is_some_and(|held| !held.is_empty());
        let at_once = metadata["deletionGracePeriodSeconds"] == 0 && !held;
        if metadata["deletionTimestamp"].is_null() || at_once {
            Self::Gone
        } else {
            Self::Terminating
        }
    }
}

impl Client {
    /// A client that writes under the name `field_manager`.
    pub fn new(kube: kube::Client, field_manager: impl Into<Arc<str>>) -> Self {
        Self { kube, field_manager: field_manager.into() }
    }

    /// The same client, writing under another name.
    #[must_use]
    pub fn with_field_manager(&self, field_manager: impl Into<Arc<str>>) -> Self {
        Self { kube: self.kube.clone(), field_manager: field_manager.into() }
    }

    /// The client underneath, for what this one does not offer.
    pub fn kube(&self) -> &kube::Client {
        &self.kube
    }

    /// The name under which this client writes.
    pub fn field_manager(&self) -> &str {
        &self.field_manager
    }

    /// Reads an object; `None` if there is none of that name.
    pub async fn get<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<Option<K>> {
        let key = key.into();
        let request = self.at::<K>(key.namespace.as_deref());
        let request = request.get(&key.name, &GetParams::default());
        absent_as_none(self.send::<K, _>(request).await)
    }

    /// Lists the objects that match, in one answer.
    pub async fn list<K: Object>(&self, options: &ListOptions) -> Result<Vec<K>> {
        let path = K::url_path(&(), options.namespace.as_deref());
        let request = Request::new(path).list(&options.params());
        let list: ObjectList<K> = self.send::<K, _>(request).await?;
        Ok(list.items)
    }

    /// Creates an object.
    pub async fn create<K: Object>(&self, object: &K) -> Result<K> {
        let request = self.of(object).create(&self.post(), encode(object)?);
        self.send::<K, _>(request).await
    }

    /// Replaces an object. With a resourceVersion in it, only if nobody changed it since.
    pub async fn update<K: Object>(&self, object: &K) -> Result<K> {
        let name = object.meta().name.as_deref().unwrap_or_default();
        let request = self.of(object).replace(name, &self.post(), encode(object)?);
        self.send::<K, _>(request).await
    }

    /// Replaces the status of an object, and nothing else.
    pub async fn update_status<K: Object>(&self, object: &K) -> Result<K> {
        self.replace_subresource("status", object).await
    }

    /// Replaces a subresource of an object that speaks the object's own kind.
    pub async fn replace_subresource<K: Object>(&self, sub: &str, object: &K) -> Result<K> {
        let name = object.meta().name.as_deref().unwrap_or_default();
        let body = encode(object)?;
        let request = self.of(object).replace_subresource(sub, name, &self.post(), body);
        self.send::<K, _>(request).await
    }

    /// Posts to a subresource such as `binding`.
    pub async fn create_subresource<K: Object>(
        &self,
        sub: &str,
        key: impl Into<ObjectKey>,
        body: &impl Serialize,
    ) -> Result<()> {
        let key = key.into();
        let request = self.at::<K>(key.namespace.as_deref());
        let request = request.create_subresource(sub, &key.name, &self.post(), encode(body)?);
        let _: serde_json::Value = self.send::<K, _>(request).await?;
        Ok(())
    }

    /// Patches an object.
    pub async fn patch<K: Object, P: Serialize>(
        &self,
        key: impl Into<ObjectKey>,
        patch: &Patch<P>,
    ) -> Result<K> {
        let key = key.into();
        let request = self.at::<K>(key.namespace.as_deref());
        let request = request.patch(&key.name, &self.patch_params(patch), patch);
        self.send::<K, _>(request).await
    }

    /// Patches the status of an object, and nothing else.
    pub async fn patch_status<K: Object, P: Serialize>(
        &self,
        key: impl Into<ObjectKey>,
        patch: &Patch<P>,
    ) -> Result<K> {
        let key = key.into();
        let params = self.patch_params(patch);
        let request = self.at::<K>(key.namespace.as_deref());
        let request = request.patch_subresource("status", &key.name, &params, patch);
        self.send::<K, _>(request).await
    }

    /// Server-side apply: makes the object have these fields, owned by this client's field
    /// manager, taking them over from others if it must.
    pub async fn apply<K: Object>(&self, object: &K) -> Result<K> {
        let mut wanted = object.clone();
        wanted.meta_mut().managed_fields = None; // an applied object that names its managers is refused
        let name = object.meta().name.as_deref().unwrap_or_default();
        let patch = Patch::Apply(&wanted);
        let request = self.of(object).patch(name, &self.patch_params(&patch), &patch);
        self.send::<K, _>(request).await
    }

    /// Deletes an object. An object that is not there is no error.
    pub async fn delete<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        params: &DeleteParams,
    ) -> Result<Deleted> {
        let key = key.into();
        let request = self.at::<K>(key.namespace.as_deref()).delete(&key.name, params);
        let answer = absent_as_none(self.send::<K, serde_json::Value>(request).await)?;
        Ok(match answer {
            None => Deleted::NotFound,
            Some(body) => Deleted::told_by(&body),
        })
    }

    /// The collection that holds `object`.
    fn of<K: Object>(&self, object: &K) -> Request {
        self.at::<K>(object.meta().namespace.as_deref())
    }

    /// The collection of a kind in a namespace, or in the default one.
    fn at<K: Object>(&self, namespace: Option<&str>) -> Request {
        let namespace = namespace.unwrap_or_else(|| self.kube.default_namespace());
        Request::new(K::url_path(&(), K::NAMESPACED.then_some(namespace)))
    }

    fn post(&self) -> PostParams {
        PostParams { field_manager: Some(self.field_manager.to_string()), ..PostParams::default() }
    }

    fn patch_params<P: Serialize>(&self, patch: &Patch<P>) -> PatchParams {
        let params = PatchParams::apply(&self.field_manager);
        if matches!(patch, Patch::Apply(_)) { params.force() } else { params }
    }

    async fn send<K: Object, T: DeserializeOwned>(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T> {
        let request = request.map_err(KubeError::BuildRequest)?;
        self.kube.request(request).await.map_err(|error| match error {
            KubeError::Api(status) if is_not_served(&status) => {
                let (kind, api_version) = (K::kind(&()).into_owned(), K::api_version(&()).into());
                NotServed { kind, api_version, source: KubeError::Api(status) }.into()
            }
            error => error.into(),
        })
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

fn encode(object: &impl Serialize) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec(object)?)
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
    status.is_not_found() && !names_an_object(status)
}

/// Whether this says that one object does not exist, rather than that its kind is not served.
pub(crate) fn names_an_object(status: &Status) -> bool {
    let details = status.details.as_ref();
    status.is_not_found() && details.is_some_and(|details| !details.name.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Deleted;

    #[test]
    fn an_object_that_nothing_holds_is_gone_when_it_is_given_back() {
        let deleting = |more: serde_json::Value| {
            let mut object = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
            object["metadata"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            Deleted::told_by(&object)
        };
        assert_eq!(Deleted::told_by(&json!({"kind": "Status", "metadata": {}})), Deleted::Gone);
        assert_eq!(Deleted::told_by(&json!({"kind": "Service", "metadata": {}})), Deleted::Gone);
        assert_eq!(deleting(json!({"deletionGracePeriodSeconds": 0})), Deleted::Gone);
        assert_eq!(deleting(json!({"deletionGracePeriodSeconds": 30})), Deleted::Terminating);
        assert_eq!(deleting(json!({})), Deleted::Terminating, "a namespace");
        let held = json!({"deletionGracePeriodSeconds": 0, "finalizers": ["example.com/a"]});
        assert_eq!(deleting(held), Deleted::Terminating);
    }
}
