//! Takes in what informers tell.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use steersman::informer::{Event, Informer, Registration};
use steersman::object::Object as Kind;
use tokio::time::Instant;

use super::informers::Informers;
use super::shared::{Shared, State};
use crate::framework::{Action, Before, ClusterEvent, Object, PodInfo, Resource};
use crate::queue::{Profiles, changes};

/// Follows everything that matters. Ready when what is there has been taken in.
pub(super) async fn follow(informers: &Informers, shared: &Arc<Shared>, profiles: &Arc<Profiles>) {
    let on = Arc::clone(shared);
    let nodes = informers.nodes.add_handler(move |event: &Event<Node>| on_node(&on, event)).await;
    let (on, of_us) = (Arc::clone(shared), Arc::clone(profiles));
    let pods = move |event: &Event<Pod>| on_pod(&on, &of_us, event);
    let pods = informers.pods.add_handler(pods).await;
    let registrations = [
        nodes,
        pods,
        of(&informers.namespaces, shared, Resource::Namespace, Object::Namespace).await,
        of(&informers.claims, shared, Resource::PersistentVolumeClaim, Object::Claim).await,
        of(&informers.volumes, shared, Resource::PersistentVolume, Object::Volume).await,
        of(&informers.classes, shared, Resource::StorageClass, Object::Class).await,
        of(&informers.csi_drivers, shared, Resource::CsiDriver, Object::CsiDriver).await,
        of(
            &informers.storage_capacities,
            shared,
            Resource::CsiStorageCapacity,
            Object::StorageCapacity,
        )
        .await,
        of(&informers.csi_nodes, shared, Resource::CsiNode, Object::CsiNode).await,
        of(&informers.attachments, shared, Resource::VolumeAttachment, |_| Object::Other).await,
        resource_claims(&informers.resource_claims, shared).await,
        of(&informers.device_classes, shared, Resource::DeviceClass, Object::DeviceClass).await,
        of(&informers.resource_slices, shared, Resource::ResourceSlice, |_| Object::Other).await,
    ];
    for registration in registrations {
        registration.synced().await;
    }
}

/// Follows a kind of which only changes matter.
async fn of<K: Kind>(
    informer: &Informer<K>,
    shared: &Arc<Shared>,
    resource: Resource,
    object: fn(Before<K>) -> Object,
) -> Registration {
    let shared = Arc::clone(shared);
    let handler = move |event: &Event<K>| on_change(&shared, event, resource, object);
    informer.add_handler(handler).await
}

/// Follows claims for devices; who has which is known before anybody is tried again for that.
async fn resource_claims(informer: &Informer<ResourceClaim>, shared: &Arc<Shared>) -> Registration {
    let shared = Arc::clone(shared);
    shared.handle.allocations.follow();
    let handler = move |event: &Event<ResourceClaim>| {
        let allocations = &shared.handle.allocations;
        let item = event.object();
        let is_gone = matches!(event, Event::Deleted { .. });
        let old = match event {
            Event::Updated { old, .. } => old.uid().filter(|old| Some(*old) != item.uid()),
            _ => item.uid().filter(|_| is_gone),
        };
        if let Some(uid) = old {
            allocations.lost(uid);
        }
        if let Some(claim) = item.object().filter(|_| !is_gone) {
            allocations.saw(&claim);
        }
        shared.device_claims.send_modify(|changes| *changes += 1);
        on_change(&shared, event, Resource::ResourceClaim, Object::ResourceClaim);
    };
    informer.add_handler(handler).await
}

/// Takes in a change of something of which only changes matter.
fn on_change<K: Kind>(
    shared: &Shared,
    event: &Event<K>,
    resource: Resource,
    object: fn(Before<K>) -> Object,
) {
    let began = Instant::now();
    let is_storage =
        matches!(resource, Resource::PersistentVolumeClaim | Resource::PersistentVolume);
    if is_storage {
        shared.storage.send_modify(|changes| *changes += 1);
    }
    let new = || event.object().object();
    let listens = shared.lock().queue.listens();
    let (action, before) = match event {
        Event::Added { .. } => (Action::ADD, listens.then(|| Before { old: None, new: new() })),
        Event::Updated { old, .. } => {
            let before = listens.then(|| Before { old: old.object(), new: new() });
            (Action::OTHER_UPDATE, before)
        }
        Event::Deleted { .. } => {
            (Action::DELETE, listens.then(|| Before { old: new(), new: None }))
        }
        _ => return,
    };
    if let Some(before) = before {
        shared.happened(&ClusterEvent { resource, action, object: object(before) });
    }
    shared.handled(resource, action, began);
}

fn on_node(shared: &Shared, event: &Event<Node>) {
    let began = Instant::now();
    let item = event.object();
    let resource = Resource::Node;
    if let Event::Deleted { .. } = event {
        let old = shared.lock().cache.remove_node(&item.key().name);
        let object = Object::Node(Before { old, new: None });
        shared.happened(&ClusterEvent { resource, action: Action::DELETE, object });
        return shared.handled(resource, Action::DELETE, began);
    }
    let Some(new) = item.object() else { return };
    let old = shared.lock().cache.set_node(Arc::clone(&new));
    for action in node_changes(old.as_deref(), &new) {
        let object = Object::Node(Before { old: old.clone(), new: Some(Arc::clone(&new)) });
        shared.happened(&ClusterEvent { resource, action, object });
        shared.handled(resource, action, began);
    }
}

/// What of a node changed that may matter.
fn node_changes(old: Option<&Node>, new: &Node) -> Vec<Action> {
    let Some(old) = old else { return vec![Action::ADD] };
    let spec = |node: &Node| node.spec.clone().unwrap_or_default();
    let (old_spec, new_spec) = (spec(old), spec(new));
    let allocatable = |node: &Node| node.status.as_ref().and_then(|it| it.allocatable.clone());
    let conditions = |node: &Node| -> Vec<(String, String)> {
        let all = node.status.as_ref().and_then(|status| status.conditions.as_ref());
        all.into_iter().flatten().map(|it| (it.type_.clone(), it.status.clone())).collect()
    };
    let declared = |node: &Node| node.status.as_ref().and_then(|it| it.declared_features.clone());
    let opens = old_spec.unschedulable == Some(true) && new_spec.unschedulable != Some(true);
    let found = [
        (allocatable(old) != allocatable(new), Action::NODE_ALLOCATABLE),
        (old.metadata.labels != new.metadata.labels, Action::NODE_LABEL),
        (opens || old_spec.taints != new_spec.taints, Action::NODE_TAINT),
        (conditions(old) != conditions(new), Action::NODE_CONDITION),
        (old.metadata.annotations != new.metadata.annotations, Action::NODE_ANNOTATION),
        (declared(old) != declared(new), Action::NODE_DECLARED_FEATURE),
    ];
    found.into_iter().filter(|(is_so, _)| *is_so).map(|(_, action)| action).collect()
}

fn on_pod(shared: &Shared, profiles: &Profiles, event: &Event<Pod>) {
    let began = Instant::now();
    let has_node = take_in_pod(shared, profiles, event);
    let action = match event {
        Event::Added { .. } => Action::ADD,
        Event::Updated { .. } => Action::OTHER_UPDATE,
        Event::Deleted { .. } => Action::DELETE,
        _ => return,
    };
    let resource = if has_node { Resource::AssignedPod } else { Resource::UnscheduledPod };
    shared.handled(resource, action, began);
}

/// Takes in what happened to a Pod. Whether it has a node, or had one.
fn take_in_pod(shared: &Shared, profiles: &Profiles, event: &Event<Pod>) -> bool {
    let item = event.object();
    let Some(uid) = item.uid() else { return false };
    if let Event::Deleted { .. } = event {
        return gone(shared, uid);
    }
    if let Event::Updated { old, .. } = event
        && let Some(before) = old.uid().filter(|before| *before != uid)
    {
        gone(shared, before); // another took its name
    }
    let Some(pod) = item.object() else { return false };
    let nominated = match event {
        Event::Updated { old, .. } if old.uid() == Some(uid) => {
            old.object().filter(|old| is_nominated(old))
        }
        _ => None,
    };
    let node = bound_to(&pod);
    match node {
        _ if is_terminal(&pod) => _ = gone(shared, uid),
        Some(node) => assigned(shared, &pod, node),
        None => unassigned(shared, profiles, &pod, nominated.as_deref()),
    }
    node.is_some()
}

fn assigned(shared: &Shared, pod: &Pod, node: &str) {
    let new = Arc::new(PodInfo::of(pod));
    let mut state = shared.lock();
    state.queue.remove(&new.uid);
    state.unnominate(&new.uid);
    let old = state.cache.set_pod(&new, node);
    if new.is_terminating {
        goes(shared, &mut state, &new.uid);
    }
    if !state.queue.listens() || old.as_ref() == Some(&new) {
        return;
    }
    drop(state);
    let actions = match &old {
        None => vec![Action::ADD],
        Some(old) => changes(old, &new),
    };
    for action in actions {
        let object = Object::Pod(Before { old: old.clone(), new: Some(Arc::clone(&new)) });
        shared.happened(&ClusterEvent { resource: Resource::AssignedPod, action, object });
    }
}

/// Takes in a Pod that has no node, and what it was if it said where it was to go. That may be taken
/// back, but is not yet written if it has just been decided.
fn unassigned(shared: &Shared, profiles: &Profiles, pod: &Pod, nominated: Option<&Pod>) {
    let info = Arc::new(PodInfo::of(pod));
    if !profiles.contains_key(&info.scheduler_name) {
        return;
    }
    let mut state = shared.lock();
    if state.cache.is_assumed(&info.uid) {
        drop(state);
        if info.is_terminating {
            gone(shared, &info.uid);
        }
        return; // otherwise its binding is on its way to the server
    }
    if let Some(node) = &info.nominated_node {
        Arc::make_mut(&mut state.nominator).nominate(Arc::clone(&info), node);
    } else if nominated.is_some() {
        state.unnominate(&info.uid);
    }
    if info.is_terminating {
        goes(shared, &mut state, &info.uid);
    }
    state.queue.set(&info, pod);
    drop(state);
    shared.wake.notify_one();
    let Some(old) = nominated.map(PodInfo::of) else { return };
    if old.nominated_node != info.nominated_node {
        let priority = old.priority;
        freed(shared, Arc::new(old), priority);
    }
}

/// What a Pod took is free for Pods of this priority at most. Who was only to go to a node counted
/// there for no others.
fn freed(shared: &Shared, old: Arc<PodInfo>, priority_max: i32) {
    let object = Object::Pod(Before { old: Some(old), new: None });
    let (resource, action) = (Resource::AssignedPod, Action::DELETE);
    shared.happened_for(&ClusterEvent { resource, action, object }, priority_max);
}

/// A Pod takes nothing any more. Whether it took something of a node.
fn gone(shared: &Shared, uid: &str) -> bool {
    let mut state = shared.lock();
    state.queue.remove(uid);
    let nominated = state.unnominate(uid);
    let old = state.cache.remove_pod(uid);
    goes(shared, &mut state, uid);
    let listens = state.queue.listens();
    drop(state);
    shared.waiting.reject(uid, "", "removed");
    shared.storage.send_modify(|changes| *changes += 1); // nobody needs its volumes any more
    let had_node = old.is_some();
    match (old, nominated) {
        _ if !listens => {}
        (Some(old), _) => freed(shared, old, i32::MAX),
        (None, Some(nominated)) => {
            let priority = nominated.priority;
            freed(shared, nominated, priority);
        }
        (None, None) => {}
    }
    had_node
}

/// A Pod goes: who has waited for nothing else may be tried when that helps.
fn goes(shared: &Shared, state: &mut State, uid: &str) {
    for preemptor in shared.handle.preempting.goes(uid) {
        state.queue.ungate(&preemptor);
    }
}

/// The node that a Pod is bound to.
pub(super) fn bound_to(pod: &Pod) -> Option<&str> {
    let node = pod.spec.as_ref()?.node_name.as_deref()?;
    (!node.is_empty()).then_some(node)
}

/// Whether it is said of a Pod where it is to go.
fn is_nominated(pod: &Pod) -> bool {
    let node = pod.status.as_ref().and_then(|status| status.nominated_node_name.as_deref());
    node.is_some_and(|node| !node.is_empty())
}

/// Whether a Pod has ended and takes nothing any more.
fn is_terminal(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steersman::ObjectKey;
    use steersman::cache::Item;

    use super::*;
    use crate::config::{Configuration, assemble};
    use crate::framework::{FitError, Refusal};
    use crate::plugins::Handle;
    use crate::queue::{Backoff, SchedulingQueue};
    use crate::scheduler::WaitingPods;
    use crate::testing::pod;

    /// A scheduler that can read these Pods.
    fn scheduler(pods: Vec<Pod>) -> (Shared, Arc<Profiles>) {
        let handle: Arc<Handle> = Arc::default();
        let assembled = assemble(&Configuration::default(), &[], &handle).unwrap();
        let profiles = Arc::new(assembled.profiles);
        let pods: Vec<Arc<Pod>> = pods.into_iter().map(Arc::new).collect();
        let read =
            move |key: &ObjectKey| pods.iter().find(|it| ObjectKey::of(&***it) == *key).cloned();
        let (sort, backoff) = (assembled.sort, Backoff::default());
        let queue = SchedulingQueue::new(Arc::clone(&profiles), sort, backoff, Box::new(read));
        (Shared::new(queue, handle, WaitingPods::default()), profiles)
    }

    /// The names of those that are tried next.
    fn tried(shared: &Shared) -> String {
        let popped = || Some(shared.lock().queue.pop()?.info.key.name.to_string());
        let mut names: Vec<String> = std::iter::from_fn(popped).collect();
        names.sort();
        names.join(" ")
    }

    #[tokio::test(start_paused = true)]
    async fn no_room_is_kept_for_a_pod_whose_nomination_is_taken_back() {
        let (shared, profiles) = scheduler(Vec::new());
        let on = |shared: &Shared| shared.lock().nominator.node_of("p").map(ToString::to_string);
        let nominated = pod("p", &json!({"status": {"nominatedNodeName": "n"}}));
        let plain = pod("p", &json!({}));
        assert_eq!((is_nominated(&nominated), is_nominated(&plain)), (true, false));
        unassigned(&shared, &profiles, &nominated, None);
        assert_eq!(on(&shared).as_deref(), Some("n"));
        unassigned(&shared, &profiles, &plain, None);
        assert_eq!(on(&shared).as_deref(), Some("n"), "it may not be written yet");
        unassigned(&shared, &profiles, &plain, Some(&nominated));
        assert_eq!(on(&shared), None);
    }

    #[tokio::test(start_paused = true)]
    async fn when_a_nomination_goes_who_matters_no_more_is_tried_again() {
        let of = |name: &str, priority: i32, status: &serde_json::Value| {
            pod(name, &json!({"spec": {"priority": priority}, "status": status}))
        };
        let to = |node: &str| Item::typed(of("p", 5, &json!({"nominatedNodeName": node})));
        let updated = |node: &str| Event::Updated { old: to("n"), new: to(node) };
        let gone = Event::Deleted { object: to("n"), final_state_unknown: false };
        for (event, expected) in [
            (updated("n"), ""),
            (updated("m"), "equal lower p"),
            (updated(""), "equal lower p"),
            (gone, "equal lower"),
        ] {
            let none = json!({});
            let others = [of("lower", 0, &none), of("equal", 5, &none), of("higher", 9, &none)];
            let p = of("p", 5, &json!({"nominatedNodeName": "n"}));
            let (shared, profiles) = scheduler([&others[..], std::slice::from_ref(&p)].concat());
            for pod in others.iter().chain([&p]) {
                unassigned(&shared, &profiles, pod, None);
                let mut state = shared.lock();
                let pending = state.queue.pop().unwrap();
                let mut error = FitError::default();
                error.refused_by("NodeResourcesFit", &Refusal::unschedulable("no"));
                state.queue.put_back(pending, Some(&error));
            }
            on_pod(&shared, &profiles, &event);
            assert_eq!(tried(&shared), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_is_being_deleted_is_looked_at_unless_it_is_being_bound() {
        let deleted = json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}});
        let pods = [pod("p", &json!({})), pod("p", &deleted)];
        let updated = || {
            let [old, new] = pods.clone().map(Item::typed);
            Event::Updated { old, new }
        };
        let (shared, profiles) = scheduler(pods[1..].to_vec());
        on_pod(&shared, &profiles, &updated());
        assert_eq!(tried(&shared), "p", "people are told that it is not scheduled");

        let (shared, profiles) = scheduler(pods[1..].to_vec());
        shared.lock().cache.assume(Arc::new(PodInfo::of(&pods[0])), &"n".into());
        on_pod(&shared, &profiles, &updated());
        assert_eq!(tried(&shared), "");
        assert!(!shared.lock().cache.has_pod("p"), "it takes nothing any more");
    }
}
