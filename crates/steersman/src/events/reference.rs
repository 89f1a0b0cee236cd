//! What an event is about.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use crate::object::AsObject;

/// Names an object of any kind, exactly: with its uid.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    api_version: Box<str>,
    kind: Box<str>,
    namespace: Option<Box<str>>,
    name: Box<str>,
    uid: Option<Box<str>>,
    seen: Seen,
    field_path: Option<Box<str>>,
}

/// The version in which an object was seen. It makes no difference: what is said of several versions
/// of an object is said of one object.
#[derive(Clone, Debug)]
struct Seen(Option<Box<str>>);

impl PartialEq for Seen {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Seen {}

impl PartialOrd for Seen {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Seen {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

impl Hash for Seen {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Reference {
    /// Names this object.
    pub fn of<K: Resource<DynamicType = ()>>(object: &impl AsObject<K>) -> Self {
        Self::with(&K::api_version(&()), &K::kind(&()), object.as_object().meta())
    }

    /// Names an object whose kind is known only at run time.
    pub fn with(api_version: &str, kind: &str, meta: &ObjectMeta) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: given(meta.namespace.as_deref()).map(Into::into),
            name: given(meta.name.as_deref()).unwrap_or_default().into(),
            uid: given(meta.uid.as_deref()).map(Into::into),
            seen: Seen(given(meta.resource_version.as_deref()).map(Into::into)),
            field_path: None,
        }
    }

    /// Names a part of the object, such as `spec.containers{main}`.
    #[must_use]
    pub fn part(mut self, field_path: &str) -> Self {
        self.field_path = given(Some(field_path)).map(Into::into);
        self
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where events about this object are: its own namespace, or `default` if it has none.
    pub(super) fn namespace_of_events(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    pub(crate) fn to_object_reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some(self.api_version.as_ref().into()),
            kind: Some(self.kind.as_ref().into()),
            namespace: self.namespace.as_deref().map(str::to_owned),
            name: Some(self.name.as_ref().into()),
            uid: self.uid.as_deref().map(str::to_owned),
            field_path: self.field_path.as_deref().map(str::to_owned),
            resource_version: None,
        }
    }

    /// The same with the version in which it was seen, which is what Events name.
    pub(super) fn to_versioned_reference(&self) -> ObjectReference {
        let resource_version = self.seen.0.as_deref().map(str::to_owned);
        ObjectReference { resource_version, ..self.to_object_reference() }
    }
}

impl<K: Resource<DynamicType = ()> + Sync> From<&K> for Reference {
    fn from(object: &K) -> Self {
        Self::of(object)
    }
}

fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
