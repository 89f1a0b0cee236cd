//! What is served: the built-in resources and those of custom resource definitions.
//!
//! Readers take the whole [`Table`] as it is; changes build a new one and swap it in. No lock is
//! held while anything is awaited.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use bytes::Bytes;
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use steersman_store::Revision;
use tokio_util::sync::CancellationToken;

use steersman_rules::kinds;
use steersman_rules::resource::Resource;

use crate::runtime_config::RuntimeConfig;

/// The resources that are served now.
#[derive(Debug)]
pub struct Registry {
    table: RwLock<Arc<Table>>,
    /// Cancelled when what a definition says is no longer served, or served differently, by the
    /// definition's name.
    gone: Mutex<HashMap<String, CancellationToken>>,
    /// When definitions were removed that may yet be told of: what is older is not news. Locked
    /// while the table is, never before it.
    removed: Mutex<HashMap<String, Revision>>,
}

/// The resource of definitions.
const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// How many removals are remembered. News are late by moments, so the last ones do.
const REMOVED_MAX: usize = 1024;

/// The resources that were served at one moment.
#[derive(Debug, Default)]
pub struct Table {
    /// By group, version and plural. A new one is made for each definition, so it has no keys of its
    /// own.
    by_path: HashTable<Arc<Resource>>,
    hasher: DefaultHashBuilder,
    /// In the order of discovery: built-in ones first, then custom ones by name.
    builtin: Arc<Vec<Arc<Resource>>>,
    /// What custom resource definitions add, by the definition's name.
    custom: BTreeMap<String, Arc<Custom>>,
    /// Discovery documents, made when first asked for.
    pub(crate) discovery: [OnceLock<Bytes>; 2],
}

/// What one custom resource definition adds.
#[derive(Clone, Debug)]
pub struct Custom {
    /// The revision of the definition; older news do not replace newer.
    pub revision: Revision,
    /// Its served versions, the preferred one first.
    pub resources: Vec<Arc<Resource>>,
    /// The version in which instances are stored, served or not.
    pub storage: Arc<Resource>,
    /// Whether the definition is being deleted: nothing can be created any more.
    pub terminating: bool,
    /// Whether it is held until its instances are gone.
    pub held: bool,
    /// The names that it has.
    pub accepted: Accepted,
    /// Whether it asks for names that it has not got.
    pub waits: bool,
    /// A digest of what the definition says, its status apart.
    pub says: u64,
}

/// The names that a definition has, which no other of its group may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// In paths and for people: plural, singular and short names.
    pub resources: Vec<String>,
    /// In documents: of objects and of lists.
    pub kinds: Vec<String>,
}

impl Accepted {
    /// Whether there is a name here that is not among others.
    pub(crate) fn has_more_than(&self, other: &Self) -> bool {
        let missing =
            |ours: &[String], theirs: &[String]| ours.iter().any(|it| !theirs.contains(it));
        missing(&self.resources, &other.resources) || missing(&self.kinds, &other.kinds)
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// Serves the built-in resources, but for those that Kubernetes serves on request only.
    pub fn new() -> Self {
        Self::serving(&RuntimeConfig::default())
    }

    /// Serves the built-in resources, and those of them that are asked for.
    pub fn serving(asked: &RuntimeConfig) -> Self {
        let builtin = kinds::all_and(|it| asked.serves(&it.group, &it.version));
        let builtin = builtin.into_iter().map(Arc::new).collect();
        let table = Table::of(Arc::new(builtin), BTreeMap::new());
        Self {
            table: RwLock::new(Arc::new(table)),
            gone: Mutex::default(),
            removed: Mutex::default(),
        }
    }

    /// Serves nothing but definitions, which add to it.
    pub(crate) fn of_definitions() -> Self {
        let registry = Self::new();
        registry.retain_builtin(|resource| resource.qualified() == DEFINITIONS);
        registry
    }

    /// Serves nothing any more but what definitions have added.
    pub(crate) fn hide_builtin(&self) {
        self.retain_builtin(|_| false);
    }

    fn retain_builtin(&self, keep: impl Fn(&Resource) -> bool) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let kept = table.builtin.iter().filter(|resource| keep(resource)).cloned().collect();
        *table = Arc::new(Table::of(Arc::new(kept), table.custom.clone()));
    }

    /// What is served now.
    pub fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Serves, or serves differently, what a definition says. Older news change nothing.
    pub fn install(&self, definition: &str, custom: Custom) {
        let mut otherwise = false;
        self.change(|customs| {
            let newer = customs.get(definition).is_none_or(|old| old.revision <= custom.revision);
            let removed = self.removed().get(definition).is_some_and(|at| *at >= custom.revision);
            if newer && !removed {
                let says = custom.says;
                let old = customs.insert(definition.to_owned(), Arc::new(custom));
                otherwise = old.is_some_and(|old| old.says != says);
            }
        });
        if otherwise {
            self.end_watches(definition);
        }
    }

    /// Ends the watches of what a definition said: they know it as it was.
    fn end_watches(&self, definition: &str) {
        if let Some(gone) = self.gone().remove(definition) {
            gone.cancel();
        }
    }

    /// Whether what a definition says at a revision is no news.
    pub(crate) fn knows(&self, definition: &str, revision: Revision) -> bool {
        let table = self.table();
        table.custom(definition).is_some_and(|custom| custom.revision >= revision)
            || self.removed().get(definition).is_some_and(|at| *at >= revision)
    }

    /// Forgets everything of definitions that was told after a revision, for there is another
    /// history since.
    pub(crate) fn forget_after(&self, revision: Revision) {
        let mut forgotten = Vec::new();
        self.change(|customs| {
            let later = customs.extract_if(.., |_, custom| custom.revision > revision);
            forgotten = later.map(|(definition, _)| definition).collect();
            self.removed().retain(|_, at| *at <= revision);
        });
        forgotten.iter().for_each(|definition| self.end_watches(definition));
    }

    /// Stops to serve what a definition said that was removed at a revision. What a namesake
    /// says that was written since stays.
    pub fn remove(&self, definition: &str, at: Revision) {
        let mut removed = false;
        self.change(|customs| {
            removed = customs.get(definition).is_some_and(|custom| custom.revision <= at);
            if removed {
                customs.remove(definition);
            }
            remember(&mut self.removed(), definition, at);
        });
        if removed {
            self.end_watches(definition);
        }
    }

    /// Tells when a resource is no longer served as it is; never for built-in ones.
    pub fn until_gone(&self, resource: &Arc<Resource>) -> CancellationToken {
        let definition = resource.qualified();
        // Locked before looking: a change that comes after the look finds the token.
        let mut tokens = self.gone();
        let table = self.table();
        let served = table.get(&resource.group, &resource.version, &resource.plural);
        let is_served = served.is_some_and(|served| Arc::ptr_eq(served, resource));
        if is_served && table.custom(&definition).is_some() {
            return tokens.entry(definition).or_default().clone();
        }
        let gone = CancellationToken::new();
        if !is_served {
            gone.cancel();
        }
        gone
    }

    fn removed(&self) -> MutexGuard<'_, HashMap<String, Revision>> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gone(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Arc<Custom>>)) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let mut custom = table.custom.clone();
        change(&mut custom);
        *table = Arc::new(Table::of(Arc::clone(&table.builtin), custom));
    }
}

impl Table {
    fn of(builtin: Arc<Vec<Arc<Resource>>>, custom: BTreeMap<String, Arc<Custom>>) -> Self {
        let mut table = Self { builtin, custom, ..Self::default() };
        let hasher = &table.hasher;
        let hash = |resource: &Arc<Resource>| hasher.hash_one(path(resource));
        let count = table.resources().count();
        let mut by_path: HashTable<Arc<Resource>> = HashTable::with_capacity(count);
        for resource in table.resources() {
            let is_same = |other: &Arc<Resource>| path(other) == path(resource);
            // What comes later counts.
            match by_path.entry(hash(resource), is_same, hash) {
                Entry::Occupied(mut known) => *known.get_mut() = Arc::clone(resource),
                Entry::Vacant(free) => {
                    free.insert(Arc::clone(resource));
                }
            }
        }
        table.by_path = by_path;
        table
    }

    /// The resource of a path.
    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let asked = [group, version, plural];
        self.by_path.find(self.hasher.hash_one(asked), |resource| path(resource) == asked)
    }

    /// All resources, in the order of discovery.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let custom = self.custom.values().flat_map(|custom| &custom.resources);
        self.builtin.iter().chain(custom)
    }

    /// The resources of definitions, in all versions that are served or stored.
    pub(crate) fn defined(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.custom.values().flat_map(|custom| custom.resources.iter().chain([&custom.storage]))
    }

    /// Whether a version of a group has any resource.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.resources().any(|resource| resource.group == group && resource.version == version)
    }

    /// What a definition adds.
    pub fn custom(&self, definition: &str) -> Option<&Custom> {
        self.custom.get(definition).map(AsRef::as_ref)
    }

    /// The names of all definitions.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &str> {
        self.custom.keys().map(String::as_str)
    }

    /// The definitions that are being deleted and held for their instances.
    pub(crate) fn held(&self) -> impl Iterator<Item = &str> {
        let leaving = self.custom.iter().filter(|(_, custom)| custom.held);
        leaving.map(|(name, _)| name.as_str())
    }

    /// The groups with definitions that wait for names.
    pub(crate) fn waiting_groups(&self) -> impl Iterator<Item = &str> {
        let waiting = self.custom.values().filter(|custom| custom.waits);
        waiting.map(|custom| custom.storage.group.as_ref())
    }

    /// The definitions of a group that wait for names.
    pub(crate) fn waiting_in_group(&self, group: &str) -> Vec<String> {
        let waiting = self.custom.iter();
        let waiting = waiting.filter(|(_, custom)| custom.waits && custom.storage.group == group);
        waiting.map(|(name, _)| name.clone()).collect()
    }

    /// The names of other definitions in a group.
    pub(crate) fn accepted_in_group<'a>(
        &'a self,
        group: &'a str,
        definition: &'a str,
    ) -> impl Iterator<Item = &'a Accepted> {
        let others = self.custom.iter().filter(move |(name, _)| *name != definition);
        let others = others.filter(move |(_, custom)| custom.storage.group == group);
        others.map(|(_, custom)| &custom.accepted)
    }

    /// The built-in resources of a group.
    pub(crate) fn builtin_in_group(&self, group: &str) -> impl Iterator<Item = &Arc<Resource>> {
        self.builtin.iter().filter(move |resource| resource.group == group)
    }
}

/// Where a resource is found.
fn path(resource: &Resource) -> [&str; 3] {
    [&resource.group, &resource.version, &resource.plural]
}

/// Notes a removal, and forgets the one that is longest ago where there are too many.
fn remember(removed: &mut HashMap<String, Revision>, definition: &str, at: Revision) {
    let known = removed.entry(definition.to_owned()).or_default();
    *known = at.max(*known);
    if removed.len() > REMOVED_MAX {
        let oldest = removed.iter().min_by_key(|(_, at)| **at).map(|(name, _)| name.clone());
        oldest.and_then(|name| removed.remove(&name));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn who_watches_while_a_resource_goes_is_told_that_it_is_gone() {
        let registry = Registry::new();
        let storage = Arc::clone(registry.table().get("", "v1", "configmaps").unwrap());
        let resource = Resource { group: "example.com".into(), ..(*storage).clone() };
        let definition = resource.qualified();
        let resource = Arc::new(resource);
        for revision in 1..500 {
            let resources = vec![Arc::clone(&resource)];
            let storage = Arc::clone(&resource);
            let revision = Revision(revision);
            let custom = Custom {
                revision,
                resources,
                storage,
                terminating: false,
                held: false,
                accepted: Accepted::default(),
                waits: false,
                says: 0,
            };
            registry.install(&definition, custom);
            let start = Barrier::new(2);
            let gone = std::thread::scope(|scope| {
                let watch = scope.spawn(|| {
                    start.wait();
                    registry.until_gone(&resource)
                });
                start.wait();
                registry.remove(&definition, revision);
                watch.join().unwrap()
            });
            assert!(gone.is_cancelled(), "round {}", revision.0);
        }
    }

    #[test]
    fn a_late_removal_leaves_the_namesake_that_was_written_since() {
        let registry = Registry::new();
        let storage = Arc::new(kinds::all().remove(0));
        let custom = |revision: u64| Custom {
            revision: Revision(revision),
            resources: Vec::new(),
            storage: Arc::clone(&storage),
            terminating: false,
            held: false,
            accepted: Accepted::default(),
            waits: false,
            says: 0,
        };
        registry.install("widgets.example.com", custom(7));
        registry.remove("widgets.example.com", Revision(6));
        assert!(registry.table().custom("widgets.example.com").is_some());
        registry.remove("widgets.example.com", Revision(8));
        assert!(registry.table().custom("widgets.example.com").is_none());
        registry.install("widgets.example.com", custom(8));
        assert!(registry.table().custom("widgets.example.com").is_none(), "late news");
        assert!(registry.knows("widgets.example.com", Revision(8)));
        registry.install("widgets.example.com", custom(9));
        assert!(registry.table().custom("widgets.example.com").is_some());
        registry.forget_after(Revision(4));
        registry.install("widgets.example.com", custom(5));
        assert!(registry.table().custom("widgets.example.com").is_some(), "another history");
    }

    #[test]
    fn no_more_removals_are_remembered_than_the_bound() {
        let mut removed = HashMap::new();
        for revision in 1..=REMOVED_MAX as u64 + 10 {
            remember(&mut removed, &format!("d{revision}"), Revision(revision));
        }
        assert_eq!(removed.len(), REMOVED_MAX);
        assert!(!removed.contains_key("d10") && removed.contains_key("d11"));
    }
}
