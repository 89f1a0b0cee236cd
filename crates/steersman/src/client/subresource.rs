//! Subresources that speak another kind than their object: scale and eviction.

use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta};
use kube::api::Patch;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{Answer, Client, KindClient, Pending, Requests};
use crate::codec::encode;
use crate::error::Result;
use crate::object::{AnyObject, Object, ObjectKey};

impl<'a> Requests<'a> {
    fn set_scale(self, key: &ObjectKey, replicas: i32) -> Pending<'a> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let request = self.patch_request(key, Some("scale"), &patch);
        self.patch_other(request)
    }
}

impl<K: AnyObject> KindClient<'_, K> {
    /// Reads a subresource; `None` if there is no object of that name.
    pub async fn get_subresource<T: DeserializeOwned>(
        &self,
        sub: &str,
        key: impl Into<ObjectKey>,
    ) -> Result<Option<T>> {
        let answer = self.requests().get_subresource(sub, &key.into()).await?;
        answer.map(Answer::other).transpose()
    }

    /// Patches a subresource.
    pub async fn patch_subresource<T: DeserializeOwned, P: Serialize>(
        &self,
        sub: &str,
        key: impl Into<ObjectKey>,
        patch: &Patch<P>,
    ) -> Result<T> {
        let requests = self.requests();
        let request = requests.patch_request(&key.into(), Some(sub), patch);
        requests.patch_other(request).await?.other()
    }

    /// How many replicas are wanted and there; `None` if there is no object of that name.
    pub async fn scale(&self, key: impl Into<ObjectKey>) -> Result<Option<Scale>> {
        self.get_subresource("scale", key).await
    }

    /// Sets how many replicas are wanted, of any kind that can be scaled.
    pub async fn set_scale(&self, key: impl Into<ObjectKey>, replicas: i32) -> Result<Scale> {
        self.requests().set_scale(&key.into(), replicas).await?.other()
    }
}

impl Client {
    /// How many replicas are wanted and there; `None` if there is no object of that name.
    pub async fn scale<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<Option<Scale>> {
        let answer = self.requests::<K>().get_subresource("scale", &key.into()).await?;
        answer.map(Answer::other).transpose()
    }

    /// Sets how many replicas are wanted.
    pub async fn set_scale<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        replicas: i32,
    ) -> Result<Scale> {
        self.requests::<K>().set_scale(&key.into(), replicas).await?.other()
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
        self.requests::<Pod>().create_subresource("eviction", key, encode(&eviction)).await
    }
}
