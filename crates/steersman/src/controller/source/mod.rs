//! Sources: where keys come from. Each listens to one kind's events, or to something outside of
//! the cluster ([`Source`]), and only enqueues.

mod raw;
mod watch;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::deleted::Deletions;
use super::keys::KeyTable;
use super::mapping::MapContext;
use super::{Filter, Observer};
use crate::cache::{Item, Untyped};
use crate::caches::{CachedKind, Caches};
use crate::cause::{Cause, WatchedType};
use crate::error::Result;
use crate::handler::{EnqueueRequestForObject, EventHandler, Request, Requests};
use crate::informer::{AsyncHandler, Event, HandlerOptions, Running};
use crate::kind::Kind;
use crate::object::AnyObject;
use crate::predicate::{self, Predicate};
use crate::workqueue::Priority;
pub use raw::{Source, receive};
pub use watch::{IntoWatch, Watch};

/// How long a mapping that failed waits before it is tried again: this, then twice as long each
/// time up to the longest.
const MAP_RETRY_MIN: Duration = Duration::from_millis(100);
const MAP_RETRY_MAX: Duration = Duration::from_secs(30);

/// Attaches a source to a controller; ready once it has enqueued what was there at the start.
/// The source lasts for as long as what this gives is held.
pub(super) type Attach = Box<dyn FnOnce(Caches, Arc<KeyTable>) -> BoxFuture<'static, Held> + Send>;

/// Keeps a source: an informer with a handler, or a task. They end with this.
pub(super) struct Held {
    _informer: Option<Arc<Running>>,
    _end: Option<DropGuard>,
}

impl Held {
    /// Runs a task for as long as this is held.
    fn task(work: impl Future<Output = ()> + Send + 'static) -> Self {
        let end = CancellationToken::new();
        tokio::spawn(end.clone().run_until_cancelled_owned(work));
        Self { _informer: None, _end: Some(end.drop_guard()) }
    }
}

/// How urgent an event is: what was there at the start and resyncs wait for live changes.
fn urgency(event: &Event<Untyped>, live: Option<Priority>) -> Priority {
    let live = live.unwrap_or(Priority::NORMAL);
    match event {
        Event::Added { initial: true, .. } | Event::Resynced { .. } => live.min(Priority::LOW),
        _ => live,
    }
}

/// Names whom an event concerns that the author's predicates let pass, without its type.
type Mapping = Box<dyn FnMut(&Event<Untyped>, &mut Requests) + Send>;

/// Turns the events of a kind into requests.
struct Listener {
    kind: WatchedType,
    priority: Option<Priority>,
    map: Mapping,
    /// Empty between events; kept for its memory.
    requests: Requests,
}

impl Listener {
    fn new<C: AnyObject>(watch: Watch<C>, handler: impl EventHandler<C>) -> Self {
        let Watch { kind, predicates, priority } = watch;
        let kind = WatchedType::of(&kind);
        let name = kind.name.clone();
        let map = move |event: &Event<Untyped>, requests: &mut Requests| {
            let event = event.clone().cast::<C>();
            if guarded(&name, true, || predicate::pass(&predicates, &event)) {
                // If the handler panics, what it named before still counts.
                guarded(&name, (), || handler.handle(&event, requests));
            }
        };
        Self { kind, priority, map: Box::new(map), requests: Requests::default() }
    }

    fn handle(&mut self, keys: &KeyTable, event: &Event<Untyped>) {
        let Self { kind, priority, map, requests } = self;
        map(event, requests);
        enqueue(keys, kind, event, *priority, requests);
    }
}

/// Puts what was named because of an event into the queue.
fn enqueue(
    keys: &KeyTable,
    kind: &WatchedType,
    event: &Event<Untyped>,
    priority: Option<Priority>,
    requests: &mut Requests,
) {
    if requests.0.is_empty() {
        return;
    }
    let cause = Cause::of(kind, event);
    let namespace = event.object().key().namespace.as_ref();
    for request in requests.0.drain(..) {
        let priority = request.priority.unwrap_or_else(|| urgency(event, priority));
        keys.request(request.key, namespace, cause.clone(), priority);
    }
}

/// What a controller wants of its own kind.
pub(super) struct Reconciled<K> {
    pub(super) kind: Kind<K>,
    pub(super) observers: Vec<Observer<K>>,
    pub(super) predicates: Vec<Box<dyn Predicate<K>>>,
    pub(super) only: Option<Filter>,
    pub(super) priority: Option<Priority>,
    /// Hears of every object again this often.
    pub(super) resync: Option<Duration>,
    /// Where it is noted what is gone, if somebody wants to know.
    pub(super) deletions: Option<Arc<Deletions>>,
}

/// The reconciled kind itself.
pub(super) fn reconciled<K: AnyObject>(own: Reconciled<K>) -> Attach {
    let Reconciled { kind, observers, predicates, only, priority, resync, deletions } = own;
    let cached = CachedKind::of(&kind);
    let name = kind.name().into_owned();
    let observe = move |event: &Event<Untyped>| {
        if !observers.is_empty() {
            let event = event.clone().cast::<K>();
            observers.iter().for_each(|observer| guarded(&name, (), || observer(&event)));
        }
    };
    let listener = Listener::new(Watch { kind, predicates, priority }, EnqueueRequestForObject);
    listen_to_own(cached, resync, Box::new(observe), listener, only, deletions)
}

fn listen_to_own(
    kind: CachedKind,
    resync: Option<Duration>,
    observe: Box<dyn Fn(&Event<Untyped>) + Send>,
    mut listener: Listener,
    only: Option<Filter>,
    deletions: Option<Arc<Deletions>>,
) -> Attach {
    let handle = move |keys: &KeyTable, event: &Event<Untyped>| {
        observe(event);
        let concerns = |only: &Filter| {
            guarded(&listener.kind.name, true, || event.objects().any(|item| only.lets_pass(item)))
        };
        if !only.as_ref().is_none_or(concerns) {
            return;
        }
        match (&deletions, event) {
            (Some(deletions), Event::Deleted { object, .. }) => {
                deletions.note(object);
                // Whatever the predicates say: somebody asked for every deletion.
                let cause = Cause::of(&listener.kind, event);
                keys.add(object.key().clone(), cause, urgency(event, listener.priority));
            }
            _ if keys.is_own_finalizer(event) => {}
            _ => listener.handle(keys, event),
        }
    };
    listen(kind, resync, Box::new(handle))
}

/// A kind whose objects concern others, whom a handler names.
pub(super) fn watched<C: AnyObject>(watch: Watch<C>, handler: impl EventHandler<C>) -> Attach {
    let kind = CachedKind::of(&watch.kind);
    let mut listener = Listener::new(watch, handler);
    listen(kind, None, Box::new(move |keys, event| listener.handle(keys, event)))
}

/// A kind whose objects concern those of the controller's own kind that an index finds under the
/// values that `values` gives.
pub(super) fn indexed<C: AnyObject>(
    watch: Watch<C>,
    own: CachedKind,
    index: Arc<str>,
    values: Box<dyn Fn(&C) -> Vec<Box<str>> + Send + Sync>,
) -> Attach {
    Box::new(move |caches, keys| {
        let cache = caches.informer_untyped(&own).cache().clone();
        let handler = move |event: &Event<C>, requests: &mut Requests| {
            for object in event.objects().filter_map(Item::object) {
                for value in values(&object) {
                    let found = cache.indexed_keys(&index, &value);
                    found.into_iter().for_each(|key| requests.add(key));
                }
            }
        };
        watched(watch, handler)(caches, keys)
    })
}

/// A kind whose objects concern others, whom an async function names.
pub(super) fn mapped<C: AnyObject, Fut>(
    watch: Watch<C>,
    map: impl Fn(Arc<C>, MapContext) -> Fut + Send + Sync + 'static,
) -> Attach
where
    Fut: Future<Output = Result<Vec<Request>>> + Send + 'static,
{
    let kind = CachedKind::of(&watch.kind);
    let Watch { kind: typed, predicates, priority } = watch;
    let watched = WatchedType::of(&typed);
    let matters = {
        let name = watched.name.clone();
        move |event: &Event<Untyped>| {
            let event = event.clone().cast::<C>();
            guarded(&name, true, || predicate::pass(&predicates, &event))
        }
    };
    let map = move |item: &Item<Untyped>, context: MapContext| -> Option<Mapped> {
        let object = item.clone().cast::<C>().object()?;
        Some(Box::pin(map(object, context)))
    };
    let mapper = Mapper { kind: watched, priority, matters: Box::new(matters), map: Box::new(map) };
    Box::new(move |caches, keys| {
        let context = MapContext::new(caches.clone());
        let mapper = Arc::new(mapper);
        let handle = Box::new(move |event: Event<Untyped>| -> BoxFuture<'static, ()> {
            let mapper = Arc::clone(&mapper);
            let keys = Arc::clone(&keys);
            let context = context.clone();
            Box::pin(async move { mapper.handle(&keys, &event, &context).await })
        });
        Box::pin(attach_async(kind, caches, handle))
    })
}

/// The requests that an async function names.
type Mapped = BoxFuture<'static, Result<Vec<Request>>>;

/// Turns events into requests by an async function, without the type of the objects.
struct Mapper {
    kind: WatchedType,
    priority: Option<Priority>,
    matters: Box<dyn Fn(&Event<Untyped>) -> bool + Send + Sync>,
    /// `None` if the object cannot be decoded.
    map: Box<dyn Fn(&Item<Untyped>, MapContext) -> Option<Mapped> + Send + Sync>,
}

impl Mapper {
    async fn handle(&self, keys: &KeyTable, event: &Event<Untyped>, context: &MapContext) {
        if !(self.matters)(event) {
            return;
        }
        let mut requests = Requests::default();
        for item in event.objects() {
            self.map(item, context).await.into_iter().for_each(|request| requests.add(request));
        }
        enqueue(keys, &self.kind, event, self.priority, &mut requests);
    }

    /// What the function names, tried until it does not fail: a change that is not mapped would
    /// never be reconciled. What panics is given up.
    async fn map(&self, item: &Item<Untyped>, context: &MapContext) -> Vec<Request> {
        let mut delay = MAP_RETRY_MIN;
        loop {
            let mapped = async {
                match (self.map)(item, context.clone()) {
                    Some(mapped) => mapped.await,
                    None => Ok(Vec::new()),
                }
            };
            let kind = &*self.kind.name;
            let key = item.key();
            match AssertUnwindSafe(mapped).catch_unwind().await {
                Ok(Ok(requests)) => return requests,
                Ok(Err(error)) if error.is_terminal() => {
                    tracing::error!(kind, %key, %error, "map function failed with a terminal error; nothing is enqueued");
                    return Vec::new();
                }
                Ok(Err(error)) => {
                    tracing::warn!(kind, %key, %error, ?delay, "map function failed, backing off");
                    tokio::time::sleep(delay).await;
                    delay = (delay * 2).min(MAP_RETRY_MAX);
                }
                Err(_) => {
                    tracing::error!(kind, %key, "map function panicked; nothing is enqueued");
                    return Vec::new();
                }
            }
        }
    }
}

async fn attach_async(kind: CachedKind, caches: Caches, handle: AsyncHandler) -> Held {
    let informer = caches.informer_untyped(&kind);
    let handler = informer.add_async_handler(handle).await;
    // Not when it has mapped everything: mapping may read caches that are still to sync.
    if !informer.cache().synced().await {
        never(&kind).await;
    }
    Held { _informer: Some(informer), _end: Some(handler.into_guard()) }
}

/// A kind that is only read.
pub(super) fn silent<C: AnyObject>(watch: &Watch<C>) -> Attach {
    let kind = CachedKind::of(&watch.kind);
    Box::new(move |caches, _| Box::pin(hold(kind, caches)))
}

async fn hold(kind: CachedKind, caches: Caches) -> Held {
    let informer = caches.informer_untyped(&kind);
    if !informer.cache().synced().await {
        never(&kind).await;
    }
    Held { _informer: Some(informer), _end: None }
}

/// Is called with the events of a kind.
type Handle = Box<dyn FnMut(&KeyTable, &Event<Untyped>) + Send>;

fn listen(kind: CachedKind, resync: Option<Duration>, mut handle: Handle) -> Attach {
    Box::new(move |caches, keys| {
        Box::pin(async move {
            let informer = caches.informer_untyped(&kind);
            let options = HandlerOptions { resync, ..HandlerOptions::default() };
            let handle = Box::new(move |event: &Event<Untyped>| handle(&keys, event));
            let handler = informer.add_handler(options, handle).await;
            handler.synced().await;
            if !handler.has_synced() {
                never(&kind).await;
            }
            Held { _informer: Some(informer), _end: Some(handler.into_guard()) }
        })
    })
}

/// An informer has ended before its first list, which it never should: nobody must act on its
/// cache.
async fn never(kind: &CachedKind) {
    tracing::error!(kind = kind.name(), "informer ended before its cache synced");
    std::future::pending::<()>().await;
}

/// Calls the author's code, which may panic.
fn guarded<T>(kind: &str, otherwise: T, call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        tracing::error!(kind, "a predicate, handler or observer of events panicked");
        otherwise
    })
}
