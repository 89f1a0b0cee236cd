//! A source whose events an async function maps to keys.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::{Attach, Held, KeyTable, Watch, enqueue, guarded, never};
use crate::cache::{Cache, Item, Untyped};
use crate::caches::{CachedKind, Caches};
use crate::cause::WatchedType;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::handler::{Request, Requests};
use crate::informer::{AsyncHandler, Event};
use crate::object::{AnyObject, Object};
use crate::predicate;
use crate::workqueue::Priority;

/// What a function that maps objects to requests may read; see
/// [`watches_async`](crate::controller::Builder::watches_async).
#[derive(Clone)]
pub struct MapContext {
    caches: Caches,
    client: Client,
}

impl MapContext {
    fn new(caches: Caches) -> Self {
        let client = Client::new(caches.client().clone(), "steersman");
        Self { caches, client }
    }

    /// The cache of a kind that a controller of this manager watches or reads. While a controller
    /// starts it may not be complete; what it does not hold yet is reconciled when it comes.
    pub fn cache<C: Object>(&self) -> Result<Cache<C>> {
        self.caches.find().ok_or_else(|| {
            let kind = C::kind(&());
            Error::terminal(format!(
                "no controller watches {kind} objects: add `.reads::<{kind}>()` to this one, or \
                 read from the server with `live()`"
            ))
        })
    }

    /// Reads from the server, past the caches.
    pub fn live(&self) -> &Client {
        &self.client
    }
}

/// How long a mapping that failed waits before it is tried again: this, then twice as long each
/// time up to the longest.
const MAP_RETRY_MIN: Duration = Duration::from_millis(100);
const MAP_RETRY_MAX: Duration = Duration::from_secs(30);

/// A kind whose objects concern others, whom an async function names.
pub(in crate::controller) fn mapped<C: AnyObject, Fut>(
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

/// Whether an event matters.
type Matters = Box<dyn Fn(&Event<Untyped>) -> bool + Send + Sync>;

/// Maps an object; `None` if it cannot be decoded.
type Map = Box<dyn Fn(&Item<Untyped>, MapContext) -> Option<Mapped> + Send + Sync>;

/// Turns events into requests by an async function, without the type of the objects.
struct Mapper {
    kind: WatchedType,
    priority: Option<Priority>,
    matters: Matters,
    map: Map,
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
