//! What is served: the built-in resources and those of custom resource definitions.
//!
//! Readers take the whole [`Table`] as it is; a change copies it if somebody reads it just then.
//! No lock is held while anything is awaited.

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
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// In the order of discovery.
    builtin: Arc<Vec<Arc<Resource>>>,
    builtin_paths: Arc<Paths>,
    /// What custom resource definitions add, by the definition's name, in the order of discovery.
    custom: BTreeMap<Arc<str>, Arc<Custom>>,
    custom_paths: Paths,
    /// Discovery documents, made when first asked for.
    pub(crate) discovery: [OnceLock<Bytes>; 2],
}

/// Resources by group, version and plural.
#[derive(Clone, Debug, Default)]
struct Paths {
    /// It is copied as a whole, so it has no keys of its own.
    resources: HashTable<Arc<Resource>>,
    hasher: DefaultHashBuilder,
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
        let builtin: Vec<_> = builtin.into_iter().map(Arc::new).collect();
        let mut table = Table::default();
        table.build_in(builtin);
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
        self.change(|table| {
            let kept = table.builtin.iter().filter(|resource| keep(resource)).cloned().collect();
            table.build_in(kept);
        });
    }

    /// What is served now.
    pub fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Serves, or serves differently, what a definition says. Older news change nothing.
    pub fn install(&self, definition: &str, custom: Custom) {
        let mut otherwise = false;
        self.change(|table| {
            let old = table.custom.get(definition);
            let newer = old.is_none_or(|old| old.revision <= custom.revision);
            let removed = self.removed().get(definition).is_some_and(|at| *at >= custom.revision);
            if newer && !removed {
                otherwise = old.is_some_and(|old| old.says != custom.says);
                table.define(definition, custom);
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
        let mut forgotten: Vec<Arc<str>> = Vec::new();
        self.change(|table| {
            let later = table.custom.iter().filter(|(_, custom)| custom.revision > revision);
            forgotten = later.map(|(definition, _)| Arc::clone(definition)).collect();
            forgotten.iter().for_each(|definition| table.undefine(definition));
            self.removed().retain(|_, at| *at <= revision);
        });
        forgotten.iter().for_each(|definition| self.end_watches(definition));
    }

    /// Stops to serve what a definition said that was removed at a revision. What a namesake
    /// says that was written since stays.
    pub fn remove(&self, definition: &str, at: Revision) {
        let mut removed = false;
        self.change(|table| {
            removed = table.custom(definition).is_some_and(|custom| custom.revision <= at);
            if removed {
                table.undefine(definition);
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

    fn change(&self, change: impl FnOnce(&mut Table)) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let table = Arc::make_mut(&mut table);
        table.discovery = Default::default();
        change(table);
    }
}

impl Paths {
    /// What comes later counts.
    fn insert(&mut self, resource: &Arc<Resource>) {
        let Self { resources, hasher } = self;
        let hash = |resource: &Arc<Resource>| hasher.hash_one(path(resource));
        let is_same = |other: &Arc<Resource>| path(other) == path(resource);
        match resources.entry(hash(resource), is_same, hash) {
            Entry::Occupied(mut known) => *known.get_mut() = Arc::clone(resource),
            Entry::Vacant(free) => {
                free.insert(Arc::clone(resource));
            }
        }
    }

    fn remove(&mut self, resource: &Arc<Resource>) {
        let hash = self.hasher.hash_one(path(resource));
        if let Ok(known) = self.resources.find_entry(hash, |known| Arc::ptr_eq(known, resource)) {
            known.remove();
        }
    }

    fn get(&self, asked: [&str; 3]) -> Option<&Arc<Resource>> {
        if self.resources.is_empty() {
            return None;
        }
        self.resources.find(self.hasher.hash_one(asked), |resource| path(resource) == asked)
    }
}

impl Table {
    fn build_in(&mut self, builtin: Vec<Arc<Resource>>) {
        let mut paths = Paths::default();
        builtin.iter().for_each(|resource| paths.insert(resource));
        self.builtin = Arc::new(builtin);
        self.builtin_paths = Arc::new(paths);
    }

    fn define(&mut self, definition: &str, custom: Custom) {
        self.undefine(definition);
        custom.resources.iter().for_each(|resource| self.custom_paths.insert(resource));
        self.custom.insert(definition.into(), Arc::new(custom));
    }

    fn undefine(&mut self, definition: &str) {
        if let Some(custom) = self.custom.remove(definition) {
            custom.resources.iter().for_each(|resource| self.custom_paths.remove(resource));
        }
    }

    /// The resource of a path.
    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let asked = [group, version, plural];
        self.custom_paths.get(asked).or_else(|| self.builtin_paths.get(asked))
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
    pub fn custom(&self, definition: &str) -> Option<&Arc<Custom>> {
        self.custom.get(definition)
    }

    /// The names of all definitions.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &str> {
        self.custom.keys().map(AsRef::as_ref)
    }

    /// The definitions that are being deleted and held for their instances.
    pub(crate) fn held(&self) -> impl Iterator<Item = &str> {
        let leaving = self.custom.iter().filter(|(_, custom)| custom.held);
        leaving.map(|(name, _)| name.as_ref())
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
        waiting.map(|(name, _)| name.to_string()).collect()
    }

    /// The names of other definitions in a group.
    pub(crate) fn accepted_in_group<'a>(
        &'a self,
        group: &'a str,
        definition: &'a str,
    ) -> impl Iterator<Item = &'a Accepted> {
        let others = self.custom.iter().filter(move |(name, _)| &***name != definition);
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
    fn a_table_that_somebody_reads_stays_as_it_is() {
        let registry = Registry::new();
        let builtin = Arc::clone(registry.table().get("", "v1", "configmaps").unwrap());
        let resource = |version: &str| {
            let group = "example.com".into();
            Arc::new(Resource { group, version: version.to_owned().into(), ..(*builtin).clone() })
        };
        let install = |revision: u64, versions: &[&str]| {
            let resources: Vec<_> = versions.iter().map(|version| resource(version)).collect();
            let custom = Custom {
                revision: Revision(revision),
                storage: Arc::clone(&resources[0]),
                resources,
                terminating: false,
                held: false,
                accepted: Accepted::default(),
                waits: false,
                says: revision,
            };
            registry.install("configmaps.example.com", custom);
        };
        let served = |table: &Table| {
            let is_served =
                |version: &&str| table.get("example.com", version, "configmaps").is_some();
            ["v1", "v2", "v3"].into_iter().filter(is_served).collect::<Vec<_>>()
        };
        install(1, &["v1", "v2"]);
        let read = registry.table();
        install(2, &["v2", "v3"]);
        assert_eq!(
            (served(&read), served(&registry.table())),
            (vec!["v1", "v2"], vec!["v2", "v3"])
        );
        let place = Arc::as_ptr(&registry.table());
        registry.remove("configmaps.example.com", Revision(3));
        assert_eq!(served(&registry.table()), Vec::<&str>::new());
        assert_eq!(Arc::as_ptr(&registry.table()), place, "nobody read it, so nothing is copied");
        assert_eq!(served(&read), ["v1", "v2"]);
        assert!(registry.table().get("", "v1", "configmaps").is_some());
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
