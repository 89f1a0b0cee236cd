//! Sources: where keys come from. Each listens to one kind's events, or to something outside of
//! the cluster ([`Source`]), and only enqueues.

mod mapped;
mod raw;
mod watch;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::deleted::Deletions;
use super::keys::KeyTable;
use super::{Filter, Observer};
use crate::cache::{Item, Untyped};
use crate::caches::{CachedKind, Caches};
use crate::cause::{Cause, WatchedType};
use crate::handler::{EnqueueRequestForObject, EventHandler, Requests};
use crate::informer::{Event, HandlerOptions, Running};
use crate::kind::Kind;
use crate::object::AnyObject;
use crate::predicate::{self, Predicate};
use crate::workqueue::Priority;
pub use mapped::MapContext;
pub(super) use mapped::mapped;
pub use raw::{Source, receive};
pub use watch::{IntoWatch, Watch};

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

/// Is called with every event of the reconciled kind.
type Observe = Box<dyn Fn(&Event<Untyped>) + Send>;

fn listen_to_own(
    kind: CachedKind,
    resync: Option<Duration>,
    observe: Observe,
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

/// Gives the values by which an index is searched, as text.
pub(super) type IndexTexts<C> = Box<dyn Fn(&C) -> Vec<Box<str>> + Send + Sync>;

/// A kind whose objects concern those of the controller's own kind that an index finds under the
/// values that `values` gives.
pub(super) fn indexed<C: AnyObject>(
    watch: Watch<C>,
    own: CachedKind,
    index: Arc<str>,
    values: IndexTexts<C>,
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
