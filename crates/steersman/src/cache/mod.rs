//! The cache of a kind: every object of it, indexed, as of one resourceVersion.
//!
//! One `Writer` (not `Clone`, held by the informer) changes it; any number of [`Cache`]
//! handles read it. Readers hold the lock for a look-up or for the time it takes to note where
//! the answer lies; lists are snapshots that share structure with the cache, so the writer goes
//! on while they are read. In which [`Form`] objects are held is chosen per kind. The informer
//! before it feeds it; the context after it reads.

mod compact;
mod decode;
mod dictionary;
mod event;
mod form;
mod index;
mod item;
mod own_write;
mod recent;
mod restriction;
mod selector;
mod store;
mod writer;

use std::borrow::Borrow;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use kube::core::Selector;
use tokio::sync::{mpsc, watch};

use crate::object::{Cacheable, ErasedObject, ObjectKey, downcast};
pub(crate) use decode::{Decoder, Transform, Warmth};
pub use event::Event;
pub use form::Form;
pub use index::IndexValue;
pub(crate) use index::NamedIndex;
use index::{BY_LABEL, BY_OWNER, Indexers, Items};
pub(crate) use item::Untyped;
pub use item::{Item, Meta};
pub(crate) use own_write::{AnyCache, OwnWrite};
use restriction::Coverage;
pub use restriction::NotCovered;
pub(crate) use restriction::Restriction;
pub(crate) use selector::fits;
use store::{Store, in_namespace};
pub(crate) use writer::{Replacement, Writer};

/// Lists longer than this pass by the recently used objects, which they would displace.
const IN_PASSING: usize = 256;
/// So many objects are filed in a new index at a time, between which the writer may write.
const FILED_AT_ONCE: usize = 256;

/// Reads the cache of a kind. Cheap to clone.
pub struct Cache<K> {
    shared: Arc<Shared>,
    object: PhantomData<fn() -> K>,
}

/// What the writer and the readers share.
struct Shared {
    /// Held while an index is being added, together with the author's function: locked before
    /// `store`. An index function must not add indexes itself.
    adding: Mutex<()>,
    /// Held only for look-ups and single updates, never across user code or an await.
    store: RwLock<Store>,
    /// Announces every change after it is visible in `store`.
    progress: watch::Sender<Progress>,
    /// Which objects are held; `None` is all.
    coverage: Option<Coverage>,
    /// The version that each namespace has come to, where they are watched one by one. A leaf:
    /// nothing else is locked while it is.
    versions: Mutex<HashMap<Arc<str>, u64>>,
    /// Where objects are asked for of which what is held seems to be old.
    rereads: OnceLock<RereadRequests>,
    /// It has been logged that somebody looked for what the cache does not hold.
    reported: AtomicBool,
}

/// Where objects are asked for: one for each reflector, with the namespace if it watches only that.
pub(crate) type RereadRequests = Vec<(Option<Arc<str>>, mpsc::Sender<ObjectKey>)>;

/// An empty cache: the side that writes and the side that reads.
#[cfg(test)]
pub(crate) fn channel<K>() -> (Writer, Cache<K>) {
    let (writer, cache) = restricted(Restriction::default());
    (writer, cache.cast())
}

/// An empty cache that is to hold only some objects.
pub(crate) fn restricted(restriction: Restriction) -> (Writer, Cache<Untyped>) {
    let shared = Arc::new(Shared {
        adding: Mutex::default(),
        store: RwLock::new(Store::new()),
        progress: watch::Sender::new(Progress::default()),
        coverage: (!restriction.is_none()).then(|| Coverage::new(restriction)),
        versions: Mutex::default(),
        rereads: OnceLock::new(),
        reported: AtomicBool::new(false),
    });
    (Writer { shared: Arc::clone(&shared), scope: None }, Cache { shared, object: PhantomData })
}

/// How far a cache has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether the first list is complete.
    pub synced: bool,
    /// Everything up to this version is visible; zero if the server's versions are not numbers.
    pub version: u64,
    /// Nobody fills the cache any more.
    pub ended: bool,
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), object: PhantomData }
    }
}

impl<K> Cache<K> {
    /// The same cache for readers of another type, which must be that of its objects.
    pub(crate) fn cast<C>(self) -> Cache<C> {
        Cache { shared: self.shared, object: PhantomData }
    }

    /// The object with this key, as it is held.
    pub fn item(&self, key: &ObjectKey) -> Option<Item<K>> {
        self.shared.read().get(key).cloned().map(Item::cast)
    }

    /// The metadata of the object with this key, without decoding the rest of it.
    pub fn metadata(&self, key: &ObjectKey) -> Option<Meta> {
        self.item(key)?.meta()
    }

    /// Everything, as it is now.
    pub fn snapshot(&self) -> Snapshot<K> {
        Snapshot::of(self.shared.read().ordered())
    }

    /// The objects to which the named index gives this value, as they are held. An index that
    /// nobody added finds nothing.
    pub fn indexed(&self, index: &str, value: &(impl IndexValue + ?Sized)) -> Snapshot<K> {
        Snapshot::of(self.shared.read().indexed(index, &value.text()))
    }

    /// How many objects there are, including those that turn out to be undecodable.
    pub fn len(&self) -> usize {
        self.shared.read().len()
    }

    /// How many bytes the objects are, as they are held: compressed in the compact form, and in
    /// the typed form as JSON, of which the types take several times as much. Objects that were
    /// put in by hand do not count.
    pub(crate) fn bytes(&self) -> u64 {
        self.shared.read().bytes()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How far the cache has come.
    pub fn progress(&self) -> Progress {
        *self.shared.progress.borrow()
    }

    /// Waits until the first list is complete. False if the informer went before that.
    pub async fn synced(&self) -> bool {
        self.shared.wait_until(|progress| progress.synced).await
    }

    /// Waits until everything up to `version` is visible. False if the informer went before that.
    pub async fn reached(&self, version: u64) -> bool {
        self.shared.wait_until(move |progress| progress.version >= version).await
    }
}

impl<K: Cacheable> Cache<K> {
    /// The object with this key, which has a namespace if the kind has. `None` also if it
    /// cannot be decoded; [`item`](Self::item) then still tells that it exists. A cache that is
    /// restricted to some namespaces reports who looks for something in another.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        if let Err(error) = self.covers(key.namespace.as_deref()) {
            self.report(&error);
        }
        downcast(self.shared.object(key)?)
    }

    /// Every object, ordered by namespace and name.
    pub fn list(&self) -> Vec<Arc<K>> {
        objects(&self.shared.read().ordered())
    }

    /// Every object in a namespace, ordered by name.
    pub fn list_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let items = self.shared.read().ordered();
        typed(decode_all(in_namespace(&items, namespace).collect()))
    }

    /// Every object that names this uid among its owners.
    pub fn by_owner(&self, uid: &str) -> Vec<Arc<K>> {
        self.by_index(BY_OWNER, uid)
    }

    /// Every object with these labels, in one namespace or in all. The first call makes an
    /// index of labels, which then is kept.
    ///
    /// ```
    /// use kube::core::{Expression, Selector};
    /// let web: Selector = [("app", "web")].into_iter().collect();
    /// let front: Selector = Expression::In("tier".into(), ["front".into()].into()).into();
    /// ```
    pub fn by_labels(&self, namespace: Option<&str>, selector: &Selector) -> Vec<Arc<K>> {
        typed(self.shared.by_labels(namespace, selector))
    }

    /// Every object to which the named index gives this value. An index that nobody added
    /// finds nothing.
    pub fn by_index(&self, index: &str, value: &(impl IndexValue + ?Sized)) -> Vec<Arc<K>> {
        let found = self.shared.read().indexed(index, &value.text());
        // Who owns objects reads them at each change of one: they are kept as long as all can be.
        let keep = found.iter().next().is_some_and(|item| item.0.held().keeps(found.len()));
        match keep {
            true => typed(found.iter().filter_map(|item| item.0.held().object()).collect()),
            false => objects(&found),
        }
    }

    /// Adds a named index at any time; `values` gives the values under which an object is
    /// found, and may not add indexes itself. An index of the same name is kept as it is; one
    /// with another function is reported as an error.
    pub fn add_index<V: IndexValue, I: IntoIterator<Item = V>>(
        &self,
        name: &'static str,
        values: impl Fn(&K) -> I + Send + Sync + 'static,
    ) -> Index<K, V> {
        self.shared.add_index(NamedIndex::new(name.into(), values));
        Index { cache: self.clone(), name, values: PhantomData }
    }
}

impl Cache<Untyped> {
    /// The object with this key, as [`get`](Cache::get) gives it.
    pub(crate) fn get_erased(&self, key: &ObjectKey) -> Option<Arc<dyn ErasedObject>> {
        self.shared.object(key)
    }

    /// Adds an index, as [`add_index`](Cache::add_index) does.
    pub(crate) fn add(&self, index: NamedIndex) {
        self.shared.add_index(index);
    }

    /// Says where objects are asked for of which what is held seems to be old.
    pub(crate) fn reread_by(&self, reflectors: RereadRequests) {
        let _ = self.shared.rereads.set(reflectors);
    }

    /// The keys of the objects that the named index finds under the text of a value.
    pub(crate) fn indexed_keys(&self, index: &str, value: &str) -> Vec<ObjectKey> {
        let found = self.shared.read().indexed(index, value);
        found.iter().map(|item| item.0.key().clone()).collect()
    }
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn reread(&self, key: &ObjectKey) {
        let concerned =
            |namespace: &Option<Arc<str>>| namespace.is_none() || *namespace == key.namespace;
        let reflectors = self.rereads.get().into_iter().flatten();
        for (_, requests) in reflectors.filter(|(namespace, _)| concerned(namespace)) {
            let _ = requests.try_send(key.clone()); // if it is full, somebody will ask again
        }
    }

    fn object(&self, key: &ObjectKey) -> Option<Arc<dyn ErasedObject>> {
        let held = {
            let store = self.read();
            let held = store.get(key)?.held();
            if let Some(object) = held.decoded() {
                return Some(object);
            }
            Arc::clone(held)
        };
        held.object() // decoding is not done under the lock
    }

    fn by_labels(
        &self,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Vec<Arc<dyn ErasedObject>> {
        let requirements = selector::requirements(selector);
        self.add_indexer(BY_LABEL, Indexers::with_labels);
        let sets = selector::candidates(&self.read(), &requirements);
        let mut found: Vec<&Item<Untyped>> = Vec::new();
        for set in &sets {
            let fitting = |item: &&Item<Untyped>| fits(item, &requirements);
            match namespace {
                None => found.extend(set.iter().map(|item| &item.0).filter(fitting)),
                Some(namespace) => found.extend(in_namespace(set, namespace).filter(fitting)),
            }
        }
        if sets.len() > 1 {
            found.sort_by(|a, b| a.key().cmp(b.key()));
        }
        decode_all(found)
    }

    fn add_index(&self, index: NamedIndex) {
        let name = index.name();
        if self.read().indexers.contradict(&index) {
            tracing::error!(index = &*name, "index exists with another function, which is kept");
        }
        self.add_indexer(&name, |indexers| indexers.with(index));
    }

    /// Adds an index unless there is one of that name, and files every object in it.
    fn add_indexer(&self, name: &str, add: impl FnOnce(Indexers) -> Indexers) {
        let is_filled =
            |store: &Store| store.indexers.place(name).is_some_and(|place| place < store.filled);
        if is_filled(&self.read()) {
            return;
        }
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let (indexers, present) = {
            let mut store = self.store.write().unwrap_or_else(PoisonError::into_inner);
            if store.indexers.place(name).is_some() {
                return;
            }
            store.indexers = Arc::new(add(Indexers::clone(&store.indexers)));
            (Arc::clone(&store.indexers), store.ordered())
        };
        // From here on the writer files what it writes; what was there before is filed below,
        // unless it has been replaced by then.
        let Some(place) = indexers.place(name) else { return };
        let mut present = present.iter().map(|item| &item.0).peekable();
        while present.peek().is_some() {
            let some = present.by_ref().take(FILED_AT_ONCE);
            let filed: Vec<_> = some.map(|item| (item, indexers.values_at(place, item))).collect();
            let mut store = self.store.write().unwrap_or_else(PoisonError::into_inner);
            for (item, values) in filed {
                store.file(place, item, values);
            }
        }
        self.store.write().unwrap_or_else(PoisonError::into_inner).filled = place + 1;
    }

    async fn wait_until(&self, condition: impl Fn(&Progress) -> bool) -> bool {
        let mut progress = self.progress.subscribe();
        let reached = progress.wait_for(|progress| progress.ended || condition(progress)).await;
        // The sender lives here, which whoever waits keeps alive: there is no error.
        reached.is_ok_and(|progress| condition(&progress))
    }

    fn versions(&self) -> MutexGuard<'_, HashMap<Arc<str>, u64>> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Objects as they were at one moment, whatever happens to the cache meanwhile.
pub struct Snapshot<K> {
    items: Items,
    object: PhantomData<fn() -> K>,
}

impl<K> Snapshot<K> {
    fn of(items: Items) -> Self {
        Self { items, object: PhantomData }
    }

    /// Every item, ordered by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = Item<K>> {
        self.items.iter().map(|item| item.0.clone().cast())
    }

    /// The keys of all items, ordered by namespace and name.
    pub fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.items.iter().map(|item| item.0.key())
    }

    /// The items of a namespace, ordered by name.
    pub fn namespace<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = Item<K>> + use<'a, K> {
        in_namespace(&self.items, namespace).cloned().map(Item::cast)
    }

    /// The item with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<Item<K>> {
        self.items.get(key).map(|item| item.0.clone().cast())
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// Finds the objects of a cache by a value of type `V`.
pub struct Index<K, V> {
    cache: Cache<K>,
    name: &'static str,
    values: PhantomData<fn(&V)>,
}

impl<K: Cacheable, V: IndexValue> Index<K, V> {
    /// Every object with this value; `get("web")` finds what is indexed by `String`.
    pub fn get<Q: IndexValue + ?Sized>(&self, value: &Q) -> Vec<Arc<K>>
    where
        V: Borrow<Q>,
    {
        self.cache.by_index(self.name, value)
    }

    /// The same, as the objects are held.
    pub fn items<Q: IndexValue + ?Sized>(&self, value: &Q) -> Snapshot<K>
    where
        V: Borrow<Q>,
    {
        self.cache.indexed(self.name, value)
    }

    /// Every value that some object has, as text.
    pub fn values(&self) -> Vec<Box<str>> {
        self.cache.shared.read().index_values(self.name)
    }
}

fn objects<K: Cacheable>(items: &Items) -> Vec<Arc<K>> {
    typed(decode_all(items.iter().map(|item| &item.0).collect()))
}

/// The objects of these items, as far as they can be decoded.
fn decode_all(items: Vec<&Item<Untyped>>) -> Vec<Arc<dyn ErasedObject>> {
    if items.len() > IN_PASSING {
        return items.into_iter().filter_map(|item| item.held().object_in_passing()).collect();
    }
    items.into_iter().filter_map(|item| item.held().object()).collect()
}

fn typed<K: Cacheable>(objects: Vec<Arc<dyn ErasedObject>>) -> Vec<Arc<K>> {
    objects.into_iter().filter_map(downcast).collect()
}

#[cfg(test)]
mod tests;
