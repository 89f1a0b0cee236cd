//! Trees of objects that own each other, honestly or not, as a seed says; and what must become of
//! them, worked out without a cluster.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// The kinds of objects: API version, kind, plural, and whether they are in namespaces.
pub(super) const KINDS: [(&str, &str, &str, bool); 4] = [
    ("v1", "ConfigMap", "configmaps", true),
    ("v1", "Secret", "secrets", true),
    ("example.com/v1", "Boat", "boats", true),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false),
];
/// How many objects have no owners, and are deleted.
const ROOTS: usize = 3;

/// How a tree looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Nearly everything in one line.
    Deep,
    /// Nearly everything below the roots.
    Wide,
    /// Everything has several owners, and roots belong to what they own.
    Tangled,
}

/// One object.
pub(super) struct Planned {
    /// One of [`KINDS`].
    pub(super) kind: usize,
    /// Nothing for those that are in none.
    pub(super) namespace: Option<&'static str>,
    pub(super) owners: Vec<Ref>,
}

/// A reference to an owner.
pub(super) struct Ref {
    /// The object that it is about.
    pub(super) about: usize,
    /// What is not true of it.
    pub(super) lie: Option<Lie>,
    pub(super) blocks: bool,
}

/// What is not true of a reference. That the owner is in another namespace is not among these: it
/// follows from where the two are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    Uid,
    Name,
    Kind,
    /// There is no such kind.
    Unserved,
}

/// Whom a reference leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Owner(usize),
    /// Nobody: the owner counts as gone.
    Nobody,
    /// Nobody can tell, so the object stays.
    Held,
}

/// A whole tree.
pub(super) struct Tree {
    pub(super) objects: Vec<Planned>,
    /// References that are added when all objects are there: roots belong to what they own.
    pub(super) circles: Vec<(usize, Ref)>,
}

impl Tree {
    pub(super) fn grow(seed: u64, shape: Shape, size: usize) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut tree = Self { objects: Vec::new(), circles: Vec::new() };
        for _ in 0..ROOTS {
            let kind = random.random_range(0..3);
            tree.objects.push(Planned { kind, namespace: Some("a"), owners: Vec::new() });
        }
        while tree.objects.len() < size {
            let next = tree.next(shape, &mut random);
            tree.objects.push(next);
        }
        if shape == Shape::Tangled {
            for root in tree.roots() {
                let about = random.random_range(ROOTS..size);
                if tree.objects[about].namespace == Some("a") {
                    tree.circles.push((root, Ref { about, lie: None, blocks: true }));
                }
            }
        }
        tree
    }

    /// The objects that are deleted.
    pub(super) fn roots(&self) -> std::ops::Range<usize> {
        0..ROOTS
    }

    fn next(&self, shape: Shape, random: &mut StdRng) -> Planned {
        let kind = if random.random_bool(0.03) { 3 } else { random.random_range(0..3) };
        let namespace = if random.random_bool(0.9) { "a" } else { "b" };
        let namespace = KINDS[kind].3.then_some(namespace);
        let count = if shape == Shape::Tangled { random.random_range(1..=3) } else { 1 };
        let mut owners: Vec<Ref> = Vec::new();
        for _ in 0..count {
            let Some(about) = self.owner(namespace, shape, random) else { continue };
            // The same uid twice is one reference to the server.
            if owners.iter().all(|owner| owner.about != about) {
                let lies = [Lie::Uid, Lie::Name, Lie::Kind, Lie::Unserved];
                let lie = random.random_bool(0.08).then(|| *lies.choose(random).unwrap());
                owners.push(Ref { about, lie, blocks: random.random_bool(0.8) });
            }
        }
        Planned { kind, namespace, owners }
    }

    /// An owner for an object in this namespace; now and then one that cannot be.
    fn owner(&self, namespace: Option<&str>, shape: Shape, random: &mut StdRng) -> Option<usize> {
        let careless = random.random_bool(0.03);
        let can_be = |at: &usize| careless || can_own(self.objects[*at].namespace, namespace);
        match shape {
            Shape::Wide if random.random_bool(0.9) => Some(random.random_range(0..ROOTS)),
            Shape::Deep if !careless => (0..self.objects.len()).rev().find(can_be),
            _ => {
                let tries = (0..8).map(|_| random.random_range(0..self.objects.len()));
                tries.collect::<Vec<_>>().into_iter().find(can_be)
            }
        }
    }

    fn owners(&self, at: usize) -> impl Iterator<Item = &Ref> {
        let circles = self.circles.iter().filter(move |(root, _)| *root == at);
        self.objects[at].owners.iter().chain(circles.map(|(_, circle)| circle))
    }

    fn fate(&self, at: usize, owner: &Ref) -> Fate {
        let namespace = self.objects[at].namespace;
        let kind = self.objects[owner.about].kind;
        let kind = if owner.lie == Some(Lie::Kind) { other_kind(kind) } else { kind };
        if owner.lie == Some(Lie::Unserved) || (namespace.is_none() && KINDS[kind].3) {
            return Fate::Held;
        }
        let honest = owner.lie.is_none() && can_own(self.objects[owner.about].namespace, namespace);
        if honest { Fate::Owner(owner.about) } else { Fate::Nobody }
    }

    /// Whether each object is gone, if those that are `gone` are: what has had owners, and has none
    /// that is there, goes with the last of them.
    fn without(&self, mut gone: Vec<bool>) -> Vec<bool> {
        loop {
            let mut changed = false;
            for at in 0..self.objects.len() {
                let is_lost = |owner: &Ref| match self.fate(at, owner) {
                    Fate::Owner(about) => gone[about],
                    Fate::Nobody => true,
                    Fate::Held => false,
                };
                let mut owners = self.owners(at).peekable();
                if !gone[at] && owners.peek().is_some() && owners.all(is_lost) {
                    gone[at] = true;
                    changed = true;
                }
            }
            if !changed {
                return gone;
            }
        }
    }

    /// Which objects are gone before anything is deleted: their references lie.
    pub(super) fn liars(&self) -> Vec<bool> {
        self.without(vec![false; self.objects.len()])
    }

    /// Which objects are gone when the roots were deleted with what belongs to them, or without.
    pub(super) fn gone(&self, with_dependents: bool) -> Vec<bool> {
        let mut gone = self.liars();
        self.roots().for_each(|root| gone[root] = true);
        if with_dependents { self.without(gone) } else { gone }
    }

    /// Objects with one owner that waits for them, and that owner: in trees without circles. An
    /// owner that nobody waits for may outlive its own; then it is deleted in the background, and
    /// waits for nobody either.
    pub(super) fn awaited(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut waits = Vec::with_capacity(self.objects.len());
        for at in 0..self.objects.len() {
            let awaited = self.waiting_owner(at).is_some_and(|owner| waits[owner]);
            waits.push(awaited || self.roots().contains(&at));
        }
        let pairs = (0..self.objects.len()).filter(|_| self.circles.is_empty());
        let pairs = pairs.filter_map(|at| Some((at, self.waiting_owner(at)?)));
        pairs.filter(move |(_, owner)| waits[*owner])
    }

    /// The only owner of an object, if it does not go before that.
    fn waiting_owner(&self, at: usize) -> Option<usize> {
        let [owner] = &self.objects[at].owners[..] else { return None };
        match self.fate(at, owner) {
            Fate::Owner(about) if owner.blocks => Some(about),
            _ => None,
        }
    }

    /// Whether a reference of this object to that one may stay though that one is gone.
    pub(super) fn may_dangle(&self, at: usize, uid_of: usize) -> bool {
        self.owners(at).any(|it| it.about == uid_of && self.fate(at, it) == Fate::Held)
    }
}

/// The kind that a lie about this kind names.
pub(super) fn other_kind(kind: usize) -> usize {
    (kind + 1) % 3
}

fn can_own(owner: Option<&str>, dependent: Option<&str>) -> bool {
    owner.is_none() || owner == dependent
}
