//! Sources: where keys come from. Each listens to one kind's events, or to something outside of
//! the cluster ([`Source`]), and only enqueues.

mod raw;
mod watch;

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::deleted::Deletions;
use super::keys::KeyTable;
use super::{Filter, Observer};
use crate::cache::Item;
use crate::caches::Caches;
use crate::cause::Cause;
use crate::handler::{EnqueueRequestForObject, EventHandler, Requests};
use crate::informer::{Event, HandlerOptions};
use crate::kind::Kind;
use crate::object::AnyObject;
use crate::predicate::{self, Predicate};
use crate::workqueue::Priority;
pub use raw::{Source, receive};
pub use watch::{IntoWatch, Watch};

/// Attaches a source to a controller; ready once it has enqueued what was there at the start.
/// The source lasts for as long as what this gives is held.
pub(super) type Attach = Box<dyn FnOnce(Caches, Arc<KeyTable>) -> BoxFuture<'static, Held> + Send>;

/// Keeps a source: an informer with a handler, or a task. They end with this.
pub(super) struct Held {
    _informer: Option<Arc<dyn Any + Send + Sync>>,
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
fn urgency<C>(event: &Event<C>, live: Option<Priority>) -> Priority {
    let live = live.unwrap_or(Priority::NORMAL);
    match event {
        Event::Added { initial: true, .. } | Event::Resynced { .. } => live.min(Priority::LOW),
        _ => live,
    }
}

/// Turns the events of a kind into requests.
struct Listener<C> {
    kind: String,
    predicates: Vec<Box<dyn Predicate<C>>>,
    priority: Option<Priority>,
    handler: Box<dyn EventHandler<C>>,
    /// Empty between events; kept for its memory.
    requests: Requests,
}

impl<C: AnyObject> Listener<C> {
    fn new(watch: Watch<C>, handler: Box<dyn EventHandler<C>>) -> Self {
        let Watch { kind, predicates, priority } = watch;
        let kind = kind.name().into_owned();
        Self { kind, predicates, priority, handler, requests: Requests::default() }
    }

    fn handle(&mut self, keys: &KeyTable, event: &Event<C>) {
        let Self { kind, predicates, priority, handler, requests } = self;
        if !guarded(kind, true, || predicate::pass(predicates, event)) {
            return;
        }
        // If the handler panics, what it named before still counts.
        guarded(kind, (), || handler.handle(event, requests));
        if requests.0.is_empty() {
            return;
        }
        let cause = Cause::of(kind, event);
        for request in requests.0.drain(..) {
            let priority = request.priority.unwrap_or_else(|| urgency(event, *priority));
            keys.add(request.key, cause.clone(), priority);
        }
    }
}

/// What a controller wants of its own kind.
pub(super) struct Reconciled<K> {
    pub(super) kind: Kind<K>,
    pub(super) observers: Vec<Observer<K>>,
    pub(super) predicates: Vec<Box<dyn Predicate<K>>>,
    pub(super) only: Option<Filter<K>>,
    pub(super) priority: Option<Priority>,
    /// Hears of every object again this often.
    pub(super) resync: Option<Duration>,
    /// Where it is noted what is gone, if somebody wants to know.
    pub(super) deletions: Option<Arc<Deletions<K>>>,
}

/// The reconciled kind itself.
pub(super) fn reconciled<K: AnyObject>(own: Reconciled<K>) -> Attach {
    let Reconciled { kind, observers, predicates, only, priority, resync, deletions } = own;
    let watch = Watch { kind: kind.clone(), predicates, priority };
    let mut listener = Listener::new(watch, Box::new(EnqueueRequestForObject));
    let name = kind.name().into_owned();
    listen(kind, resync, move |keys, event| {
        for observer in &observers {
            guarded(&name, (), || observer(event));
        }
        let concerns =
            |only: &Filter<K>| guarded(&name, true, || objects(event).any(|object| only(&object)));
        if !only.as_ref().is_none_or(concerns) {
            return;
        }
        match (&deletions, event) {
            (Some(deletions), Event::Deleted { object, .. }) => {
                deletions.note(object);
                // Whatever the predicates say: somebody asked for every deletion.
                let cause = Cause::of(&name, event);
                keys.add(object.key().clone(), cause, urgency(event, priority));
            }
            _ => listener.handle(keys, event),
        }
    })
}

/// A kind whose objects concern others, whom a handler names.
pub(super) fn watched<C: AnyObject>(watch: Watch<C>, handler: impl EventHandler<C>) -> Attach {
    let kind = watch.kind.clone();
    let mut listener = Listener::new(watch, Box::new(handler));
    listen(kind, None, move |keys, event| listener.handle(keys, event))
}

/// A kind that is only read.
pub(super) fn silent<C: AnyObject>(watch: Watch<C>) -> Attach {
    Box::new(move |caches, _| {
        Box::pin(async move {
            let informer = caches.informer_of(&watch.kind);
            if !informer.cache().synced().await {
                never(&watch.kind).await;
            }
            Held { _informer: Some(informer), _end: None }
        })
    })
}

fn listen<C: AnyObject>(
    kind: Kind<C>,
    resync: Option<Duration>,
    mut handle: impl FnMut(&KeyTable, &Event<C>) + Send + 'static,
) -> Attach {
    Box::new(move |caches, keys| {
        Box::pin(async move {
            let informer = caches.informer_of(&kind);
            let options = HandlerOptions { resync, ..HandlerOptions::default() };
            let handle = move |event: &Event<C>| handle(&keys, event);
            let handler = informer.add_handler_with(options, handle).await;
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
async fn never<C: AnyObject>(kind: &Kind<C>) {
    tracing::error!(kind = &*kind.name(), "informer ended before its cache synced");
    std::future::pending::<()>().await;
}

/// Calls the author's code, which may panic.
fn guarded<T>(kind: &str, otherwise: T, call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        tracing::error!(kind, "a predicate, handler or observer of events panicked");
        otherwise
    })
}

/// The objects that an event is about, as far as they can be decoded.
fn objects<C: AnyObject>(event: &Event<C>) -> impl Iterator<Item = Arc<C>> {
    event.objects().filter_map(Item::object)
}
