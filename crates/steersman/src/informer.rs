//! The informer: a reflector, the cache it fills, and the handlers that hear of each change.
//!
//! One task takes deltas in order, updates the cache, and only then tells the handlers, so
//! that whoever is told finds the change in the cache. A handler that joins late hears of
//! every present object first. Handlers only enqueue keys; one that panics is reported and
//! does not stop the others.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::mpsc;
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
    joining: mpsc::Sender<Handler<K>>,
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
        let distributor = Distributor { writer, cache: cache.clone(), handlers: Vec::new() };
        let tasks = [tokio::spawn(reflector.run()), tokio::spawn(distributor.run(deltas, joiners))];
        Self { cache, joining, tasks }
    }

    /// The cache that this informer fills.
    pub fn cache(&self) -> &Cache<K> {
        &self.cache
    }

    /// Adds a handler. It first hears of every object that is there, as initial additions.
    pub async fn add_handler(&self, handler: impl FnMut(&Event<K>) + Send + 'static) {
        // The receiver lives as long as the distributor's task, which only ends with us.
        let _ = self.joining.send(Box::new(handler)).await;
    }
}

impl<K> Drop for Informer<K> {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Turns deltas into cache updates and events.
struct Distributor<K> {
    writer: Writer<K>,
    cache: Cache<K>,
    handlers: Vec<Handler<K>>,
}

impl<K: Cacheable> Distributor<K> {
    async fn run(
        mut self,
        mut deltas: mpsc::Receiver<Delta<K>>,
        mut joiners: mpsc::Receiver<Handler<K>>,
    ) {
        loop {
            tokio::select! {
                biased;
                Some(handler) = joiners.recv() => self.join(handler),
                delta = deltas.recv() => match delta {
                    Some(delta) => self.take(delta),
                    None => return,
                },
            }
        }
    }

    fn join(&mut self, mut handler: Handler<K>) {
        for object in self.cache.list() {
            tell(&mut handler, &Event::Added { object, initial: true });
        }
        self.handlers.push(handler);
    }

    fn take(&mut self, delta: Delta<K>) {
        match delta {
            Delta::Replaced { objects, version } => {
                for event in self.writer.replace(objects, version) {
                    self.distribute(&event);
                }
            }
            Delta::Applied(object) => {
                if let Some(event) = self.writer.apply(object) {
                    self.distribute(&event);
                }
            }
            Delta::Deleted(object) => {
                if let Some(event) = self.writer.delete(&object) {
                    self.distribute(&event);
                }
            }
            Delta::Bookmark { version } => self.writer.bookmark(version),
        }
    }

    fn distribute(&mut self, event: &Event<K>) {
        for handler in &mut self.handlers {
            tell(handler, event);
        }
    }
}

fn tell<K>(handler: &mut Handler<K>, event: &Event<K>) {
    if catch_unwind(AssertUnwindSafe(|| handler(event))).is_err() {
        tracing::error!("an event handler panicked; the event is lost to it");
    }
}
