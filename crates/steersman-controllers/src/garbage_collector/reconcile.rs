//! One look at one object: asks the server how it and its owners are, and acts.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use steersman::events::{NewEvent, Reference};
use steersman::{ObjectKey, Result};

use super::Collector;
use super::graph::{Deletion, Node, Work};
use super::objects::Remote;
use super::plan::{self, Decision, OwnerState};

/// When to look again at an object whose owner exists but was not seen yet: if the owner is
/// deleted before it is ever seen, nothing else would tell.
const UNSEEN_OWNER: Duration = Duration::from_secs(2);
/// When to look again at an object whose owner is of a kind that is not served.
const UNRESOLVABLE_OWNER: Duration = Duration::from_secs(30);

impl Collector {
    /// Does one piece of work; returns when to do it again, if ever.
    pub(super) async fn attempt(&self, work: &Work) -> Result<Option<Duration>> {
        let (Work::Collect(uid) | Work::Orphan(uid)) = work;
        let Some(node) = self.graph().get(uid).cloned() else {
            return Ok(None);
        };
        match (work, node.deletion) {
            (Work::Orphan(_), Deletion::Orphan) => self.orphan_dependents(&node).await,
            (Work::Collect(_), Deletion::Foreground) => self.finish_foreground(&node).await,
            (Work::Collect(_), Deletion::None) => self.collect(&node).await,
            _ => Ok(None),
        }
    }

    /// Deletes an object that no owner holds, or drops its references to owners that are gone.
    async fn collect(&self, node: &Node) -> Result<Option<Duration>> {
        if self.graph().is_held(node) {
            return Ok(None);
        }
        let remote = Remote::new(&self.client, &node.resource, &node.key);
        let Some(meta) = self.same_object(&remote, node).await? else {
            return Ok(None);
        };
        let mut owners = Vec::new();
        for reference in meta.owner_references.clone().unwrap_or_default() {
            self.tell_if_elsewhere(node, &meta, &reference);
            let state = self.owner_state(node, &reference).await?;
            owners.push((reference, state));
        }
        let has_dependents = self.graph().dependents(&node.uid).next().is_some();
        match plan::decide(&meta, &owners, has_dependents) {
            Decision::Keep => Ok(self.look_again(node, &owners)),
            Decision::Disown(uids) => {
                let kept = owners.into_iter().map(|(owner, _)| owner);
                let kept: Vec<_> = kept.filter(|owner| !uids.contains(&owner.uid)).collect();
                remote.set_owners(&meta, &kept).await?;
                Ok(None)
            }
            Decision::Delete(policy) => {
                self.break_cycle(node, &meta, &remote).await?;
                tracing::debug!(kind = node.resource.api.kind, key = %node.key, "deleting: owners are gone");
                remote.delete(&meta, policy).await?;
                Ok(None)
            }
        }
    }

    /// Tells of a reference to an owner in another namespace: it is no owner, and people should know.
    fn tell_if_elsewhere(&self, node: &Node, meta: &ObjectMeta, reference: &OwnerReference) {
        if !self.graph().is_found_elsewhere(node, reference) {
            return;
        }
        let OwnerReference { api_version, kind, name, uid, .. } = reference;
        let namespace = node.key.namespace.as_deref().unwrap_or_default();
        let owner =
            format!("[{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}]");
        let note = format!("ownerRef {owner} does not exist in namespace {namespace:?}");
        let resource = &node.resource.api;
        let regarding = Reference::with(&resource.api_version, &resource.kind, meta);
        self.recorder.event(regarding, NewEvent::warning("OwnerRefInvalidNamespace").note(note));
    }

    /// The object's metadata on the server. If it is gone or another took its name, the graph
    /// learns that here.
    async fn same_object(&self, remote: &Remote<'_>, node: &Node) -> Result<Option<ObjectMeta>> {
        let found = remote.get().await?;
        let same = found.filter(|meta| meta.uid.as_deref() == Some(&*node.uid));
        if same.is_none() {
            let work = self.graph().remove(&node.uid);
            self.enqueue(work);
        }
        Ok(same)
    }

    async fn owner_state(&self, node: &Node, reference: &OwnerReference) -> Result<OwnerState> {
        let Some(resource) = self.catalogue.of(reference) else {
            let deleted = self.graph().was_deleted(node, reference);
            return Ok(if deleted { OwnerState::Dangling } else { OwnerState::Unresolvable });
        };
        let namespace = node.key.namespace.clone();
        if resource.namespaced && namespace.is_none() {
            return Ok(OwnerState::Unresolvable);
        }
        let namespace = namespace.filter(|_| resource.namespaced);
        let key = ObjectKey { namespace, name: reference.name.as_str().into() };
        let owner = Remote::new(&self.client, &resource, &key).get().await?;
        Ok(match owner.filter(|owner| owner.uid.as_ref() == Some(&reference.uid)) {
            None => OwnerState::Dangling,
            Some(owner) if Deletion::of(&owner) == Deletion::Foreground => OwnerState::Waiting,
            Some(_) => OwnerState::Solid,
        })
    }

    fn look_again(&self, node: &Node, owners: &[(OwnerReference, OwnerState)]) -> Option<Duration> {
        let graph = self.graph();
        let again = |(reference, state): &(OwnerReference, OwnerState)| match state {
            OwnerState::Unresolvable => Some(UNRESOLVABLE_OWNER),
            OwnerState::Solid if graph.owner(node, reference).is_none() => Some(UNSEEN_OWNER),
            OwnerState::Solid | OwnerState::Waiting | OwnerState::Dangling => None,
        };
        owners.iter().filter_map(again).min()
    }

    /// Owners in a circle that all wait for each other would wait for ever: if a dependent of
    /// this object already waits, this object no longer blocks anybody.
    async fn break_cycle(&self, node: &Node, meta: &ObjectMeta, remote: &Remote<'_>) -> Result<()> {
        let waits = |dependent: &Node| dependent.deletion == Deletion::Foreground;
        if !self.graph().dependents(&node.uid).any(waits) {
            return Ok(());
        }
        let mut owners = meta.owner_references.clone().unwrap_or_default();
        if owners.iter().all(|owner| owner.block_owner_deletion != Some(true)) {
            return Ok(());
        }
        for owner in &mut owners {
            owner.block_owner_deletion = Some(false);
        }
        remote.set_owners(meta, &owners).await
    }

    /// Lets an object go that waited for its dependents, or has them looked at once more.
    async fn finish_foreground(&self, node: &Node) -> Result<Option<Duration>> {
        let dependents: Vec<Node> = self.graph().blocking(&node.uid).into_iter().cloned().collect();
        if dependents.is_empty() {
            return self.let_go(node, "foregroundDeletion").await;
        }
        let idle = dependents.into_iter().filter(|node| node.deletion == Deletion::None);
        self.enqueue(idle.map(|node| Work::Collect(node.uid)).collect());
        Ok(None)
    }

    /// Takes a deleted owner out of its dependents' references, then lets it go.
    async fn orphan_dependents(&self, owner: &Node) -> Result<Option<Duration>> {
        let dependents: Vec<Node> = self.graph().dependents(&owner.uid).cloned().collect();
        for dependent in dependents {
            let remote = Remote::new(&self.client, &dependent.resource, &dependent.key);
            let Some(meta) = self.same_object(&remote, &dependent).await? else {
                continue;
            };
            let owners = meta.owner_references.clone().unwrap_or_default();
            let others = owners.iter().filter(|reference| *reference.uid != *owner.uid);
            let others: Vec<OwnerReference> = others.cloned().collect();
            if others.len() < owners.len() {
                remote.set_owners(&meta, &others).await?;
            }
        }
        self.let_go(owner, "orphan").await
    }

    async fn let_go(&self, node: &Node, finalizer: &str) -> Result<Option<Duration>> {
        let remote = Remote::new(&self.client, &Arc::clone(&node.resource), &node.key);
        let Some(meta) = self.same_object(&remote, node).await? else {
            return Ok(None);
        };
        if meta.finalizers.iter().flatten().any(|name| name == finalizer) {
            remote.remove_finalizer(&meta, finalizer).await?;
        }
        Ok(None)
    }
}
