//! Sources: where keys come from. Each listens to one kind's events and only enqueues.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::future::BoxFuture;

use super::{Filter, Observer};
use crate::caches::Caches;
use crate::cause::{Cause, CauseBook};
use crate::informer::Event;
use crate::object::{Object, ObjectKey, controller_of};
use crate::predicate::Predicate;
use crate::workqueue::WorkQueue;

/// Attaches itself to a kind's events; ready once that kind's cache is synced.
pub(super) type Source = Box<dyn FnOnce(Caches, Enqueuer) -> BoxFuture<'static, ()> + Send>;

/// The way into a controller's queue.
#[derive(Clone)]
pub(super) struct Enqueuer {
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) causes: Arc<CauseBook>,
}

impl Enqueuer {
    /// The cause is noted first: whoever takes the key finds it.
    fn enqueue(&self, key: ObjectKey, cause: Cause) {
        self.causes.note(&key, cause);
        self.queue.add(key);
    }
}

/// The reconciled kind itself.
pub(super) fn reconciled<K: Object>(
    observers: Vec<Observer<K>>,
    predicate: Option<Box<dyn Predicate<K>>>,
    only: Option<Filter<K>>,
) -> Source {
    let kind = K::kind(&()).into_owned();
    listen::<K>(move |enqueuer, event| {
        for observer in &observers {
            guarded(&kind, (), || observer(event));
        }
        let concerned = only
            .as_ref()
            .is_none_or(|only| guarded(&kind, true, || event.objects().any(|object| only(object))));
        let matters = predicate
            .as_ref()
            .is_none_or(|predicate| guarded(&kind, true, || predicate.matters(event)));
        if concerned && matters {
            enqueuer.enqueue(ObjectKey::of(&**event.object()), Cause::of(&kind, event));
        }
    })
}

/// A kind whose objects are controlled by the reconciled kind.
pub(super) fn owned<K: Object, C: Object>() -> Source {
    let kind = C::kind(&()).into_owned();
    listen::<C>(move |enqueuer, event| {
        for object in event.objects() {
            if let Some(key) = owner_key::<K, C>(object) {
                enqueuer.enqueue(key, Cause::of(&kind, event));
            }
        }
    })
}

/// A kind whose objects concern others through a mapping.
pub(super) fn mapped<C: Object, I: IntoIterator<Item = ObjectKey>>(
    keys: impl Fn(&C) -> I + Send + Sync + 'static,
) -> Source {
    let kind = C::kind(&()).into_owned();
    listen::<C>(move |enqueuer, event| {
        for object in event.objects() {
            for key in keys(object) {
                enqueuer.enqueue(key, Cause::of(&kind, event));
            }
        }
    })
}

/// A kind that is only read.
pub(super) fn silent<C: Object>() -> Source {
    Box::new(|caches, _| Box::pin(async move { caches.informer::<C>().cache().synced().await }))
}

fn listen<C: Object>(handle: impl Fn(&Enqueuer, &Event<C>) + Send + 'static) -> Source {
    Box::new(|caches, enqueuer| {
        Box::pin(async move {
            let informer = caches.informer::<C>();
            informer.add_handler(move |event| handle(&enqueuer, event)).await;
        })
    })
}

/// Calls the author's code; if it panics, the event still counts, so that nothing is lost.
fn guarded<T>(kind: &str, otherwise: T, call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        tracing::error!(kind, "a filter or observer of events panicked; the event is let through");
        otherwise
    })
}

/// The key of the `K` that controls this object.
fn owner_key<K: Object, C: Object>(object: &C) -> Option<ObjectKey> {
    let meta = object.meta();
    let owner = controller_of(meta)?;
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    if owner.kind != K::kind(&()) || group != K::group(&()) {
        return None;
    }
    let namespace = meta.namespace.as_deref().filter(|_| K::NAMESPACED).map(Into::into);
    Some(ObjectKey { namespace, name: owner.name.as_str().into() })
}
