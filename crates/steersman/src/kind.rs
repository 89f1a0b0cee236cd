//! Kinds as values: names and scope, known to the compiler or only at run time.
//!
//! A [`Kind<K>`] says of which resource the Rust type `K` is an object. For a typed kind it costs
//! nothing to make; for [`DynamicObject`], a type that stands for any kind, it carries the names
//! that discovery or a configuration gave. Whatever distinguishes kinds (caches, declarations,
//! requests) asks the value, never the type alone.
//!
//! ```
//! use kube::core::{ApiResource, GroupVersionKind};
//! use steersman::kind::{Kind, Scope};
//!
//! let widgets = GroupVersionKind::gvk("example.com", "v1", "Widget");
//! let widgets = Kind::dynamic(ApiResource::from_gvk(&widgets), Scope::Namespaced);
//! assert_eq!((&*widgets.name(), &*widgets.plural()), ("Widget", "widgets"));
//! ```

use std::any::TypeId;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
pub use kube::discovery::Scope;

use crate::object::{AnyObject, Names, Object};

/// A kind whose objects are of the Rust type `K`. Cheap to clone.
pub struct Kind<K> {
    /// The names of a kind known only at run time; `None` if `K` has them.
    names: Option<Arc<ApiResource>>,
    namespaced: bool,
    object: PhantomData<fn() -> K>,
}

/// A kind whose Rust type has been forgotten, so that what handles objects of every kind is
/// compiled once. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ErasedKind {
    /// The names of a kind known only at run time; `None` if the type had them.
    dynamic_names: Option<Arc<ApiResource>>,
    namespaced: bool,
    /// Asks the type for the names.
    names_of: for<'a> fn(Option<&'a ApiResource>) -> KindNames<'a>,
}

/// What a kind is called, where its Rust type does not matter.
pub(crate) struct KindNames<'a> {
    pub(crate) group: Cow<'a, str>,
    pub(crate) api_version: Cow<'a, str>,
    pub(crate) plural: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    /// Whether only the metadata of objects is read.
    pub(crate) metadata_only: bool,
}

/// Tells kinds apart, including those that share a Rust type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KindId {
    object: TypeId,
    names: Option<Arc<ApiResource>>,
}

impl<K: Object> Kind<K> {
    /// The kind that the type `K` stands for.
    pub fn of() -> Self {
        Self { names: None, namespaced: K::NAMESPACED, object: PhantomData }
    }
}

impl<K: Object> Default for Kind<K> {
    fn default() -> Self {
        Self::of()
    }
}

impl Kind<DynamicObject> {
    /// A kind known only at run time, as discovery tells of it.
    pub fn dynamic(resource: ApiResource, scope: Scope) -> Self {
        Self::of_resource(resource, scope)
    }
}

impl<K: AnyObject<DynamicType = ApiResource>> Kind<K> {
    /// A kind known only at run time, read into the author's own type.
    #[expect(clippy::needless_pass_by_value, reason = "discovery gives the scope away")]
    pub fn of_resource(resource: ApiResource, scope: Scope) -> Self {
        let namespaced = scope == Scope::Namespaced;
        Self { names: Some(Arc::new(resource)), namespaced, object: PhantomData }
    }
}

impl<K: AnyObject> Kind<K> {
    /// The kind's name, as `Deployment`.
    pub fn name(&self) -> Cow<'_, str> {
        K::kind(self.dynamic_type())
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> Cow<'_, str> {
        K::group(self.dynamic_type())
    }

    /// The version within the group.
    pub fn version(&self) -> Cow<'_, str> {
        K::version(self.dynamic_type())
    }

    /// Group and version as objects name them.
    pub fn api_version(&self) -> Cow<'_, str> {
        K::api_version(self.dynamic_type())
    }

    /// The name of the resource, as `deployments`.
    pub fn plural(&self) -> Cow<'_, str> {
        K::plural(self.dynamic_type())
    }

    /// Whether objects of this kind live in a namespace.
    pub fn is_namespaced(&self) -> bool {
        self.namespaced
    }

    /// Whether only the metadata of objects is read.
    pub(crate) fn is_metadata_only(&self) -> bool {
        K::metadata_api()
    }

    /// All names of the kind.
    pub fn api_resource(&self) -> ApiResource {
        ApiResource::erase::<K>(self.dynamic_type())
    }

    /// The metadata alone of this kind's objects: a watch and a cache of its own, that neither
    /// transfers nor holds anything else.
    pub fn metadata(&self) -> Kind<PartialObjectMeta<K>> {
        Kind { names: self.names.clone(), namespaced: self.namespaced, object: PhantomData }
    }

    /// What `kube` wants to know of the kind.
    pub fn dynamic_type(&self) -> &K::DynamicType {
        Names::of(self.names.as_deref())
    }

    /// The kind without its type.
    pub(crate) fn erased(&self) -> ErasedKind {
        ErasedKind {
            dynamic_names: self.names.clone(),
            namespaced: self.namespaced,
            names_of: names_of::<K>,
        }
    }

    /// The names, if the type does not have them.
    pub(crate) fn dynamic_names(&self) -> Option<&ApiResource> {
        self.names.as_deref()
    }

    pub(crate) fn id(&self) -> KindId {
        KindId { object: TypeId::of::<K>(), names: self.names.clone() }
    }
}

fn names_of<K: AnyObject>(names: Option<&ApiResource>) -> KindNames<'_> {
    let names = Names::of(names);
    KindNames {
        group: K::group(names),
        api_version: K::api_version(names),
        plural: K::plural(names),
        name: K::kind(names),
        metadata_only: K::metadata_api(),
    }
}

impl ErasedKind {
    /// What the kind is called.
    pub(crate) fn names(&self) -> KindNames<'_> {
        (self.names_of)(self.dynamic_names.as_deref())
    }

    /// The names, if the type does not have them.
    pub(crate) fn dynamic_names(&self) -> Option<&ApiResource> {
        self.dynamic_names.as_deref()
    }

    /// Whether objects of this kind live in a namespace.
    pub(crate) fn is_namespaced(&self) -> bool {
        self.namespaced
    }

    /// The path of the collection of these objects, in a namespace if they live in one. The empty name
    /// stands for all namespaces.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let KindNames { group, api_version, plural, .. } = self.names();
        let root = if group.is_empty() { "api" } else { "apis" };
        match namespace.filter(|namespace| self.namespaced && !namespace.is_empty()) {
            Some(namespace) => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}"),
            None => format!("/{root}/{api_version}/{plural}"),
        }
    }
}

impl<K> Clone for Kind<K> {
    fn clone(&self) -> Self {
        Self { names: self.names.clone(), namespaced: self.namespaced, object: PhantomData }
    }
}

impl<K: AnyObject> fmt::Debug for Kind<K> {
    /// As `deployments.apps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural())?;
        match &*self.group() {
            "" => Ok(()),
            group => write!(f, ".{group}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::Node;
    use kube::core::GroupVersionKind;

    use super::*;

    fn dynamic(group: &str, kind: &str) -> Kind<DynamicObject> {
        let kind = GroupVersionKind::gvk(group, "v1", kind);
        Kind::dynamic(ApiResource::from_gvk(&kind), Scope::Namespaced)
    }

    #[test]
    fn a_typed_kind_knows_its_names_and_scope() {
        let kind = Kind::<Deployment>::of();
        assert_eq!((&*kind.name(), &*kind.group(), &*kind.version()), ("Deployment", "apps", "v1"));
        assert_eq!(format!("{kind:?}"), "deployments.apps");
        assert_eq!(kind.erased().path(Some("a")), "/apis/apps/v1/namespaces/a/deployments");
        assert_eq!(kind.erased().path(Some("")), "/apis/apps/v1/deployments");
        assert_eq!(Kind::<Node>::of().erased().path(Some("a")), "/api/v1/nodes");
    }

    #[test]
    fn kinds_that_share_a_type_are_told_apart() {
        let (a, b) = (dynamic("example.com", "A"), dynamic("example.com", "B"));
        assert_ne!(a.id(), b.id());
        assert_eq!(a.id(), dynamic("example.com", "A").id());
        assert_ne!(a.id(), a.metadata().id());
        assert_eq!(b.erased().path(None), "/apis/example.com/v1/bs");
    }
}
