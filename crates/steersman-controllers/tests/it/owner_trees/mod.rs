//! Trees of owners that are deleted in the three ways: nothing is left of them, and nothing is
//! deleted that somebody holds, whatever lies stand in references.
//!
//! The oracle reads what the store was written, and trusts nobody. `STEERSMAN_SEED=7` runs one seed
//! only; `cargo xtask soak` sweeps over many, and over trees of ten thousand.

mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PropagationPolicy};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta};
use serde_json::{Value, json};
use steersman_store::{RangeRequest, Store, WatchRequest};
use steersman_testkit::{Cluster, Prepared, Settings};
use tokio_util::task::AbortOnDropHandle;

use crate::garbage::boats;
use crate::objects::object;
use tree::{KINDS, Lie, Planned, Ref, Shape, Tree, other_kind};

/// Seeds and sizes in the tests.
const SEEDS: u64 = 9;
const SMALL: usize = 40;
const LARGE: usize = 300;
/// And where the soak runs.
const HUGE: usize = 10_000;

/// In so much time everything has happened.
const SETTLED: Duration = Duration::from_secs(20);

const SHAPES: [Shape; 3] = [Shape::Deep, Shape::Wide, Shape::Tangled];
const MODES: [PropagationPolicy; 3] =
    [PropagationPolicy::Foreground, PropagationPolicy::Background, PropagationPolicy::Orphan];

/// A cluster in which only the garbage collector runs, with the kinds and namespaces of the trees.
static GROUND: LazyLock<Prepared> = LazyLock::new(|| {
    let which = "garbage-collector-controller".parse().unwrap();
    let settings = Settings { nodes: 0, which, ..Settings::default() };
    Prepared::new(settings, async |cluster| {
        for name in ["a", "b"] {
            let namespace: Namespace = object(json!({"metadata": {"name": name}}));
            cluster.client().create(&namespace).await.unwrap();
        }
        cluster.define(&boats(&[("v1", true)])).await.unwrap();
    })
});

/// How many seeds the soak wants, where it runs.
fn many_seeds() -> Option<u64> {
    std::env::var("STEERSMAN_SEEDS").ok().map(|many| many.parse().unwrap())
}

#[test]
fn of_a_tree_that_is_deleted_stays_what_somebody_holds_and_nothing_else() {
    let one = std::env::var("STEERSMAN_SEED").ok().map(|seed| seed.parse().unwrap());
    let seeds = one.map_or(0..many_seeds().unwrap_or(SEEDS), |seed| seed..seed + 1);
    for seed in seeds {
        let shape = SHAPES[usize::try_from(seed % 3).unwrap()];
        let mode = &MODES[usize::try_from(seed / 3 % 3).unwrap()];
        GROUND.run(async |cluster| check(&cluster, seed, shape, mode, SMALL).await);
    }
}

#[test]
fn of_a_large_tree_that_is_deleted_stays_what_somebody_holds() {
    let size = if many_seeds().is_some() { HUGE } else { LARGE };
    let all = SHAPES.iter().flat_map(|shape| MODES.iter().map(move |mode| (*shape, mode)));
    let runs: Vec<_> = if size == HUGE { all.collect() } else { all.take(1).collect() };
    for (shape, mode) in runs {
        GROUND.run(async |cluster| check(&cluster, 1, shape, mode, size).await);
    }
}

/// Grows a tree, deletes its roots, and compares what happened with what must have.
async fn check(cluster: &Cluster, seed: u64, shape: Shape, mode: &PropagationPolicy, size: usize) {
    let told = format!("STEERSMAN_SEED={seed} {shape:?} {mode:?} {size}");
    let tree = Tree::grow(seed, shape, size);
    let log = Deletions::follow(cluster).await;
    let mut grove = Grove { cluster, uids: Vec::new() };
    grove.plant(&tree).await;
    cluster.advance(SETTLED).await;
    let liars = tree.liars();
    assert_eq!(log.names(), names(&liars), "{told}: gone before anything was deleted");
    for root in tree.roots().filter(|root| !liars[*root]) {
        grove.delete(&tree.objects[root], root, mode).await;
    }
    cluster.advance(SETTLED).await;
    let gone = tree.gone(*mode != PropagationPolicy::Orphan);
    assert_eq!(log.names(), names(&gone), "{told}: gone in the end");
    log.check_each_once(&told);
    if *mode == PropagationPolicy::Foreground {
        log.check_order(&tree, &liars, &gone, &told);
    }
    grove.check_references(&tree, &gone, &told).await;
}

fn name(at: usize) -> String {
    format!("o{at}")
}

/// The names of those for which this is true.
fn names(which: &[bool]) -> BTreeSet<String> {
    (0..which.len()).filter(|at| which[*at]).map(name).collect()
}

fn api_resource(kind: usize) -> ApiResource {
    let (api_version, kind, plural, _) = KINDS[kind];
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

/// A tree in a cluster.
struct Grove<'a> {
    cluster: &'a Cluster,
    uids: Vec<String>,
}

impl Grove<'_> {
    fn api(&self, planned: &Planned) -> kube::Api<DynamicObject> {
        let (client, resource) = (self.cluster.client().kube().clone(), api_resource(planned.kind));
        match planned.namespace {
            Some(namespace) => kube::Api::namespaced_with(client, namespace, &resource),
            None => kube::Api::all_with(client, &resource),
        }
    }

    async fn plant(&mut self, tree: &Tree) {
        for (at, planned) in tree.objects.iter().enumerate() {
            let owners: Vec<Value> =
                planned.owners.iter().map(|owner| self.reference(tree, owner)).collect();
            let mut seedling = DynamicObject::new(&name(at), &api_resource(planned.kind));
            seedling.metadata.owner_references = serde_json::from_value(json!(owners)).unwrap();
            let planted = self.api(planned).create(&Default::default(), &seedling).await.unwrap();
            self.uids.push(planted.metadata.uid.unwrap());
        }
        for (root, owner) in &tree.circles {
            let owners = json!({"metadata": {"ownerReferences": [self.reference(tree, owner)]}});
            let api = self.api(&tree.objects[*root]);
            api.patch(&name(*root), &PatchParams::default(), &Patch::Merge(owners)).await.unwrap();
        }
    }

    fn reference(&self, tree: &Tree, owner: &Ref) -> Value {
        let kind = tree.objects[owner.about].kind;
        let kind = if owner.lie == Some(Lie::Kind) { other_kind(kind) } else { kind };
        let mut reference = json!({
            "apiVersion": KINDS[kind].0,
            "kind": KINDS[kind].1,
            "name": name(owner.about),
            "uid": self.uids[owner.about],
            "blockOwnerDeletion": owner.blocks,
        });
        match owner.lie {
            Some(Lie::Uid) => reference["uid"] = format!("not-{}", self.uids[owner.about]).into(),
            Some(Lie::Name) => reference["name"] = "nobody".into(),
            Some(Lie::Unserved) => reference["apiVersion"] = "ghosts.example.org/v1".into(),
            Some(Lie::Kind) | None => {}
        }
        reference
    }

    async fn delete(&self, planned: &Planned, at: usize, mode: &PropagationPolicy) {
        let params =
            DeleteParams { propagation_policy: Some(mode.clone()), ..DeleteParams::default() };
        match self.api(planned).delete(&name(at), &params).await {
            // It belonged to another root, and went with that.
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            deleted => drop(deleted.unwrap()),
        }
    }

    /// Fails if what is left still refers to what is gone.
    async fn check_references(&self, tree: &Tree, gone: &[bool], told: &str) {
        let positions: BTreeMap<&str, usize> =
            self.uids.iter().enumerate().map(|(at, uid)| (uid.as_str(), at)).collect();
        for kind in 0..KINDS.len() {
            let client = self.cluster.client().kube().clone();
            let api: kube::Api<PartialObjectMeta<DynamicObject>> =
                kube::Api::all_with(client, &api_resource(kind));
            for object in api.list_metadata(&ListParams::default()).await.unwrap() {
                let uid = object.metadata.uid.as_deref().unwrap();
                let Some(at) = positions.get(uid).copied() else { continue };
                for owner in object.metadata.owner_references.into_iter().flatten() {
                    let owner = positions.get(owner.uid.trim_start_matches("not-")).copied();
                    let owner = owner.expect("all references are about somebody");
                    let fine = !gone[owner] || tree.may_dangle(at, owner);
                    assert!(fine, "{told}: {} still refers to {}", name(at), name(owner));
                }
            }
        }
    }
}

/// The objects of a tree that were removed from the store, in order.
struct Deletions {
    names: Arc<Mutex<Vec<String>>>,
    _follows: AbortOnDropHandle<()>,
}

impl Deletions {
    async fn follow(cluster: &Cluster) -> Self {
        let store = cluster.inner().store().clone();
        let now = store.range(RangeRequest { limit: 1, ..RangeRequest::default() }).await.unwrap();
        let request = WatchRequest { prefix: "/registry/".into(), after: now.revision };
        let mut watch = store.watch(request).await.unwrap();
        let names = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&names);
        let follows = tokio::spawn(async move {
            loop {
                let events = watch.next().await.expect("nothing is compacted in so short a time");
                let removed = events.iter().filter(|event| event.current.is_none());
                let names = removed.filter_map(|event| event.key.rsplit('/').next());
                let ours = names.filter(|name| name.strip_prefix('o').is_some_and(is_number));
                noted.lock().unwrap().extend(ours.map(str::to_owned));
            }
        });
        Self { names, _follows: AbortOnDropHandle::new(follows) }
    }

    fn names(&self) -> BTreeSet<String> {
        self.names.lock().unwrap().iter().cloned().collect()
    }

    fn check_each_once(&self, told: &str) {
        let removed = self.names.lock().unwrap().len();
        assert_eq!(removed, self.names().len(), "{told}: something was removed twice");
    }

    /// Fails if an owner went before what it waited for.
    fn check_order(&self, tree: &Tree, liars: &[bool], gone: &[bool], told: &str) {
        let removed = self.names.lock().unwrap();
        let places: BTreeMap<&str, usize> =
            removed.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
        let together = |at: usize| gone[at] && !liars[at];
        for (at, owner) in tree.awaited().filter(|(at, owner)| together(*at) && together(*owner)) {
            let (at, owner) = (name(at), name(owner));
            assert!(places[&*at] < places[&*owner], "{told}: {owner} went before {at}");
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
