//! What is served: the built-in resources and those of custom resource definitions.
//!
//! Readers take the whole [`Table`] as it is; changes build a new one and swap it in. No lock is
//! held while anything is awaited.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use bytes::Bytes;
use steersman_store::Revision;
use tokio_util::sync::CancellationToken;

use crate::openapi::Published;
use crate::resource::{Resource, builtin};

/// The resources that are served now.
#[derive(Debug)]
pub struct Registry {
    table: RwLock<Arc<Table>>,
    /// The OpenAPI documents' parts of what definitions add.
    pub(crate) openapi: Published,
    /// Cancelled when what a definition says is no longer served, by the definition's name.
    gone: Mutex<HashMap<String, CancellationToken>>,
}

/// The resources that were served at one moment.
#[derive(Debug, Default)]
pub struct Table {
    /// By `group/version/plural`.
    by_path: HashMap<String, Arc<Resource>>,
    /// In the order of discovery: built-in ones first, then custom ones by name.
    builtin: Arc<Vec<Arc<Resource>>>,
    /// What custom resource definitions add, by the definition's name.
    custom: BTreeMap<String, Custom>,
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
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// Serves the built-in resources.
    pub fn new() -> Self {
        let builtin = builtin::all().into_iter().map(Arc::new).collect();
        let table = Table::of(Arc::new(builtin), BTreeMap::new());
        Self {
            table: RwLock::new(Arc::new(table)),
            openapi: Published::default(),
            gone: Mutex::default(),
        }
    }

    /// What is served now.
    pub fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Serves, or serves differently, what a definition says. Older news change nothing.
    pub fn install(&self, definition: &str, custom: Custom) {
        self.change(|customs| {
            let newer = customs.get(definition).is_none_or(|old| old.revision <= custom.revision);
            if newer {
                customs.insert(definition.to_owned(), custom);
            }
        });
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
        });
        if removed && let Some(gone) = self.gone().remove(definition) {
            gone.cancel();
        }
    }

    /// Tells when a resource is no longer served; never for built-in ones.
    pub fn until_gone(&self, resource: &Resource) -> CancellationToken {
        let definition = resource.qualified();
        // Locked before looking: a removal that comes after the look finds the token.
        let mut tokens = self.gone();
        let table = self.table();
        if table.custom(&definition).is_some() {
            return tokens.entry(definition).or_default().clone();
        }
        let gone = CancellationToken::new();
        if table.get(&resource.group, &resource.version, &resource.plural).is_none() {
            gone.cancel();
        }
        gone
    }

    fn gone(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Custom>)) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let mut custom = table.custom.clone();
        change(&mut custom);
        *table = Arc::new(Table::of(Arc::clone(&table.builtin), custom));
    }
}

impl Table {
    fn of(builtin: Arc<Vec<Arc<Resource>>>, custom: BTreeMap<String, Custom>) -> Self {
        let mut table = Self { builtin, custom, ..Self::default() };
        let by_path = table.resources().map(|resource| {
            let path = path(&resource.group, &resource.version, &resource.plural);
            (path, Arc::clone(resource))
        });
        table.by_path = by_path.collect();
        table
    }

    /// The resource of a path.
    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_path.get(&path(group, version, plural))
    }

    /// All resources, in the order of discovery.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let custom = self.custom.values().flat_map(|custom| &custom.resources);
        self.builtin.iter().chain(custom)
    }

    /// Whether a resource comes from a definition.
    pub fn is_custom(&self, resource: &Resource) -> bool {
        self.custom.contains_key(&resource.qualified())
    }

    /// What a definition adds.
    pub fn custom(&self, definition: &str) -> Option<&Custom> {
        self.custom.get(definition)
    }

    /// The definitions of a group that serve nothing, for example because of their names.
    pub fn unserved_in_group(&self, group: &str) -> Vec<String> {
        let unserved = self
            .custom
            .iter()
            .filter(|(_, custom)| custom.resources.is_empty() && custom.storage.group == group);
        unserved.map(|(name, _)| name.clone()).collect()
    }

    /// The resources of other definitions in a group, and the built-in ones.
    pub fn others_in_group<'a>(
        &'a self,
        group: &'a str,
        definition: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        let custom = self.custom.iter().filter(move |(name, _)| *name != definition);
        let custom = custom.flat_map(|(_, custom)| &custom.resources);
        self.builtin.iter().chain(custom).filter(move |resource| resource.group == group)
    }
}

fn path(group: &str, version: &str, plural: &str) -> String {
    format!("{group}/{version}/{plural}")
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
            let custom = Custom { revision, resources, storage, terminating: false };
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
        let storage = Arc::new(builtin::all().remove(0));
        let custom = |revision: u64| Custom {
            revision: Revision(revision),
            resources: Vec::new(),
            storage: Arc::clone(&storage),
            terminating: false,
        };
        registry.install("widgets.example.com", custom(7));
        registry.remove("widgets.example.com", Revision(6));
        assert!(registry.table().custom("widgets.example.com").is_some());
        registry.remove("widgets.example.com", Revision(8));
        assert!(registry.table().custom("widgets.example.com").is_none());
    }
}
