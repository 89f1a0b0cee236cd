//! What the API server asks an admission webhook.

use k8s_openapi::api::authentication::v1::UserInfo;
pub use kube::core::admission::Operation;
use kube::core::{GroupVersionKind, GroupVersionResource};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::denied::Denied;
use crate::object::{Cacheable, Object, ObjectKey, api_resource};

/// One operation of a user that asks for admission: what, by whom, on which object.
///
/// Objects are kept as they were sent, with fields that no Rust type knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AdmissionRequest {
    /// Names this question; not the user's request and not the object.
    pub uid: String,
    /// The kind of the objects below.
    pub kind: GroupVersionKind,
    /// The resource that is asked for.
    pub resource: GroupVersionResource,
    /// The subresource, such as `status` or `scale`.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub sub_resource: Option<String>,
    /// The kind that the user sent, where the server has converted it to `kind`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_kind: Option<GroupVersionKind>,
    /// The resource that the user asked for, where it is not `resource`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_resource: Option<GroupVersionResource>,
    /// The subresource that the user asked for, where it is not `sub_resource`.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub request_sub_resource: Option<String>,
    /// The object's name; empty if the server is to generate it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The namespace of the request, if it has one.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub namespace: Option<String>,
    /// What is being done. A patch is an update, or a creation if nothing was there.
    pub operation: Operation,
    /// Who asks.
    #[serde(default)]
    pub user_info: UserInfo,
    /// The object as it is to become; absent on deletion.
    #[serde(default)]
    pub object: Option<Value>,
    /// The object as it is; present on update and deletion.
    #[serde(default)]
    pub old_object: Option<Value>,
    /// Whether nothing will be stored, so that the webhook must not have side effects either.
    #[serde(default)]
    pub dry_run: Option<bool>,
    /// The options of the operation: `CreateOptions`, `UpdateOptions`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Value>,
}

fn is_absent(text: &Option<String>) -> bool {
    text.as_deref().is_none_or(str::is_empty)
}

impl AdmissionRequest {
    /// Whether nothing will be stored.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run.unwrap_or(false)
    }

    /// The namespace and name that the request is about.
    pub fn key(&self) -> ObjectKey {
        let namespace = self.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        ObjectKey { namespace: namespace.map(Into::into), name: self.name.as_str().into() }
    }

    /// The name of who asks, empty if nobody said.
    pub fn user(&self) -> &str {
        self.user_info.username.as_deref().unwrap_or_default()
    }

    /// The object as it is to become, as a typed object.
    pub fn decode_object<K: Cacheable>(&self) -> Result<K, Denied> {
        decode(self.object.as_ref(), "object")
    }

    /// The object as it is, as a typed object.
    pub fn decode_old_object<K: Cacheable>(&self) -> Result<K, Denied> {
        decode(self.old_object.as_ref(), "oldObject")
    }

    /// Refuses a request about another kind than the one that a handler was written for.
    pub(super) fn expect_kind(&self, expected: &GroupVersionKind) -> Result<(), Denied> {
        if self.kind == *expected {
            return Ok(());
        }
        let found = show_kind(&self.kind);
        let expected = show_kind(expected);
        Err(Denied::bad_request(format!("this webhook admits {expected}, not {found}")))
    }
}

/// The kind of a type.
pub(super) fn kind_of<K: Object>() -> GroupVersionKind {
    let resource = api_resource::<K>();
    GroupVersionKind { group: resource.group, version: resource.version, kind: resource.kind }
}

fn show_kind(kind: &GroupVersionKind) -> String {
    format!("{}, Kind={}", kind.api_version(), kind.kind)
}

fn decode<K: Cacheable>(object: Option<&Value>, field: &str) -> Result<K, Denied> {
    let Some(object) = object else {
        return Err(Denied::bad_request(format!("the request has no {field}")));
    };
    K::deserialize(object)
        .map_err(|error| Denied::bad_request(format!("cannot decode {field}: {error}")))
}
