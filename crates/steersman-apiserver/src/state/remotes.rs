//! The servers elsewhere that answer for groups and versions, because an APIService says so: where
//! they are, whether they are available, and what they last told of themselves.
//!
//! Readers take the whole table as it is. Without such servers a request pays one atomic load.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Map, Value};
use steersman_store::Revision;
use tokio::sync::{Notify, OnceCell};
use tokio_util::sync::CancellationToken;

use crate::identity::Identity;
use crate::registry;
use crate::request::Segment;
use crate::webhook_client::{ClientIdentity, Target};

/// All of them, by the names of their APIServices, such as `v1beta1.metrics.k8s.io`.
pub(crate) type Table = BTreeMap<String, Arc<Remote>>;

/// The servers elsewhere.
#[derive(Default)]
pub(crate) struct Remotes {
    table: RwLock<Arc<Table>>,
    any: AtomicBool,
    /// The aggregated discovery of groups and of core, as it was last told.
    pub(crate) discovery: [Mutex<Option<Discovery>>; 2],
    /// Who vouches for this server as the one in front of them.
    pub(crate) front: OnceCell<Front>,
}

/// Aggregated discovery, and whom it was true of.
pub(crate) struct Discovery {
    /// Not held: a table of thousands of definitions goes when there is a newer one.
    registry: Weak<registry::Table>,
    remotes: Arc<Table>,
    told: Vec<Arc<Told>>,
    document: Bytes,
}

impl Discovery {
    /// The document that was written last, if it is still true, or as it is written now.
    pub(crate) fn get_or_write(
        kept: &Mutex<Option<Self>>,
        registry: &Arc<registry::Table>,
        remotes: &Arc<Table>,
        write: impl FnOnce() -> Bytes,
    ) -> Bytes {
        let lock = || kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Before it is written: who tells something meanwhile has it written again.
        let told: Vec<_> = remotes.values().map(|remote| remote.told()).collect();
        let is_true = |known: &&Self| {
            known.registry.as_ptr() == Arc::as_ptr(registry)
                && Arc::ptr_eq(&known.remotes, remotes)
                && known.told.iter().zip(&told).all(|(known, told)| Arc::ptr_eq(known, told))
        };
        let known = lock().as_ref().filter(is_true).map(|known| known.document.clone());
        known.unwrap_or_else(|| {
            let document = write();
            let (registry, remotes) = (Arc::downgrade(registry), Arc::clone(remotes));
            *lock() = Some(Self { registry, remotes, told, document: document.clone() });
            document
        })
    }
}

/// What this server shows of itself to those behind it.
pub(crate) struct Front {
    /// The authority that the others are told to trust.
    pub(crate) authority: Identity,
    pub(crate) client: ClientIdentity,
}

/// A server elsewhere, for one version of a group.
pub(crate) struct Remote {
    /// The name of its APIService.
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) version: String,
    /// What the APIService asks for.
    pub(crate) spec: Value,
    pub(crate) target: Arc<Target>,
    /// Whether it belongs to this server, and is there whenever this one is.
    pub(crate) is_resident: bool,
    /// The latest revision of the APIService that is known.
    revision: AtomicU64,
    available: AtomicBool,
    told: RwLock<Arc<Told>>,
    /// Wakes whoever looks after it.
    pub(crate) look: Notify,
    /// Ends that.
    pub(crate) ended: CancellationToken,
}

/// What a server told of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// Whether it told so when it was last asked. What it told before is not shown then.
    pub(crate) current: bool,
    /// Its resources, as aggregated discovery has them.
    pub(crate) resources: Option<Value>,
    /// Its document of OpenAPI 3.
    pub(crate) openapi: Option<OpenApi>,
    /// What concerns the version of its document of OpenAPI 2.
    pub(crate) openapi_v2: Option<OpenApiV2>,
}

/// A part of a document of OpenAPI 2, and the name of that edition.
#[derive(Clone, Debug)]
pub(crate) struct OpenApiV2 {
    pub(crate) etag: Option<HeaderValue>,
    pub(crate) paths: Arc<Map<String, Value>>,
    pub(crate) definitions: Arc<Map<String, Value>>,
}

/// A document of OpenAPI 3, and what its server calls this edition.
#[derive(Clone, Debug)]
pub(crate) struct OpenApi {
    pub(crate) url: String,
    pub(crate) document: Bytes,
}

impl Remote {
    /// What an APIService with a service says at a revision.
    pub(crate) fn new(name: &str, spec: &Value, target: Target, revision: Revision) -> Self {
        let text = |field: &str| spec[field].as_str().unwrap_or("").to_owned();
        Self {
            name: name.to_owned(),
            group: text("group"),
            version: text("version"),
            spec: spec.clone(),
            target: Arc::new(target),
            is_resident: false,
            revision: AtomicU64::new(revision.0),
            available: AtomicBool::new(false),
            told: RwLock::default(),
            look: Notify::new(),
            ended: CancellationToken::new(),
        }
    }

    /// The same, which belongs to this server and has these resources.
    pub(crate) fn resident(self, resources: Value) -> Self {
        self.set_available(true);
        self.tell(Told { current: true, resources: Some(resources), ..Told::default() });
        Self { is_resident: true, ..self }
    }

    /// Whether it belongs to this server, which knows what it has.
    pub(crate) fn is_known_beforehand(&self) -> bool {
        let has_any = |told: &Value| told.as_array().is_some_and(|all| !all.is_empty());
        self.is_resident && self.told().resources.as_ref().is_some_and(has_any)
    }

    /// Where its group and its version stand among others.
    pub(crate) fn priorities(&self) -> (i64, i64) {
        let number = |field: &str| self.spec[field].as_i64().unwrap_or(0);
        (number("groupPriorityMinimum"), number("versionPriority"))
    }

    /// The path below which it answers.
    pub(crate) fn base(&self) -> String {
        match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }

    pub(crate) fn is_available(&self) -> bool {
        self.available.load(Ordering::Relaxed)
    }

    pub(crate) fn set_available(&self, available: bool) {
        self.available.store(available, Ordering::Relaxed);
    }

    pub(crate) fn told(&self) -> Arc<Told> {
        Arc::clone(&self.told.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn tell(&self, told: Told) {
        *self.told.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(told);
    }

    fn revision(&self) -> Revision {
        Revision(self.revision.load(Ordering::Relaxed))
    }
}

impl Remotes {
    /// All of them.
    pub(crate) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Lets whoever looks after them look now.
    pub(crate) fn look(&self) {
        self.table().values().for_each(|remote| remote.look.notify_one());
    }

    /// The one that answers a path, if it is none of this server's own.
    pub(crate) fn of(&self, path: &[Segment<'_>]) -> Option<Arc<Remote>> {
        if !self.any() {
            return None;
        }
        let (group, version) = match path {
            [api, version, ..] if api == "api" => ("", version),
            [apis, group, version, ..] if apis == "apis" => (&**group, version),
            _ => return None,
        };
        // There are few of them, and every request comes by.
        let is_its = |remote: &&Arc<Remote>| remote.group == group && remote.version == *version;
        self.table().values().find(is_its).cloned()
    }

    /// Whether an APIService asks for the same as is known. Whether it is available is taken over
    /// then, unless that is no news.
    pub(crate) fn knows(&self, name: &str, spec: &Value, available: bool, at: Revision) -> bool {
        let table = self.table();
        let Some(known) = table.get(name).filter(|known| known.spec == *spec) else { return false };
        if known.revision.fetch_max(at.0, Ordering::Relaxed) < at.0 {
            known.set_available(available || known.is_resident);
        }
        true
    }

    /// Takes in a new one. Older news change nothing; false then.
    pub(crate) fn install(&self, remote: &Arc<Remote>) -> bool {
        self.change(|table| {
            let old = table.get(&remote.name);
            if old.is_some_and(|old| old.revision() > remote.revision()) {
                return false;
            }
            if let Some(old) = table.insert(remote.name.clone(), Arc::clone(remote)) {
                old.ended.cancel();
            }
            true
        })
    }

    /// Forgets the one of an APIService that was removed, or leads nowhere else, at a revision.
    pub(crate) fn remove(&self, name: &str, at: Revision) {
        if !self.any() {
            return;
        }
        self.change(|table| {
            if table.get(name).is_some_and(|known| known.revision() <= at)
                && let Some(known) = table.remove(name)
            {
                known.ended.cancel();
            }
        });
    }

    fn change<T>(&self, change: impl FnOnce(&mut Table) -> T) -> T {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let mut new = Table::clone(&table);
        let changed = change(&mut new);
        self.any.store(!new.is_empty(), Ordering::Relaxed);
        *table = Arc::new(new);
        changed
    }
}

impl Drop for Remotes {
    /// Nobody looks after them once the server is gone.
    fn drop(&mut self) {
        self.table().values().for_each(|remote| remote.ended.cancel());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn discovery_is_written_again_when_something_of_it_has_changed_and_only_then() {
        let remotes = Remotes::default();
        let add = |name: &str| {
            let remote = Remote::new(name, &json!({}), Target::at("", Vec::new()), Revision(1));
            remotes.install(&Arc::new(remote));
        };
        let registry = Arc::<registry::Table>::default();
        let written = std::cell::Cell::new(0);
        let ask = |registry: &Arc<registry::Table>| {
            Discovery::get_or_write(&remotes.discovery[0], registry, &remotes.table(), || {
                written.set(written.get() + 1);
                Bytes::from(written.get().to_string())
            })
        };
        add("v1.a");
        assert_eq!([ask(&registry), ask(&registry)], ["1", "1"]);
        remotes.table()["v1.a"].tell(Told { current: true, ..Told::default() });
        assert_eq!([ask(&registry), ask(&registry)], ["2", "2"]);
        add("v1.b");
        assert_eq!([ask(&registry), ask(&registry)], ["3", "3"]);
        drop(registry);
        let registry = Arc::default();
        assert_eq!([ask(&registry), ask(&registry)], ["4", "4"]);
    }
}
