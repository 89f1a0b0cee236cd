//! Subresources that speak another kind than their object: scale and eviction.

use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta};
use kube::api::Patch;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{Client, KindClient, absent_as_none};
use crate::error::Result;
use crate::object::{AnyObject, Object, ObjectKey};

impl<K: AnyObject> KindClient<'_, K> {
    /// Reads a subresource; `None` if there is no object of that name.
    pub async fn get_subresource<T: DeserializeOwned>(
        &self,
        sub: &str,
        key: impl Into<ObjectKey>,
    ) -> Result<Option<T>> {
        let key = key.into();
        let request = self.at(key.namespace.as_deref()).get_subresource(sub, &key.name);
        absent_as_none(self.send(request).await)
    }

    /// Patches a subresource.
    pub async fn patch_subresource<T: DeserializeOwned, P: Serialize>(
        &self,
        sub: &str,
        key: impl Into<ObjectKey>,
        patch: &Patch<P>,
    ) -> Result<T> {
        let key = key.into();
        let params = self.patch_params(patch);
        let request = self.at(key.namespace.as_deref());
        self.send(request.patch_subresource(sub, &key.name, &params, patch)).await
    }

    /// How many replicas are wanted and there; `None` if there is no object of that name.
    pub async fn scale(&self, key: impl Into<ObjectKey>) -> Result<Option<Scale>> {
        self.get_subresource("scale", key).await
    }

    /// Sets how many replicas are wanted, of any kind that can be scaled.
    pub async fn set_scale(&self, key: impl Into<ObjectKey>, replicas: i32) -> Result<Scale> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.patch_subresource("scale", key, &patch).await
    }
}

impl Client {
    /// How many replicas are wanted and there; `None` if there is no object of that name.
    pub async fn scale<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<Option<Scale>> {
        self.typed::<K>().scale(key).await
    }

    /// Sets how many replicas are wanted.
    pub async fn set_scale<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        replicas: i32,
    ) -> Result<Scale> {
        self.typed::<K>().set_scale(key, replicas).await
    }

    /// Deletes a Pod if its disruption budgets allow it; if they do not now, the error's status
    /// has the code 429.
    pub async fn evict(
        &self,
        pod: impl Into<ObjectKey>,
        options: Option<DeleteOptions>,
    ) -> Result<()> {
        let key = pod.into();
        let metadata = ObjectMeta {
            name: Some(key.name.to_string()),
            namespace: key.namespace.as_deref().map(str::to_owned),
            ..ObjectMeta::default()
        };
        let eviction = Eviction { metadata, delete_options: options };
        self.typed::<Pod>().create_subresource("eviction", &key, &eviction).await
    }
}
