//! Sources that are not watches: a channel, a stream, a timer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

use super::watch::IntoWatch;
use super::{Held, KeyTable, Listener};
use crate::cache::Item;
use crate::cause::Cause;
use crate::handler::{EventHandler, Request};
use crate::informer::Event;
use crate::workqueue::Priority;

/// Where a controller's keys come from, besides the kinds that it watches:
/// `.source(Source::channel(receiver).named("callbacks"))`.
///
/// It starts with the controller and ends with it. A stream that ends is an end like any other;
/// one that panics is reported, and gives nothing more.
#[must_use = "a source does nothing until a controller has it"]
pub struct Source {
    name: Arc<str>,
    priority: Option<Priority>,
    run: Box<dyn FnOnce(Feed) -> BoxFuture<'static, ()> + Send>,
}

/// The way of a source into the queue.
struct Feed {
    name: Arc<str>,
    priority: Option<Priority>,
    keys: Arc<KeyTable>,
}

impl Feed {
    fn request(&self, request: Request) {
        let cause = Cause::Source(Arc::clone(&self.name));
        let priority = request.priority.or(self.priority).unwrap_or_default();
        self.keys.request(request.key, None, cause, priority);
    }
}

impl Source {
    fn new(name: &str, run: impl FnOnce(Feed) -> BoxFuture<'static, ()> + Send + 'static) -> Self {
        Self { name: name.into(), priority: None, run: Box::new(run) }
    }

    /// The keys, or [`Request`]s with priorities, that come through a channel. A channel has a
    /// limit; whoever sends waits for the controller to start, and seldom for anything else.
    pub fn channel<R: Into<Request> + Send + 'static>(receiver: mpsc::Receiver<R>) -> Self {
        Self::stream(receive(receiver)).named("channel")
    }

    /// The keys, or [`Request`]s with priorities, that a stream gives.
    pub fn stream<R: Into<Request>>(requests: impl Stream<Item = R> + Send + 'static) -> Self {
        Self::new("stream", |feed| {
            let each = requests.for_each(move |request| {
                feed.request(request.into());
                std::future::ready(())
            });
            Box::pin(each)
        })
    }

    /// The objects that a stream points at, each as a [generic event](Event::Generic), for a
    /// handler to say whom it concerns. They need not exist in the cluster.
    pub fn generic<W: IntoWatch>(
        watch: W,
        objects: impl Stream<Item = W::Object> + Send + 'static,
        handler: impl EventHandler<W::Object>,
    ) -> Self {
        let watch = watch.into_watch();
        let priority = watch.priority;
        let mut listener = Listener::new(watch, handler);
        let source = Self::new("generic events", move |feed| {
            listener.priority = feed.priority;
            let each = objects.for_each(move |object| {
                let object = Item::typed(object).cast();
                listener.handle(&feed.keys, &Event::Generic { object });
                std::future::ready(())
            });
            Box::pin(each)
        });
        Self { priority, ..source }
    }

    /// The keys that `keys` names, again and again after this time.
    pub fn every<I>(period: Duration, mut keys: impl FnMut() -> I + Send + 'static) -> Self
    where
        I: IntoIterator<Item: Into<Request>>,
    {
        Self::new("timer", move |feed| {
            Box::pin(async move {
                let period = period.max(Duration::from_millis(1));
                let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                loop {
                    ticks.tick().await;
                    let keys: Vec<Request> = keys().into_iter().map(Into::into).collect();
                    keys.into_iter().for_each(|request| feed.request(request));
                }
            })
        })
    }

    /// Names the source: the cause of the reconciles that it leads to.
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// How urgent its keys are, unless a request says otherwise.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    pub(in crate::controller) fn attach(self) -> super::Attach {
        Box::new(move |_, keys| {
            let Self { name, priority, run } = self;
            let feed = Feed { name: Arc::clone(&name), priority, keys };
            let work = async move {
                if AssertUnwindSafe(run(feed)).catch_unwind().await.is_err() {
                    tracing::error!(source = &*name, "a source panicked; it gives nothing more");
                }
            };
            Box::pin(std::future::ready(Held::task(work)))
        })
    }
}

/// What comes through a channel, as a stream.
pub fn receive<T>(mut receiver: mpsc::Receiver<T>) -> impl Stream<Item = T> {
    futures::stream::poll_fn(move |context| receiver.poll_recv(context))
}
