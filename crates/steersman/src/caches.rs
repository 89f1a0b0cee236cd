//! The caches of a manager: one informer per kind, shared by all its controllers.
//!
//! An informer lives as long as somebody holds it: a controller holds those of the kinds that
//! it named, and when the last one leaves, the watch ends and the memory is given back.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::cache::{Cache, Form, Untyped};
use crate::informer::{self, CacheConfig, CacheSettings, Informer, Running, WatchedKind};
use crate::kind::{Kind, KindId};
use crate::metrics::Metrics;
use crate::object::{AnyObject, Object};
use crate::reflector::Options;

/// Gives out informers, starting each kind's at the first request for it. Cheap to clone.
#[derive(Clone)]
pub struct Caches {
    shared: Arc<Shared>,
}

/// What all clones share.
struct Shared {
    client: kube::Client,
    metrics: Metrics,
    kinds: Mutex<HashMap<KindId, Slot>>,
    /// What kinds for which nothing is said are restricted to; all namespaces if empty.
    namespaces: Mutex<BTreeSet<Arc<str>>>,
}

/// What is known of one kind.
#[derive(Default)]
struct Slot {
    /// How its objects are held, if somebody chose that.
    settings: Option<CacheSettings>,
    /// Its informer, while somebody holds it.
    informer: Weak<Running>,
}

/// A kind as its caches know it, without its type.
#[derive(Clone)]
pub(crate) struct CachedKind {
    id: KindId,
    namespaced: bool,
    watched: WatchedKind,
    /// How its objects are held if nobody chose otherwise.
    settings: CacheSettings,
}

impl CachedKind {
    pub(crate) fn of<K: AnyObject>(kind: &Kind<K>) -> Self {
        Self {
            id: kind.id(),
            namespaced: kind.is_namespaced(),
            watched: WatchedKind::of::<K>(kind.dynamic_type()),
            settings: default_config(kind).into_settings(),
        }
    }

    /// The kind's name, as `Deployment`.
    pub(crate) fn name(&self) -> &str {
        self.watched.name()
    }
}

impl Caches {
    /// No caches yet.
    pub fn new(client: kube::Client, metrics: Metrics) -> Self {
        let (kinds, namespaces) = Default::default();
        Self { shared: Arc::new(Shared { client, metrics, kinds, namespaces }) }
    }

    /// The client that lists and watches.
    pub(crate) fn client(&self) -> &kube::Client {
        &self.shared.client
    }

    /// Restricts the caches of all kinds that live in namespaces to these, unless the kind's own
    /// configuration names others. Several calls add up.
    pub fn restrict_to(&self, namespaces: impl IntoIterator<Item: Into<Arc<str>>>) {
        let mut known = self.shared.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(namespaces.into_iter().map(Into::into));
    }

    /// Chooses how the objects of a kind are held. An informer that runs already keeps its way.
    pub fn configure<K: Object>(&self, config: CacheConfig<K>) {
        self.configure_of(&Kind::of(), config);
    }

    /// The same for a kind that may be known only at run time.
    pub(crate) fn configure_of<K: AnyObject>(&self, kind: &Kind<K>, config: CacheConfig<K>) {
        self.lock().entry(kind.id()).or_default().settings = Some(config.into_settings());
    }

    /// How the objects of a kind are to be held.
    pub(crate) fn config<K: Object>(&self) -> CacheConfig<K> {
        self.config_of(&Kind::of())
    }

    /// The same for a kind that may be known only at run time.
    pub(crate) fn config_of<K: AnyObject>(&self, kind: &Kind<K>) -> CacheConfig<K> {
        let chosen = self.lock().get(&kind.id()).and_then(|slot| slot.settings.clone());
        chosen.map_or_else(|| default_config(kind), CacheConfig::of)
    }

    /// The informer of a kind. Starts it unless somebody holds it already.
    pub fn informer<K: Object>(&self) -> Informer<K> {
        self.informer_of(&Kind::of())
    }

    /// The informer of a kind that may be known only at run time.
    pub fn informer_of<K: AnyObject>(&self, kind: &Kind<K>) -> Informer<K> {
        Informer::of(self.informer_untyped(&CachedKind::of(kind)))
    }

    /// The informer of a kind whose type has been forgotten.
    pub(crate) fn informer_untyped(&self, kind: &CachedKind) -> Arc<Running> {
        let mut kinds = self.lock();
        let slot = kinds.entry(kind.id.clone()).or_default();
        if let Some(informer) = slot.informer.upgrade() {
            return informer;
        }
        let mut settings = slot.settings.clone().unwrap_or_else(|| kind.settings.clone());
        self.restrict(kind.namespaced, &mut settings.restriction.namespaces);
        let client = &self.shared.client;
        let metrics = Some(&self.shared.metrics);
        let informer =
            informer::start(client, &kind.watched, &settings, &Options::default(), metrics);
        slot.informer = Arc::downgrade(&informer);
        informer
    }

    /// The cache of a kind, if somebody holds its informer.
    pub fn find<K: Object>(&self) -> Option<Cache<K>> {
        self.find_of(&Kind::of())
    }

    /// The same for a kind that may be known only at run time.
    pub fn find_of<K: AnyObject>(&self, kind: &Kind<K>) -> Option<Cache<K>> {
        self.find_untyped(&kind.id()).map(Cache::cast)
    }

    /// The same for a kind whose type has been forgotten.
    pub(crate) fn find_untyped(&self, kind: &KindId) -> Option<Cache<Untyped>> {
        let informer = self.lock().get(kind)?.informer.upgrade()?;
        Some(informer.cache().clone())
    }

    /// The namespaces that a kind is restricted to, unless its configuration names some.
    fn restrict(&self, namespaced: bool, namespaces: &mut BTreeSet<Arc<str>>) {
        if !namespaced {
            namespaces.clear();
        } else if namespaces.is_empty() {
            let known = self.shared.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
            namespaces.clone_from(&known);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KindId, Slot>> {
        self.shared.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a kind is held for which nothing is said. Documents and metadata take far more memory as
/// trees than as text, whatever the size of the type that stands for them.
fn default_config<K: AnyObject>(kind: &Kind<K>) -> CacheConfig<K> {
    let config = CacheConfig::default();
    match kind.dynamic_names().is_some() || kind.is_metadata_only() {
        true => config.form(Form::COMPACT),
        false => config,
    }
}
