//! Takes in what informers tell.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use steersman::informer::{Event, Informer, Registration};
use steersman::object::Object as Kind;

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
    let is_storage =
        matches!(resource, Resource::PersistentVolumeClaim | Resource::PersistentVolume);
    if is_storage {
        shared.storage.send_modify(|changes| *changes += 1);
    }
    if !shared.lock().queue.listens() {
        return;
    }
    let new = || event.object().object();
    let (action, before) = match event {
        Event::Added { .. } => (Action::ADD, Before { old: None, new: new() }),
        Event::Updated { old, .. } => {
            (Action::OTHER_UPDATE, Before { old: old.object(), new: new() })
        }
        Event::Deleted { .. } => (Action::DELETE, Before { old: new(), new: None }),
        _ => return,
    };
    shared.happened(&ClusterEvent { resource, action, object: object(before) });
}

fn on_node(shared: &Shared, event: &Event<Node>) {
    let item = event.object();
    let resource = Resource::Node;
    if let Event::Deleted { .. } = event {
        let old = shared.lock().cache.remove_node(&item.key().name);
        let object = Object::Node(Before { old, new: None });
        return shared.happened(&ClusterEvent { resource, action: Action::DELETE, object });
    }
    let Some(new) = item.object() else { return };
    let old = shared.lock().cache.set_node(Arc::clone(&new));
    for action in node_changes(old.as_deref(), &new) {
        let object = Object::Node(Before { old: old.clone(), new: Some(Arc::clone(&new)) });
        shared.happened(&ClusterEvent { resource, action, object });
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
    let item = event.object();
    let Some(uid) = item.uid() else { return };
    if let Event::Deleted { .. } = event {
        return gone(shared, uid);
    }
    if let Event::Updated { old, .. } = event
        && let Some(before) = old.uid().filter(|before| *before != uid)
    {
        gone(shared, before); // another took its name
    }
    let Some(pod) = item.object() else { return };
    let was_nominated = matches!(event, Event::Updated { old, .. }
        if old.object().is_some_and(|old| is_nominated(&old)));
    match bound_to(&pod) {
        _ if is_terminal(&pod) => gone(shared, uid),
        Some(node) => assigned(shared, &pod, node),
        None if pod.metadata.deletion_timestamp.is_some() => gone(shared, uid),
        None => unassigned(shared, profiles, &pod, was_nominated),
    }
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

/// Takes in a Pod that has no node. Where it is to go may be taken back, but is not yet written if it
/// has just been decided.
fn unassigned(shared: &Shared, profiles: &Profiles, pod: &Pod, was_nominated: bool) {
    let info = Arc::new(PodInfo::of(pod));
    if !profiles.contains_key(&info.scheduler_name) {
        return;
    }
    let mut state = shared.lock();
    if state.cache.is_assumed(&info.uid) {
        return; // its binding is on its way to the server
    }
    if let Some(node) = &info.nominated_node {
        Arc::make_mut(&mut state.nominator).nominate(Arc::clone(&info), node);
    } else if was_nominated {
        state.unnominate(&info.uid);
    }
    state.queue.set(&info, pod);
    drop(state);
    shared.wake.notify_one();
}

/// A Pod takes nothing any more.
fn gone(shared: &Shared, uid: &str) {
    let mut state = shared.lock();
    state.queue.remove(uid);
    let was_nominated = state.unnominate(uid);
    let old = state.cache.remove_pod(uid);
    goes(shared, &mut state, uid);
    let matters = (old.is_some() || was_nominated) && state.queue.listens();
    drop(state);
    shared.waiting.reject(uid, "", "removed");
    shared.storage.send_modify(|changes| *changes += 1); // nobody needs its volumes any more
    if matters {
        let object = Object::Pod(Before { old, new: None });
        let (resource, action) = (Resource::AssignedPod, Action::DELETE);
        shared.happened(&ClusterEvent { resource, action, object });
    }
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

    use super::*;
    use crate::config::{Configuration, assemble};
    use crate::plugins::Handle;
    use crate::queue::{Backoff, SchedulingQueue};
    use crate::scheduler::WaitingPods;
    use crate::testing::pod;

    #[tokio::test(start_paused = true)]
    async fn no_room_is_kept_for_a_pod_whose_nomination_is_taken_back() {
        let handle: Arc<Handle> = Arc::default();
        let assembled = assemble(&Configuration::default(), &[], &handle).unwrap();
        let profiles = Arc::new(assembled.profiles);
        let read = Box::new(|_: &_| None);
        let queue =
            SchedulingQueue::new(Arc::clone(&profiles), assembled.sort, Backoff::default(), read);
        let shared = Shared::new(queue, handle, WaitingPods::default());
        let on = |shared: &Shared| shared.lock().nominator.node_of("p").map(ToString::to_string);
        let nominated = pod("p", &json!({"status": {"nominatedNodeName": "n"}}));
        let plain = pod("p", &json!({}));
        assert_eq!((is_nominated(&nominated), is_nominated(&plain)), (true, false));
        unassigned(&shared, &profiles, &nominated, false);
        assert_eq!(on(&shared).as_deref(), Some("n"));
        unassigned(&shared, &profiles, &plain, false);
        assert_eq!(on(&shared).as_deref(), Some("n"), "it may not be written yet");
        unassigned(&shared, &profiles, &plain, true);
        assert_eq!(on(&shared), None);
    }
}
