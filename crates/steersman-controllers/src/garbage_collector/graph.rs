//! The graph of owners and dependents, by uid. Pure: events in, work out.
//!
//! An owner that is referred to but was never seen has no node, only dependents. The graph may
//! be late; it decides what is looked at, never what is deleted.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use steersman::ObjectKey;

use crate::discovery::ServedResource;

/// What a uid is here: shared, since it occurs in many places.
pub(super) type Uid = Arc<str>;

/// How many deleted objects are remembered.
const DELETED_MAX: usize = 500;

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Work {
    /// An object that may have lost its owners, or whose dependents it waits for may be gone.
    Collect(Uid),
    /// An owner whose dependents are to be set free.
    Orphan(Uid),
}

/// How far the deletion of an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deletion {
    /// It is not being deleted.
    None,
    /// It is being deleted, and this collector has no part in it.
    Begun,
    /// It waits until its dependents are deleted.
    Foreground,
    /// It waits until its dependents are set free.
    Orphan,
}

/// One object.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) uid: Uid,
    pub(super) resource: Arc<ServedResource>,
    pub(super) key: ObjectKey,
    pub(super) owners: Vec<OwnerReference>,
    pub(super) deletion: Deletion,
}

/// Every object that was seen, and who refers to whom.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Uid, Node>,
    /// Owner → dependents, also for owners without a node.
    dependents: HashMap<Uid, BTreeSet<Uid>>,
    deleted: Deleted,
    /// Objects with the uids of owners that were found in other namespaces.
    elsewhere: HashSet<(Uid, String)>,
}

impl Node {
    /// The node of an object with this metadata; `None` without a uid.
    pub(super) fn new(resource: Arc<ServedResource>, meta: ObjectMeta) -> Option<Self> {
        let key = ObjectKey::of_meta(&meta);
        let deletion = Deletion::of(&meta);
        let owners = meta.owner_references.unwrap_or_default();
        Some(Self { uid: meta.uid?.into(), resource, key, owners, deletion })
    }

    /// Whether `reference`, in an object in `namespace`, means this object: same kind, same
    /// name, and not in another namespace.
    fn is_meant_by(&self, reference: &OwnerReference, namespace: Option<&str>) -> bool {
        let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
        reference.kind == self.resource.api.kind
            && group == self.resource.api.group
            && reference.name == *self.key.name
            && (self.key.namespace.is_none() || self.key.namespace.as_deref() == namespace)
    }

    fn refers_to(&self, uid: &str) -> Option<&OwnerReference> {
        self.owners.iter().find(|owner| owner.uid == uid)
    }

    fn blocks(&self, owner: &str) -> bool {
        self.refers_to(owner).is_some_and(|reference| reference.block_owner_deletion == Some(true))
    }
}

impl Deletion {
    /// How far the deletion of an object with this metadata is.
    pub(super) fn of(meta: &ObjectMeta) -> Self {
        let has = |name| meta.finalizers.iter().flatten().any(|finalizer| finalizer == name);
        if meta.deletion_timestamp.is_none() {
            Self::None
        } else if has("orphan") {
            Self::Orphan
        } else if has("foregroundDeletion") {
            Self::Foreground
        } else {
            Self::Begun
        }
    }
}

impl Graph {
    /// The object with this uid.
    pub(super) fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// Whether the server told that the owner which a reference of this object means was
    /// deleted. Of use only when the owner's kind is no longer served, so that nobody can ask.
    pub(super) fn was_deleted(&self, node: &Node, reference: &OwnerReference) -> bool {
        let owner = self.deleted.nodes.get(reference.uid.as_str());
        owner.is_some_and(|owner| owner.is_meant_by(reference, node.key.namespace.as_deref()))
    }

    /// The objects that refer to this owner.
    pub(super) fn dependents(&self, owner: &str) -> impl Iterator<Item = &Node> {
        let uids = self.dependents.get(owner).into_iter().flatten();
        uids.filter_map(|uid| self.nodes.get(uid))
    }

    /// The dependents that this owner's foreground deletion waits for.
    pub(super) fn blocking(&self, owner: &str) -> Vec<&Node> {
        self.dependents(owner).filter(|dependent| dependent.blocks(owner)).collect()
    }

    /// Whether every owner of an object was seen and none waits for it to go: then there is
    /// nothing to collect.
    pub(super) fn is_held(&self, node: &Node) -> bool {
        node.owners.iter().all(|reference| {
            self.owner(node, reference).is_some_and(|owner| owner.deletion != Deletion::Foreground)
        })
    }

    /// The owner that a reference of this object means, if it was seen.
    pub(super) fn owner(&self, node: &Node, reference: &OwnerReference) -> Option<&Node> {
        let owner = self.nodes.get(reference.uid.as_str())?;
        owner.is_meant_by(reference, node.key.namespace.as_deref()).then_some(owner)
    }

    /// Whether the owner with the uid of this reference was seen in a namespace from which it cannot
    /// own this object; only the first time that it is asked.
    pub(super) fn is_found_elsewhere(&mut self, node: &Node, reference: &OwnerReference) -> bool {
        let owner = self.nodes.get(reference.uid.as_str());
        let elsewhere = owner.is_some_and(|owner| {
            owner.key.namespace.is_some() && owner.key.namespace != node.key.namespace
        });
        elsewhere && self.elsewhere.insert((Arc::clone(&node.uid), reference.uid.clone()))
    }

    /// Takes in an object as it is now.
    pub(super) fn observe(&mut self, node: Node) -> Vec<Work> {
        self.deleted.forget(&node.uid);
        let old = self.nodes.remove(&node.uid);
        let before = old.as_ref().map_or(Deletion::None, |old| old.deletion);
        let former = old.map(|old| old.owners).unwrap_or_default();
        let mut work = Vec::new();
        if former != node.owners {
            self.relink(&node.uid, &former, &node.owners);
            work.extend(self.waiting_owners(&former));
            if !self.is_held(&node) {
                work.push(Work::Collect(Arc::clone(&node.uid)));
            }
        }
        if before != node.deletion {
            work.extend(self.deletion_work(&node));
        }
        self.nodes.insert(Arc::clone(&node.uid), node);
        work
    }

    /// Takes note that the server has deleted an object.
    pub(super) fn delete(&mut self, node: Node) -> Vec<Work> {
        let work = self.remove(&node.uid);
        self.deleted.remember(node);
        work
    }

    /// Forgets an object that is no longer seen; those that it owned have to be looked at.
    pub(super) fn remove(&mut self, uid: &str) -> Vec<Work> {
        let Some(node) = self.nodes.remove(uid) else {
            return Vec::new();
        };
        self.relink(&node.uid, &node.owners, &[]);
        self.elsewhere.retain(|(dependent, _)| **dependent != *uid);
        let mut work = self.dependents_work(uid);
        work.extend(self.waiting_owners(&node.owners));
        work
    }

    /// Removes the objects of a resource, in whatever version, that are not among `present`.
    pub(super) fn retain(
        &mut self,
        resource: &ServedResource,
        present: &HashSet<Uid>,
    ) -> Vec<Work> {
        let gone = self.nodes.values().filter(|node| node.resource.name() == resource.name());
        let gone = gone.filter(|node| !present.contains(&node.uid));
        let gone: Vec<Uid> = gone.map(|node| Arc::clone(&node.uid)).collect();
        gone.iter().flat_map(|uid| self.remove(uid)).collect()
    }

    fn deletion_work(&self, node: &Node) -> Vec<Work> {
        match node.deletion {
            Deletion::Orphan => vec![Work::Orphan(Arc::clone(&node.uid))],
            Deletion::Foreground => {
                let mut work = self.dependents_work(&node.uid);
                work.push(Work::Collect(Arc::clone(&node.uid)));
                work
            }
            Deletion::None | Deletion::Begun => Vec::new(),
        }
    }

    fn dependents_work(&self, owner: &str) -> Vec<Work> {
        let uids = self.dependents.get(owner).into_iter().flatten();
        uids.map(|uid| Work::Collect(Arc::clone(uid))).collect()
    }

    /// The owners among these that wait for their dependents to go.
    fn waiting_owners(&self, owners: &[OwnerReference]) -> Vec<Work> {
        let seen = owners.iter().filter_map(|owner| self.nodes.get(owner.uid.as_str()));
        let waiting = seen.filter(|owner| owner.deletion == Deletion::Foreground);
        waiting.map(|owner| Work::Collect(Arc::clone(&owner.uid))).collect()
    }

    fn relink(&mut self, uid: &Uid, former: &[OwnerReference], current: &[OwnerReference]) {
        for owner in former {
            if let Some(dependents) = self.dependents.get_mut(owner.uid.as_str()) {
                dependents.remove(uid);
                if dependents.is_empty() {
                    self.dependents.remove(owner.uid.as_str());
                }
            }
        }
        for owner in current {
            let dependents = self.dependents.entry(owner.uid.as_str().into()).or_default();
            dependents.insert(Arc::clone(uid));
        }
    }
}

/// The objects that were deleted last.
#[derive(Debug, Default)]
struct Deleted {
    nodes: HashMap<Uid, Node>,
    /// In the order of deletion; holds exactly the uids of `nodes`.
    order: VecDeque<Uid>,
}

impl Deleted {
    fn remember(&mut self, node: Node) {
        let uid = Arc::clone(&node.uid);
        if self.nodes.insert(Arc::clone(&uid), node).is_some() {
            return;
        }
        self.order.push_back(uid);
        if self.order.len() > DELETED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.nodes.remove(&oldest);
        }
    }

    fn forget(&mut self, uid: &str) {
        if self.nodes.remove(uid).is_some() {
            self.order.retain(|deleted| **deleted != *uid);
        }
    }
}
