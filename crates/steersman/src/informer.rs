//! The informer: a reflector, the cache it fills, and the handlers that hear of each change.
//!
//! One task takes deltas in order, updates the cache, and only then tells the handlers, so
//! that whoever is told finds the change in the cache. A handler that joins late hears of
//! every present object first. Handlers only enqueue keys; one that panics is reported and
//! does not stop the others.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

pub use crate::cache::Event;
use crate::cache::{self, Cache, Writer};
use crate::object::Cacheable;
use crate::reflector::{Delta, Reflector, Selection};

/// Deltas waiting between the reflector and the cache; then the reflector stops reading.
const DELTAS_MAX: usize = 1024;

/// Hears of every change of a kind. Must not block: it runs in the informer's task.
pub type Handler<K> = Box<dyn FnMut(&Event<K>) + Send>;

/// Keeps a cache of one kind up to date for as long as it lives.
pub struct Informer<K> {
    cache: Cache<K>,
    joining: mpsc::Sender<Joiner<K>>,
    tasks: [JoinHandle<()>; 2],
}

impl<K: Cacheable> Informer<K> {
    /// Starts to list and watch the objects that `selection` selects.
    pub fn start(
        client: kube::Client,
        dynamic_type: &K::DynamicType,
        selection: Selection,
    ) -> Self {
        let (writer, cache) = cache::channel();
        let (send, deltas) = mpsc::channel(DELTAS_MAX);
        let (joining, joiners) = mpsc::channel(16);
        let reflector = Reflector::new(client, dynamic_type, selection, send);
        let kind = K::kind(dynamic_type).into_owned();
        let distributor = Distributor { kind, writer, cache: cache.clone(), handlers: Vec::new() };
        let tasks = [tokio::spawn(reflector.run()), tokio::spawn(distributor.run(deltas, joiners))];
        Self { cache, joining, tasks }
    }

    /// The cache that this informer fills.
    pub fn cache(&self) -> &Cache<K> {
        &self.cache
    }

    /// Adds a handler. It first hears of every object that is there, as initial additions;
    /// ready when it has heard of the whole first list.
    pub async fn add_handler(&self, handler: impl FnMut(&Event<K>) + Send + 'static) {
        let (caught_up, heard) = oneshot::channel();
        let joiner = Joiner { handler: Box::new(handler), caught_up: Some(caught_up) };
        // Both fail only if the distributor has ended, which it does only with us.
        if self.joining.send(joiner).await.is_ok() {
            let _ = heard.await;
        }
    }
}

impl<K> Drop for Informer<K> {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// A handler, and whom to tell once it has heard of the first list.
struct Joiner<K> {
    handler: Handler<K>,
    caught_up: Option<oneshot::Sender<()>>,
}

/// Turns deltas into cache updates and events.
struct Distributor<K> {
    kind: String,
    writer: Writer<K>,
    cache: Cache<K>,
    handlers: Vec<Joiner<K>>,
}

impl<K: Cacheable> Distributor<K> {
    async fn run(
        mut self,
        mut deltas: mpsc::Receiver<Delta<K>>,
        mut joiners: mpsc::Receiver<Joiner<K>>,
    ) {
        loop {
            tokio::select! {
                biased;
                Some(joiner) = joiners.recv() => self.join(joiner),
                delta = deltas.recv() => match delta {
                    Some(delta) => self.take(delta),
                    None => break,
                },
            }
        }
        tracing::error!(kind = self.kind, "the reflector has ended; the cache stands still");
    }

    fn join(&mut self, mut joiner: Joiner<K>) {
        for object in self.cache.list() {
            tell(&self.kind, &mut joiner.handler, &Event::Added { object, initial: true });
        }
        if self.cache.progress().synced {
            joiner.catch_up();
        }
        self.handlers.push(joiner);
    }

    fn take(&mut self, delta: Delta<K>) {
        match delta {
            Delta::Replaced { objects, version } => {
                let events = self.writer.replace(objects, version);
                self.distribute(&events);
                self.handlers.iter_mut().for_each(Joiner::catch_up);
            }
            Delta::Applied(object) => {
                let events = self.writer.apply(object);
                self.distribute(&events);
            }
            Delta::Deleted(object) => {
                let event = self.writer.delete(&object);
                self.distribute(event.as_slice());
            }
            Delta::Bookmark { version } => self.writer.bookmark(version),
        }
    }

    fn distribute(&mut self, events: &[Event<K>]) {
        for event in events {
            for joiner in &mut self.handlers {
                tell(&self.kind, &mut joiner.handler, event);
            }
        }
    }
}

impl<K> Joiner<K> {
    fn catch_up(&mut self) {
        if let Some(caught_up) = self.caught_up.take() {
            let _ = caught_up.send(()); // whoever waited may have gone
        }
    }
}

fn tell<K>(kind: &str, handler: &mut Handler<K>, event: &Event<K>) {
    if catch_unwind(AssertUnwindSafe(|| handler(event))).is_err() {
        tracing::error!(kind, "an event handler panicked; the event is lost to it");
    }
}
