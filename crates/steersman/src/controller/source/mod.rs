//! Sources: where keys come from. Each listens to one kind's events and only enqueues.

mod watch;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio_util::sync::DropGuard;

use super::{Filter, Observer};
use crate::cache::Item;
use crate::caches::Caches;
use crate::cause::{Cause, CauseBook};
use crate::informer::Event;
use crate::kind::Kind;
use crate::object::{AnyObject, ObjectKey, controller_of};
use crate::predicate::Predicate;
use crate::workqueue::{AddOptions, Priority, WorkQueue};
pub use watch::{IntoWatch, Watch};

/// Attaches itself to a kind's events; ready once it has heard of that kind's first list. The
/// informer runs for as long as what this gives is held.
pub(super) type Source = Box<dyn FnOnce(Caches, Enqueuer) -> BoxFuture<'static, Held> + Send>;

/// Keeps an informer running, and a handler of it that is removed with this.
pub(super) struct Held {
    _informer: Arc<dyn Any + Send + Sync>,
    _handler: Option<DropGuard>,
}

/// The way into a controller's queue.
#[derive(Clone)]
pub(super) struct Enqueuer {
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) causes: Arc<CauseBook>,
}

impl Enqueuer {
    /// Asks for a reconcile because of an event. The cause is noted first: whoever takes the key
    /// finds it. What was there at the start and resyncs wait for live changes.
    fn enqueue<C: AnyObject>(&self, key: ObjectKey, kind: &str, event: &Event<C>) {
        self.causes.note(&key, Cause::of(kind, event));
        let priority = match event {
            Event::Added { initial: true, .. } | Event::Resynced { .. } => Priority::LOW,
            _ => Priority::NORMAL,
        };
        self.queue.add_with(key, AddOptions { priority: Some(priority), ..AddOptions::default() });
    }
}

/// The reconciled kind itself.
pub(super) fn reconciled<K: AnyObject>(
    watched: Kind<K>,
    observers: Vec<Observer<K>>,
    predicate: Option<Box<dyn Predicate<K>>>,
    only: Option<Filter<K>>,
) -> Source {
    let kind = watched.name().into_owned();
    listen(watched, move |enqueuer, event| {
        for observer in &observers {
            guarded(&kind, (), || observer(event));
        }
        let concerned = only
            .as_ref()
            .is_none_or(|only| guarded(&kind, true, || objects(event).any(|object| only(&object))));
        let matters = predicate
            .as_ref()
            .is_none_or(|predicate| guarded(&kind, true, || predicate.matters(event)));
        if concerned && matters {
            enqueuer.enqueue(event.object().key().clone(), &kind, event);
        }
    })
}

/// A kind whose objects are controlled by the reconciled kind.
pub(super) fn owned<K: AnyObject, C: AnyObject>(owner: Kind<K>, watch: Watch<C>) -> Source {
    let kind = watch.kind.name().into_owned();
    listen(watch.kind, move |enqueuer, event| {
        for meta in event.objects().filter_map(Item::meta) {
            if let Some(key) = owner_key(&owner, &meta) {
                enqueuer.enqueue(key, &kind, event);
            }
        }
    })
}

/// A kind whose objects concern others through a mapping.
pub(super) fn mapped<C: AnyObject, I: IntoIterator<Item = ObjectKey>>(
    watch: Watch<C>,
    keys: impl Fn(&C) -> I + Send + Sync + 'static,
) -> Source {
    let kind = watch.kind.name().into_owned();
    listen(watch.kind, move |enqueuer, event| {
        for object in objects(event) {
            // If the mapping panics for what the object was, what it is still counts.
            let keys = guarded(&kind, Vec::new(), || keys(&object).into_iter().collect());
            for key in keys {
                enqueuer.enqueue(key, &kind, event);
            }
        }
    })
}

/// A kind that is only read.
pub(super) fn silent<C: AnyObject>(watch: Watch<C>) -> Source {
    Box::new(move |caches, _| {
        Box::pin(async move {
            let informer = caches.informer_of(&watch.kind);
            informer.cache().synced().await;
            Held { _informer: informer, _handler: None }
        })
    })
}

fn listen<C: AnyObject>(
    kind: Kind<C>,
    handle: impl Fn(&Enqueuer, &Event<C>) + Send + 'static,
) -> Source {
    Box::new(move |caches, enqueuer| {
        Box::pin(async move {
            let informer = caches.informer_of(&kind);
            let handler = informer.add_handler(move |event| handle(&enqueuer, event)).await;
            handler.synced().await;
            if !handler.has_synced() {
                // Its informer has ended, which it never should: nobody must act on its cache.
                tracing::error!(kind = &*kind.name(), "the informer has ended");
                std::future::pending::<()>().await;
            }
            Held { _informer: informer, _handler: Some(handler.into_guard()) }
        })
    })
}

/// Calls the author's code, which may panic.
fn guarded<T>(kind: &str, otherwise: T, call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        tracing::error!(kind, "a filter, mapping or observer of events panicked");
        otherwise
    })
}

/// The objects that an event is about, as far as they can be decoded.
fn objects<C: AnyObject>(event: &Event<C>) -> impl Iterator<Item = Arc<C>> {
    event.objects().filter_map(Item::object)
}

/// The key of the owner of this kind that controls the object with this metadata.
fn owner_key<K: AnyObject>(kind: &Kind<K>, meta: &ObjectMeta) -> Option<ObjectKey> {
    let owner = controller_of(meta)?;
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    if owner.kind != kind.name() || group != kind.group() {
        return None;
    }
    let namespace = meta.namespace.as_deref().filter(|_| kind.is_namespaced()).map(Into::into);
    Some(ObjectKey { namespace, name: owner.name.as_str().into() })
}
