//! Objects of any kind as documents: whole, or their metadata alone.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use steersman::{ObjectKey, Result};

/// An object of any kind, of which only the metadata is asked for if that is `PARTIAL`.
#[derive(Debug)]
pub(super) struct Document<const PARTIAL: bool> {
    meta: ObjectMeta,
    value: Value,
}

impl<const PARTIAL: bool> Document<PARTIAL> {
    /// Which object it is, and what it says.
    pub(super) fn into_parts(self) -> (ObjectKey, Value) {
        (ObjectKey::of_meta(&self.meta), self.value)
    }
}

impl<'de, const PARTIAL: bool> Deserialize<'de> for Document<PARTIAL> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let mut meta = ObjectMeta::deserialize(&value["metadata"]).map_err(D::Error::custom)?;
        meta.managed_fields = None;
        Ok(Self { meta, value })
    }
}

impl<const PARTIAL: bool> Resource for Document<PARTIAL> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn metadata_api() -> bool {
        PARTIAL
    }

    fn kind(api: &ApiResource) -> Cow<'_, str> {
        api.kind.as_str().into()
    }

    fn group(api: &ApiResource) -> Cow<'_, str> {
        api.group.as_str().into()
    }

    fn version(api: &ApiResource) -> Cow<'_, str> {
        api.version.as_str().into()
    }

    fn plural(api: &ApiResource) -> Cow<'_, str> {
        api.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
