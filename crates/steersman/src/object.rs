//! What every part agrees on about objects: their keys, their kinds, their owners.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::{ApiResource, DynamicResourceScope};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::kind::{Kind, Names};

/// A kind known at compile time: the built-in kinds of `k8s-openapi` and everything that
/// derives `kube::CustomResource`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object",
    note = "a kind is a type of `k8s_openapi::api` or a struct made by `#[derive(kube::CustomResource)]`",
    note = "pass the generated type (`AppService`), not its spec (`AppServiceSpec`)"
)]
pub trait Object: AnyObject<DynamicType = ()> {
    /// Whether objects of this kind live in a namespace.
    const NAMESPACED: bool;
}

impl<K> Object for K
where
    K: Cacheable<DynamicType = (), Scope: Scope> + Serialize + Clone,
{
    const NAMESPACED: bool = <K::Scope as Scope>::NAMESPACED;
}

/// An object of a kind known at compile time, or of one known only at run time, which is a
/// `kube::core::DynamicObject`. What kind it is, a [`Kind`] tells.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object",
    note = "a kind is a type of `k8s_openapi::api`, a struct made by `#[derive(kube::CustomResource)]`, \
            or `kube::core::DynamicObject`"
)]
pub trait AnyObject: Cacheable<DynamicType: Names> + Serialize + Clone {}

impl<K: Cacheable<DynamicType: Names> + Serialize + Clone> AnyObject for K {}

/// A kind that can be listed, watched and cached, including kinds known only at run time.
pub trait Cacheable: Resource + DeserializeOwned + Send + Sync + 'static {}

impl<K: Resource + DeserializeOwned + Send + Sync + 'static> Cacheable for K {}

/// Whether a kind lives in namespaces or not.
pub trait Scope {
    /// Whether objects live in a namespace.
    const NAMESPACED: bool;
}

impl Scope for k8s_openapi::NamespaceResourceScope {
    const NAMESPACED: bool = true;
}

impl Scope for k8s_openapi::ClusterResourceScope {
    const NAMESPACED: bool = false;
}

impl Scope for DynamicResourceScope {
    const NAMESPACED: bool = true;
}

/// Names one object of a kind.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The namespace; `None` for cluster-scoped objects.
    pub namespace: Option<Arc<str>>,
    /// The name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// The key of an object in a namespace.
    pub fn namespaced(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: Some(namespace.into()), name: name.into() }
    }

    /// The key of a cluster-scoped object, or of one in the client's default namespace.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// The key of this object.
    pub fn of<K: Resource>(object: &K) -> Self {
        Self::of_meta(object.meta())
    }

    /// The key in this metadata.
    pub fn of_meta(meta: &ObjectMeta) -> Self {
        Self {
            namespace: meta.namespace.as_deref().filter(|ns| !ns.is_empty()).map(Into::into),
            name: meta.name.as_deref().unwrap_or_default().into(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for ObjectKey {
    /// As text: `name` or `namespace/name`.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl From<&str> for ObjectKey {
    /// `name` or `namespace/name`.
    fn from(text: &str) -> Self {
        match text.split_once('/') {
            Some((namespace, name)) => Self::namespaced(namespace, name),
            None => Self::named(text),
        }
    }
}

impl From<String> for ObjectKey {
    /// `name` or `namespace/name`.
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&ObjectKey> for ObjectKey {
    fn from(key: &ObjectKey) -> Self {
        key.clone()
    }
}

/// The version of an object or a list as a number, or `None` where the server's versions are
/// not numbers and so cannot be compared.
pub fn version_of(resource_version: Option<&str>) -> Option<u64> {
    resource_version?.parse().ok()
}

/// The owner that controls this object, if it has one.
pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.as_ref()?.iter().find(|owner| owner.controller == Some(true))
}

/// Whether this object is controlled by the owner with that uid.
pub fn is_controlled_by(meta: &ObjectMeta, uid: &str) -> bool {
    controller_of(meta).is_some_and(|owner| owner.uid == uid)
}

/// Makes `owner` the controller of the object with this metadata.
///
/// Fails if another object controls it already, because two controllers would fight over it,
/// and if the owner is in another namespace, because the garbage collector would delete it.
pub fn set_controller_reference<O: Object>(
    meta: &mut ObjectMeta,
    owner: &O,
) -> Result<(), OwnerReferenceError> {
    set_controller_reference_of(meta, owner, &Kind::of())
}

/// The same for an owner whose kind may be known only at run time.
pub fn set_controller_reference_of<O: AnyObject>(
    meta: &mut ObjectMeta,
    owner: &O,
    kind: &Kind<O>,
) -> Result<(), OwnerReferenceError> {
    let Some(mut reference) = owner.controller_owner_ref(kind.dynamic_type()) else {
        return Ok(());
    };
    let name = || meta.name.clone().or_else(|| meta.generate_name.clone()).unwrap_or_default();
    let wanted = || format!("{} {}", kind.name(), owner.name_any());
    if kind.is_namespaced() && meta.namespace != owner.meta().namespace {
        return Err(OwnerReferenceError::OtherNamespace { name: name(), owner: wanted() });
    }
    if let Some(existing) = controller_of(meta) {
        if existing.uid == reference.uid {
            return Ok(());
        }
        let owner = format!("{} {}", existing.kind, existing.name);
        let error = OwnerReferenceError::OwnedByAnother { name: name(), owner, wanted: wanted() };
        return Err(error);
    }
    // A foreground deletion of the owner waits for what blocks it.
    reference.block_owner_deletion = Some(true);
    let owners = meta.owner_references.get_or_insert_default();
    owners.retain(|o| o.uid != reference.uid);
    owners.push(reference);
    Ok(())
}

/// Why an object cannot be owned.
#[derive(Debug, thiserror::Error)]
pub enum OwnerReferenceError {
    /// Another object controls it.
    #[error("{name} is controlled by {owner} and cannot also be controlled by {wanted}")]
    OwnedByAnother {
        /// The object.
        name: String,
        /// What controls it.
        owner: String,
        /// What was to control it.
        wanted: String,
    },
    /// A namespaced owner can only own what is in its own namespace.
    #[error("{name} is not in the namespace of {owner}, which therefore cannot own it")]
    OtherNamespace {
        /// The object.
        name: String,
        /// What was to own it.
        owner: String,
    },
}

/// Group, version, kind and plural of a typed kind.
pub fn api_resource<K: Object>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
    use k8s_openapi::api::core::v1::{Node, Pod};

    use super::*;

    fn deployment(name: &str, uid: &str) -> Deployment {
        let mut deployment = Deployment::default();
        deployment.metadata.name = Some(name.into());
        deployment.metadata.uid = Some(uid.into());
        deployment
    }

    #[test]
    fn kinds_know_their_scope() {
        const { assert!(Pod::NAMESPACED) };
        const { assert!(!Node::NAMESPACED) };
    }

    #[test]
    fn a_key_reads_as_namespace_slash_name() {
        assert_eq!(ObjectKey::from("default/web").to_string(), "default/web");
        assert_eq!(ObjectKey::from("node-1"), ObjectKey::named("node-1"));
    }

    #[test]
    fn an_object_has_at_most_one_controller() {
        let mut set = ReplicaSet::default();
        set_controller_reference(&mut set.metadata, &deployment("web", "1")).unwrap();
        set_controller_reference(&mut set.metadata, &deployment("web", "1")).unwrap();
        assert_eq!(set.metadata.owner_references.as_ref().unwrap().len(), 1);
        let refused = set_controller_reference(&mut set.metadata, &deployment("api", "2"));
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("Deployment web") && text.contains("Deployment api"), "{text}");
    }

    #[test]
    fn an_owner_must_be_in_the_same_namespace() {
        let mut set = ReplicaSet::default();
        set.metadata.namespace = Some("elsewhere".into());
        let refused = set_controller_reference(&mut set.metadata, &deployment("web", "1"));
        assert!(matches!(refused, Err(OwnerReferenceError::OtherNamespace { .. })));
    }
}
