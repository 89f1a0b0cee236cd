//! The graph of owners and dependents, by uid. Pure: events in, work out.
//!
//! An owner that is referred to but was never seen has no node, only dependents. The graph may
//! be late; it decides what is looked at, never what is deleted.
//!
//! What changes at one object costs as much as it has owners and, when it goes or begins to wait
//! for them, dependents: an owner of ten thousand is looked at when the last of them has gone, not
//! after each.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use steersman::ObjectKey;

use crate::discovery::ServedResource;

/// What a uid is here: shared, since it occurs in many places.
pub(super) type Uid = Arc<str>;

/// How many deleted objects are remembered.
const DELETED_MAX: usize = 500;

/// What follows from a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// An object has to be looked at: it may have lost its owners, or the dependents that it waits
    /// for may be gone.
    Collect(Uid),
    /// An owner has to be looked at whose dependents are to be set free.
    Orphan(Uid),
    /// People have to be told that an object refers to an owner in another namespace than its own.
    Report { dependent: Uid, owner: Uid },
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
    /// Objects that are kept because nobody can ask for an owner. All have a node.
    unresolved: HashSet<Uid>,
    deleted: Deleted,
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
            && !self.is_out_of_reach(namespace)
    }

    /// The reference to this owner, whether it means it or only has its uid.
    pub(super) fn refers_to(&self, uid: &str) -> Option<&OwnerReference> {
        self.owners.iter().find(|owner| owner.uid == uid)
    }

    /// Whether an owner's foreground deletion waits for this object. One that has the owner's uid
    /// and means another object holds nobody up.
    fn blocks(&self, owner: &Self) -> bool {
        self.refers_to(&owner.uid).is_some_and(|reference| {
            reference.block_owner_deletion == Some(true)
                && owner.is_meant_by(reference, self.key.namespace.as_deref())
        })
    }

    /// Whether an object in `namespace` cannot be a dependent of this one: it is in another.
    fn is_out_of_reach(&self, namespace: Option<&str>) -> bool {
        self.key.namespace.is_some() && self.key.namespace.as_deref() != namespace
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
    /// deleted. A uid does not come back, so nobody has to ask again; and when the owner's kind is
    /// no longer served, nobody can.
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
    pub(super) fn blocking(&self, owner: &Node) -> impl Iterator<Item = &Node> {
        self.dependents(&owner.uid).filter(|dependent| dependent.blocks(owner))
    }

    /// Whether an owner waits for dependents that, directly or through others, wait for it: then
    /// all of them would wait for ever. The last that begins to wait sees the whole circle.
    pub(super) fn closes_circle(&self, owner: &Node) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![owner];
        while let Some(node) = open.pop() {
            let waiting = |dependent: &&Node| dependent.deletion == Deletion::Foreground;
            for dependent in self.blocking(node).filter(waiting) {
                if dependent.uid == owner.uid {
                    return true;
                }
                if seen.insert(&dependent.uid) {
                    open.push(dependent);
                }
            }
        }
        false
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

    /// Takes in an object as it is now.
    pub(super) fn observe(&mut self, node: Node) -> Vec<Work> {
        let uid = Arc::clone(&node.uid);
        self.deleted.forget(&uid);
        let old = self.nodes.remove(&uid);
        let is_new = old.is_none();
        let before = old.as_ref().map_or(Deletion::None, |old| old.deletion);
        let former = old.map(|old| old.owners).unwrap_or_default();
        relink(&mut self.dependents, &uid, &former, &node.owners);
        self.nodes.insert(Arc::clone(&uid), node);
        let node = &self.nodes[&uid];
        let mut work = Vec::new();
        if is_new {
            work.extend(self.misplaced_dependents(node));
        }
        if former != node.owners {
            work.extend(self.misplaced(node, &former));
            work.extend(self.waiting_owners(&former));
            if !self.is_held(node) {
                work.push(Work::Collect(Arc::clone(&node.uid)));
            }
        }
        if before != node.deletion {
            work.extend(self.deletion_work(node));
        }
        work
    }

    /// Takes note that the server has deleted an object.
    pub(super) fn delete(&mut self, node: Node) -> Vec<Work> {
        let work = self.remove(&node.uid);
        // Nobody asks for one that owned nothing; many of them would drive out those that did.
        if self.dependents.contains_key(&node.uid) {
            self.deleted.remember(node);
        }
        work
    }

    /// Forgets an object that is no longer seen; those that it owned have to be looked at.
    pub(super) fn remove(&mut self, uid: &str) -> Vec<Work> {
        let Some(node) = self.nodes.remove(uid) else {
            return Vec::new();
        };
        self.unresolved.remove(uid);
        relink(&mut self.dependents, &node.uid, &node.owners, &[]);
        let mut work = self.dependents_work(uid);
        work.extend(self.waiting_owners(&node.owners));
        work
    }

    /// Takes note that an object is kept because nobody can ask for one of its owners.
    pub(super) fn keep_unresolved(&mut self, uid: &Uid) {
        if self.nodes.contains_key(uid) {
            self.unresolved.insert(Arc::clone(uid));
        }
    }

    /// Those objects: other kinds are served now, so that they have to be looked at anew.
    pub(super) fn take_unresolved(&mut self) -> Vec<Work> {
        self.unresolved.drain().map(Work::Collect).collect()
    }

    /// Removes the objects of a resource, in whatever version, that are not among `present`.
    pub(super) fn retain(
        &mut self,
        resource: &ServedResource,
        present: &HashSet<Uid>,
    ) -> Vec<Work> {
        let gone = self.nodes.values().filter(|node| node.resource.is_same(resource));
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

    /// The owners among these that waited for their dependents to go, and need not any more.
    fn waiting_owners(&self, owners: &[OwnerReference]) -> Vec<Work> {
        let seen = owners.iter().filter_map(|owner| self.nodes.get(owner.uid.as_str()));
        let waiting = seen.filter(|owner| owner.deletion == Deletion::Foreground);
        let free = waiting.filter(|owner| self.blocking(owner).next().is_none());
        free.map(|owner| Work::Collect(Arc::clone(&owner.uid))).collect()
    }

    /// The first owner of an object, among those that it did not have before, that is in another
    /// namespace.
    fn misplaced(&self, node: &Node, former: &[OwnerReference]) -> Option<Work> {
        let added =
            node.owners.iter().filter(|owner| !former.iter().any(|old| old.uid == owner.uid));
        let seen = added.filter_map(|owner| self.nodes.get(owner.uid.as_str()));
        let mut wrong = seen.filter(|owner| owner.is_out_of_reach(node.key.namespace.as_deref()));
        let (dependent, owner) = (Arc::clone(&node.uid), Arc::clone(&wrong.next()?.uid));
        Some(Work::Report { dependent, owner })
    }

    /// The dependents in other namespaces that were there before this owner was seen.
    fn misplaced_dependents(&self, owner: &Node) -> Vec<Work> {
        let wrong = self
            .dependents(&owner.uid)
            .filter(|dependent| owner.is_out_of_reach(dependent.key.namespace.as_deref()));
        let report = |dependent: &Node| Work::Report {
            dependent: Arc::clone(&dependent.uid),
            owner: Arc::clone(&owner.uid),
        };
        wrong.map(report).collect()
    }
}

/// Replaces the owners of an object.
fn relink(
    dependents: &mut HashMap<Uid, BTreeSet<Uid>>,
    uid: &Uid,
    former: &[OwnerReference],
    current: &[OwnerReference],
) {
    if former == current {
        return;
    }
    for owner in former {
        if let Some(of_owner) = dependents.get_mut(owner.uid.as_str()) {
            of_owner.remove(uid);
            if of_owner.is_empty() {
                dependents.remove(owner.uid.as_str());
            }
        }
    }
    for owner in current {
        let of_owner = dependents.entry(owner.uid.as_str().into()).or_default();
        of_owner.insert(Arc::clone(uid));
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
