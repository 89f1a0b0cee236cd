//! Handlers: which objects an event concerns, as requests for their reconcile.
//!
//! The ready ones have the names of controller-runtime. [`EnqueueRequestForObject`] is what a
//! controller does with its own kind, [`EnqueueRequestForOwner`] what
//! [`owns`](crate::controller::Builder::owns) does, and [`EnqueueRequestsFromMapFunc`] what
//! [`watches`](crate::controller::Builder::watches) does with a closure. A handler only names
//! keys; the source that asked it puts them into the queue, with the event as their cause.

use std::panic::{AssertUnwindSafe, catch_unwind};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::cache::Item;
use crate::informer::Event;
use crate::kind::Kind;
use crate::object::{AnyObject, Cacheable, Object, ObjectKey};
use crate::workqueue::Priority;

/// A wish that an object be reconciled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which object.
    pub key: ObjectKey,
    /// How urgent it is; if not said, as urgent as its source makes it.
    pub priority: Option<Priority>,
}

impl Request {
    /// Asks for the object with this key.
    pub fn new(key: impl Into<ObjectKey>) -> Self {
        Self { key: key.into(), priority: None }
    }

    /// Says how urgent it is.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }
}

impl<T: Into<ObjectKey>> From<T> for Request {
    fn from(key: T) -> Self {
        Self::new(key)
    }
}

/// The requests that an event leads to.
#[derive(Debug, Default)]
pub struct Requests(pub(crate) Vec<Request>);

impl Requests {
    /// Adds a request. A key that is asked for twice is reconciled once.
    pub fn add(&mut self, request: impl Into<Request>) {
        let request = request.into();
        if self.0.last() != Some(&request) {
            self.0.push(request);
        }
    }
}

/// Names the objects that an event of kind `C` concerns. Every
/// `Fn(&Event<C>, &mut Requests)` is a handler. It must not block.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle events of `{C}`",
    note = "a handler is one of `steersman::handler`, such as \
            `EnqueueRequestsFromMapFunc::new(|object: &{C}| keys)`, or a \
            `Fn(&Event<{C}>, &mut Requests)`"
)]
pub trait EventHandler<C>: Send + Sync + 'static {
    /// Adds what the event concerns.
    fn handle(&self, event: &Event<C>, requests: &mut Requests);
}

impl<C, F: Fn(&Event<C>, &mut Requests) + Send + Sync + 'static> EventHandler<C> for F {
    fn handle(&self, event: &Event<C>, requests: &mut Requests) {
        self(event, requests);
    }
}

/// Asks for the object itself, or for one of the same namespace and name.
#[derive(Clone, Copy, Debug, Default)]
pub struct EnqueueRequestForObject;

impl<C: Cacheable> EventHandler<C> for EnqueueRequestForObject {
    fn handle(&self, event: &Event<C>, requests: &mut Requests) {
        requests.add(event.object().key());
    }
}

/// Asks for the owners of the object, of the one kind `K`. If an update changed them, both the
/// old and the new ones are asked for.
#[derive(Debug)]
pub struct EnqueueRequestForOwner<K: AnyObject> {
    owner: Kind<K>,
    only_controller: bool,
}

impl<K: Object> EnqueueRequestForOwner<K> {
    /// Owners of the kind that the type `K` stands for.
    pub fn of() -> Self {
        Self::of_kind(&Kind::of())
    }
}

impl<K: AnyObject> EnqueueRequestForOwner<K> {
    /// Owners of a kind that may be known only at run time.
    pub fn of_kind(owner: &Kind<K>) -> Self {
        Self { owner: owner.clone(), only_controller: false }
    }

    /// Only the owner that controls the object.
    #[must_use]
    pub fn only_controller(mut self) -> Self {
        self.only_controller = true;
        self
    }

    fn is_meant(&self, owner: &OwnerReference) -> bool {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        owner.kind == self.owner.name()
            && group == self.owner.group()
            && (!self.only_controller || owner.controller == Some(true))
    }
}

impl<K: AnyObject, C: Cacheable> EventHandler<C> for EnqueueRequestForOwner<K> {
    fn handle(&self, event: &Event<C>, requests: &mut Requests) {
        for meta in event.objects().filter(|item| item.is_owned()).filter_map(Item::meta) {
            // A namespaced owner is in the namespace of what it owns.
            let namespace = meta.namespace.as_deref().filter(|_| self.owner.is_namespaced());
            let owners = meta.owner_references.iter().flatten();
            for owner in owners.filter(|owner| self.is_meant(owner)) {
                let namespace = namespace.map(Into::into);
                requests.add(ObjectKey { namespace, name: owner.name.as_str().into() });
            }
        }
    }
}

/// Asks for the objects that a function names. When an object is updated, it is asked both of
/// what the object was and of what it is.
pub struct EnqueueRequestsFromMapFunc<C> {
    map: Box<Map<C>>,
}

type Map<C> = dyn Fn(&C) -> Vec<Request> + Send + Sync;

impl<C: Cacheable> EnqueueRequestsFromMapFunc<C> {
    /// Asks for what `map` names: keys, or [`Request`]s with priorities.
    pub fn new<I>(map: impl Fn(&C) -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator<Item: Into<Request>>,
    {
        Self { map: Box::new(move |object| map(object).into_iter().map(Into::into).collect()) }
    }
}

impl<C: Cacheable> EventHandler<C> for EnqueueRequestsFromMapFunc<C> {
    fn handle(&self, event: &Event<C>, requests: &mut Requests) {
        for object in event.objects().filter_map(Item::object) {
            // If the mapping panics for what the object was, what it is still counts.
            let mapped = catch_unwind(AssertUnwindSafe(|| (self.map)(&object)));
            let mapped = mapped.unwrap_or_else(|_| {
                tracing::error!(key = %event.object().key(), "map function panicked; nothing is enqueued");
                Vec::new()
            });
            mapped.into_iter().for_each(|request| requests.add(request));
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
    use k8s_openapi::api::core::v1::{Node, Pod};
    use serde_json::{Value, json};

    use super::*;

    fn pod(owners: &Value) -> Item<Pod> {
        let metadata = json!({"namespace": "a", "name": "p", "ownerReferences": owners});
        Item::typed(serde_json::from_value(json!({"metadata": metadata})).unwrap())
    }

    fn owner(api_version: &str, kind: &str, name: &str, controller: bool) -> Value {
        let uid = format!("uid-of-{name}");
        json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": controller})
    }

    fn added(owners: &Value) -> Event<Pod> {
        Event::Added { object: pod(owners), initial: false }
    }

    fn asked(handler: &impl EventHandler<Pod>, event: &Event<Pod>) -> Vec<String> {
        let mut requests = Requests::default();
        handler.handle(event, &mut requests);
        requests.0.iter().map(|request| request.key.to_string()).collect()
    }

    #[test]
    fn an_object_asks_for_itself() {
        assert_eq!(asked(&EnqueueRequestForObject, &added(&json!([]))), ["a/p"]);
    }

    #[test]
    fn owners_are_told_by_kind_and_group_whatever_their_version() {
        let all = EnqueueRequestForOwner::<ReplicaSet>::of();
        let table = [
            (json!([]), vec![]),
            (json!([owner("apps/v1", "ReplicaSet", "r", true)]), vec!["a/r"]),
            (json!([owner("apps/v1beta2", "ReplicaSet", "r", false)]), vec!["a/r"]),
            (json!([owner("extensions/v1", "ReplicaSet", "r", true)]), vec![]),
            (json!([owner("v1", "ReplicationController", "r", true)]), vec![]),
            (
                json!([
                    owner("apps/v1", "ReplicaSet", "r", true),
                    owner("apps/v1", "ReplicaSet", "s", false)
                ]),
                vec!["a/r", "a/s"],
            ),
        ];
        for (owners, expected) in table {
            assert_eq!(asked(&all, &added(&owners)), expected, "{owners}");
        }
    }

    #[test]
    fn only_the_controller_is_asked_for_if_that_is_wanted() {
        let owners = json!([
            owner("apps/v1", "Deployment", "d", false),
            owner("apps/v1", "Deployment", "e", true)
        ]);
        let controller = EnqueueRequestForOwner::<Deployment>::of().only_controller();
        assert_eq!(asked(&controller, &added(&owners)), ["a/e"]);
    }

    #[test]
    fn a_cluster_scoped_owner_has_no_namespace() {
        let owners = json!([owner("v1", "Node", "n", true)]);
        assert_eq!(asked(&EnqueueRequestForOwner::<Node>::of(), &added(&owners)), ["n"]);
    }

    #[test]
    fn a_changed_owner_asks_for_the_old_and_the_new_one() {
        let of = |name| pod(&json!([owner("apps/v1", "ReplicaSet", name, true)]));
        let event = Event::Updated { old: of("old"), new: of("new") };
        let handler = EnqueueRequestForOwner::<ReplicaSet>::of().only_controller();
        assert_eq!(asked(&handler, &event), ["a/old", "a/new"]);
        let event = Event::Updated { old: of("same"), new: of("same") };
        assert_eq!(asked(&handler, &event), ["a/same"]);
    }

    #[test]
    fn a_mapping_is_asked_of_what_was_and_what_is() {
        let map = EnqueueRequestsFromMapFunc::new(|pod: &Pod| {
            pod.metadata
                .owner_references
                .iter()
                .flatten()
                .map(|o| o.name.clone())
                .collect::<Vec<_>>()
        });
        let of = |name| pod(&json!([owner("apps/v1", "ReplicaSet", name, true)]));
        let event = Event::Updated { old: of("x/old"), new: of("x/new") };
        assert_eq!(asked(&map, &event), ["x/old", "x/new"]);
        let gone = Event::Deleted { object: of("x/last"), final_state_unknown: false };
        assert_eq!(asked(&map, &gone), ["x/last"]);
    }

    #[test]
    fn a_function_over_events_is_a_handler() {
        let on_delete = |event: &Event<Pod>, requests: &mut Requests| {
            if matches!(event, Event::Deleted { .. }) {
                requests.add(Request::new("a/b").priority(Priority(10)));
            }
        };
        assert!(asked(&on_delete, &added(&json!([]))).is_empty());
        let gone = Event::Deleted { object: pod(&json!([])), final_state_unknown: false };
        assert_eq!(asked(&on_delete, &gone), ["a/b"]);
    }
}
