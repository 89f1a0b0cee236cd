//! One look at one object: asks the server how it and its owners are, and acts.

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use steersman::events::{NewEvent, Reference};
use steersman::{ObjectKey, Result};

use super::graph::{Deletion, Node};
use super::objects::Remote;
use super::plan::{self, Decision, OwnerState};
use super::{Collector, Look, WORKERS};

impl Collector {
    /// Looks at an object that may have lost its owners, or may wait for nothing any more.
    pub(super) async fn attempt_to_delete(&self, uid: &str) -> Result<Look> {
        let Some(node) = self.graph().get(uid).cloned() else {
            return Ok(Look::Done);
        };
        match node.deletion {
            Deletion::Foreground => self.finish_foreground(&node).await,
            Deletion::None => self.collect(&node).await,
            Deletion::Begun | Deletion::Orphan => Ok(Look::Done),
        }
    }

    /// Sets free what belongs to an owner that is being deleted.
    pub(super) async fn attempt_to_orphan(&self, uid: &str) -> Result<Look> {
        let node = self.graph().get(uid).cloned();
        match node.filter(|node| node.deletion == Deletion::Orphan) {
            Some(owner) => self.orphan_dependents(&owner).await,
            None => Ok(Look::Done),
        }
    }

    /// Tells people that an object refers to an owner in another namespace than its own.
    pub(super) fn report(&self, dependent: &str, owner: &str) {
        let Some(node) = self.graph().get(dependent).cloned() else { return };
        let Some(reference) = node.refers_to(owner) else { return };
        let api = &node.resource.api;
        let meta = ObjectMeta {
            name: Some(node.key.name.to_string()),
            namespace: node.key.namespace.as_deref().map(str::to_owned),
            uid: Some(node.uid.to_string()),
            ..ObjectMeta::default()
        };
        let event = NewEvent::warning("OwnerRefInvalidNamespace");
        let note = plan::invalid_namespace(reference, node.key.namespace.as_deref());
        self.recorder.event(Reference::with(&api.api_version, &api.kind, &meta), event.note(note));
    }

    /// Deletes an object that no owner holds, or drops its references to owners that are gone.
    async fn collect(&self, node: &Node) -> Result<Look> {
        if self.graph().is_held(node) {
            return Ok(Look::Done);
        }
        let remote = Remote::new(&self.client, &node.resource, &node.key);
        let Some(meta) = self.same_object(&remote, node).await? else {
            return Ok(Look::Done);
        };
        let mut owners = Vec::new();
        for reference in meta.owner_references.clone().unwrap_or_default() {
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
                Ok(Look::Done)
            }
            Decision::Delete(policy) => {
                tracing::debug!(kind = node.resource.api.kind, key = %node.key, "deleting: owners are gone");
                remote.delete(&meta, policy).await?;
                Ok(Look::Done)
            }
        }
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
        if self.graph().was_deleted(node, reference) {
            return Ok(OwnerState::Dangling);
        }
        let Some(resource) = self.catalogue.of(reference) else {
            return Ok(OwnerState::Unresolvable);
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

    /// Whether an object that is kept has to be looked at again though nothing happens to it: if an
    /// owner is deleted before it was ever seen, nobody would tell. What cannot be asked for now
    /// waits until other kinds are served.
    fn look_again(&self, node: &Node, owners: &[(OwnerReference, OwnerState)]) -> Look {
        let mut graph = self.graph();
        if owners.iter().any(|(_, state)| *state == OwnerState::Unresolvable) {
            graph.keep_unresolved(&node.uid);
        }
        let unseen = |(reference, state): &(OwnerReference, OwnerState)| {
            *state == OwnerState::Solid && graph.owner(node, reference).is_none()
        };
        if owners.iter().any(unseen) { Look::Again } else { Look::Done }
    }

    /// Lets an object go that waits for no dependents. One that waits for others which wait for it
    /// holds none of them up any more, so that they go and then it does.
    async fn finish_foreground(&self, node: &Node) -> Result<Look> {
        let (waits, closes_circle) = {
            let graph = self.graph();
            (graph.blocking(node).next().is_some(), graph.closes_circle(node))
        };
        if !waits {
            return self.let_go(node, "foregroundDeletion").await;
        }
        if closes_circle {
            self.unblock_owners(node).await?;
        }
        Ok(Look::Done)
    }

    /// Lets an object hold up nobody's deletion.
    async fn unblock_owners(&self, node: &Node) -> Result<()> {
        let remote = Remote::new(&self.client, &node.resource, &node.key);
        let Some(meta) = self.same_object(&remote, node).await? else { return Ok(()) };
        let mut owners = meta.owner_references.clone().unwrap_or_default();
        for owner in &mut owners {
            owner.block_owner_deletion = Some(false);
        }
        remote.set_owners(&meta, &owners).await
    }

    /// Takes a deleted owner out of its dependents' references, then lets it go.
    async fn orphan_dependents(&self, owner: &Node) -> Result<Look> {
        let dependents: Vec<Node> = self.graph().dependents(&owner.uid).cloned().collect();
        let all = futures::stream::iter(dependents)
            .map(async |dependent| self.set_free(&dependent, owner).await)
            .buffer_unordered(WORKERS);
        // One that fails keeps none of the others: what is free already is not looked at again.
        let outcomes: Vec<Result<()>> = all.collect().await;
        outcomes.into_iter().collect::<Result<()>>()?;
        self.let_go(owner, "orphan").await
    }

    /// Takes an owner out of one dependent's references.
    async fn set_free(&self, dependent: &Node, owner: &Node) -> Result<()> {
        let remote = Remote::new(&self.client, &dependent.resource, &dependent.key);
        let Some(meta) = self.same_object(&remote, dependent).await? else { return Ok(()) };
        let owners = meta.owner_references.clone().unwrap_or_default();
        let others = owners.iter().filter(|reference| *reference.uid != *owner.uid);
        let others: Vec<OwnerReference> = others.cloned().collect();
        if others.len() < owners.len() {
            remote.set_owners(&meta, &others).await?;
        }
        Ok(())
    }

    async fn let_go(&self, node: &Node, finalizer: &str) -> Result<Look> {
        let remote = Remote::new(&self.client, &node.resource, &node.key);
        let Some(meta) = self.same_object(&remote, node).await? else {
            return Ok(Look::Done);
        };
        if meta.finalizers.iter().flatten().any(|name| name == finalizer) {
            remote.remove_finalizer(&meta, finalizer).await?;
        }
        Ok(Look::Done)
    }
}
