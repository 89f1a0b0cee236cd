//! Whom an object of another kind concerns, where the object itself does not say: an index of the
//! reconciled kind answers, or a function that reads caches and may wait.
//!
//! The most common relation of all is a reference: a Backup names a Secret, and a change of the
//! Secret must wake the Backup. `watches_referenced` needs nothing but that name.

use std::any::{TypeId, type_name};
use std::future::Future;
use std::sync::Arc;

use super::Builder;
use super::graph::Role;
use super::source::{self, IntoWatch, MapContext, Watch};
use crate::cache::{IndexValue, NamedIndex};
use crate::caches::CachedKind;
use crate::error::Result;
use crate::handler::Request;
use crate::object::{AnyObject, Object, ObjectKey};

/// An index of the reconciled kind, while a controller is built.
pub(super) struct Indexed {
    pub(super) index: NamedIndex,
    /// What it is searched by.
    value: ValueType,
}

/// The type of the values of an index.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ValueType {
    id: TypeId,
    name: &'static str,
}

impl ValueType {
    fn of<V: 'static>() -> Self {
        Self { id: TypeId::of::<V>(), name: type_name::<V>() }
    }
}

impl<K: AnyObject> Builder<K> {
    /// Adds an index to the cache of the reconciled kind: `values` gives the values under which an
    /// object is found, by [`watches_indexed`](Self::watches_indexed) and by
    /// `ctx.cache::<K>()?.by_index(name, value)`.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{Node, Pod};
    /// # use steersman::Controller;
    /// let pods = Controller::of::<Pod>()
    ///     .index("by-node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())
    ///     .watches_indexed("by-node", |node: &Node| node.metadata.name.clone());
    /// # let _ = pods;
    /// ```
    pub fn index<V: IndexValue + 'static, I: IntoIterator<Item = V>>(
        mut self,
        name: &'static str,
        values: impl Fn(&K) -> I + Send + Sync + 'static,
    ) -> Self {
        let index = NamedIndex::new(name.into(), values);
        self.indexes.push(Indexed { index, value: ValueType::of::<V>() });
        self
    }

    /// Also wakes the objects that an [`index`](Self::index) of the reconciled kind finds under
    /// the values that `values` gives for a changed object of another kind. When an object is
    /// updated, both what it was and what it is are asked.
    ///
    /// # Panics
    ///
    /// If the controller has no index of that name when this is called, or if it is searched by
    /// values of another type.
    pub fn watches_indexed<C: Object, V: IndexValue + 'static, I: IntoIterator<Item = V>>(
        mut self,
        index: &'static str,
        values: impl Fn(&C) -> I + Send + Sync + 'static,
    ) -> Self {
        self.check_index(index, ValueType::of::<V>());
        let watch = self.declare(Role::Watched, Watch::<C>::of());
        let own = CachedKind::of(&self.kind);
        let texts =
            move |object: &C| values(object).into_iter().map(|value| value.text().into()).collect();
        self.sources.push(source::indexed(watch, own, index.into(), Box::new(texts)));
        self
    }

    /// Also wakes the objects that refer to a changed object of another kind: `references` names
    /// the objects of kind `C` that an object of the reconciled kind refers to. A name without a
    /// namespace is in the namespace of the object that refers to it.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
    /// # use steersman::Controller;
    /// let pods = Controller::of::<Pod>()
    ///     .watches_referenced::<ServiceAccount, _>(|pod: &Pod| {
    ///         pod.spec.as_ref()?.service_account_name.clone()
    ///     });
    /// # let _ = pods;
    /// ```
    pub fn watches_referenced<C: Object, I: IntoIterator<Item: Into<ObjectKey>>>(
        self,
        references: impl Fn(&K) -> I + Send + Sync + 'static,
    ) -> Self {
        self.watches_referenced_with(Watch::<C>::of(), references)
    }

    /// The same for some events only, or for a kind that may be known only at run time.
    pub fn watches_referenced_with<W: IntoWatch, I: IntoIterator<Item: Into<ObjectKey>>>(
        mut self,
        watch: W,
        references: impl Fn(&K) -> I + Send + Sync + 'static,
    ) -> Self {
        let watch = self.declare(Role::Watched, watch);
        let namespaced = watch.kind().is_namespaced();
        let keys = move |object: &K| -> Vec<ObjectKey> {
            let own = ObjectKey::of(object);
            let complete = |key: ObjectKey| match namespaced {
                true => ObjectKey { namespace: key.namespace.or(own.namespace.clone()), ..key },
                false => ObjectKey { namespace: None, ..key },
            };
            references(object).into_iter().map(|key| complete(key.into())).collect()
        };
        let number = self.indexes.len();
        let name: Arc<str> = format!("{} referred to, {number}", watch.kind().name()).into();
        let index = NamedIndex::new(Arc::clone(&name), keys);
        self.indexes.push(Indexed { index, value: ValueType::of::<ObjectKey>() });
        let own = CachedKind::of(&self.kind);
        let key = |object: &W::Object| vec![ObjectKey::of(object).text().into()];
        self.sources.push(source::indexed(watch, own, name, Box::new(key)));
        self
    }

    /// Also wakes the objects that an async function names when an object of another kind
    /// changes; it may read caches and the server. When an object is updated, both what it was
    /// and what it is are asked.
    ///
    /// Objects are mapped one after another, and one whose mapping fails is mapped again, later
    /// each time: prefer what need not wait, such as
    /// [`watches_referenced`](Self::watches_referenced).
    pub fn watches_async<C: Object, F, Fut, I>(mut self, keys: F) -> Self
    where
        F: Fn(Arc<C>, MapContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<I>> + Send + 'static,
        I: IntoIterator<Item: Into<Request>>,
    {
        let watch = self.declare(Role::Watched, Watch::<C>::of());
        let map = move |object: Arc<C>, context: MapContext| {
            let mapped = keys(object, context);
            async move { Ok(mapped.await?.into_iter().map(Into::into).collect()) }
        };
        self.sources.push(source::mapped(watch, map));
        self
    }

    fn check_index(&self, name: &str, value: ValueType) {
        let Some(known) = self.indexes.iter().find(|known| known.index.is_named(name)) else {
            panic!("no index `{name}`: add `.index(\"{name}\", …)` to the controller before");
        };
        let expected = known.value.name;
        assert!(
            known.value == value,
            "index `{name}` is searched by {expected}, not by {}: let both functions give the \
             same type",
            value.name
        );
    }
}
