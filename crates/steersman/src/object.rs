//! What every part agrees on about objects: which types they are, their keys, their versions, who
//! controls them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::Serialize;
use serde::de::DeserializeOwned;

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
/// `kube::core::DynamicObject`. What kind it is, a [`Kind`](crate::kind::Kind) tells.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object",
    note = "a kind is a type of `k8s_openapi::api`, a struct made by `#[derive(kube::CustomResource)]`, \
            or `kube::core::DynamicObject`"
)]
pub trait AnyObject: Cacheable<DynamicType: Names> + Serialize + Clone {}

impl<K: Cacheable<DynamicType: Names> + Serialize + Clone> AnyObject for K {}

/// Where a kind's names are: in its type, or beside it. A type of `kube` has the one or the
/// other as its `DynamicType`.
pub trait Names: Clone + Send + Sync + 'static {
    #[doc(hidden)]
    fn of(names: Option<&ApiResource>) -> &Self;
}

impl Names for () {
    fn of(_: Option<&ApiResource>) -> &Self {
        &()
    }
}

impl Names for ApiResource {
    fn of(names: Option<&ApiResource>) -> &Self {
        names.expect("a kind whose type has no names is only made with them")
    }
}

/// A kind that can be listed, watched and cached, including kinds known only at run time.
pub trait Cacheable: Resource + DeserializeOwned + Send + Sync + 'static {}

impl<K: Resource + DeserializeOwned + Send + Sync + 'static> Cacheable for K {}

/// An object, or one that is shared as caches and contexts give it: `&Pod` as well as `&Arc<Pod>`.
/// What is given an object that was read before takes either.
///
/// ```
/// # use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// # use steersman::ObjectKey;
/// # async fn example(ctx: steersman::Context<ConfigMap>) -> steersman::Result<()> {
/// for pod in &ctx.children::<Pod>()? {
///     tracing::info!(pod = %ObjectKey::of(pod), "deleted");
///     ctx.delete(pod).await?;
/// }
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object, nor an `Arc` of one",
    note = "a kind is a type of `k8s_openapi::api`, a struct made by `#[derive(kube::CustomResource)]`, \
            or `kube::core::DynamicObject`"
)]
pub trait AsObject<K>: Sync {
    /// The object itself.
    fn as_object(&self) -> &K;
}

impl<K: Resource + Sync> AsObject<K> for K {
    fn as_object(&self) -> &K {
        self
    }
}

impl<K: Resource + Send + Sync> AsObject<K> for Arc<K> {
    fn as_object(&self) -> &K {
        self
    }
}

/// An object whose type has been forgotten, so that what handles objects of every kind is
/// compiled once. [`downcast`] gives the type back.
pub(crate) trait ErasedObject: Any + Send + Sync {
    /// Its metadata.
    fn metadata(&self) -> &ObjectMeta;
}

impl<K: Cacheable> ErasedObject for K {
    fn metadata(&self) -> &ObjectMeta {
        self.meta()
    }
}

/// The same for a reference.
pub(crate) fn downcast_ref<K: Cacheable>(object: &dyn ErasedObject) -> Option<&K> {
    let object: &dyn Any = object;
    object.downcast_ref()
}

/// The object as one of its type; `None` if it is of another.
pub(crate) fn downcast<K: Cacheable>(object: Arc<dyn ErasedObject>) -> Option<Arc<K>> {
    let object: Arc<dyn Any + Send + Sync> = object;
    object.downcast().ok()
}

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
    pub fn of<K: Resource>(object: &impl AsObject<K>) -> Self {
        Self::of_meta(object.as_object().meta())
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

/// Group, version, kind and plural of a typed kind.
pub(crate) fn api_resource<K: Object>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Node, Pod};

    use super::*;

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
}
