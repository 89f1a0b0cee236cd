//! One handler of an informer: its queue, its task, and the handle by which it is removed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::cache::{Event, Untyped};
use crate::delta_queue::{self, Coalesce, Merged, Mode, Observer, Receiver, Sender};
use crate::object::{ErasedObject, ObjectKey};

/// Events that wait for a handler, complete and in order; beyond that they are merged.
const IN_ORDER: usize = 1024;
/// Events that a handler takes at a time.
const BATCH: usize = 128;

/// Is called with every change of a kind. It should only note what changed, such as a key in a queue.
pub(super) enum Handler {
    Plain(PlainHandler),
    /// The next event waits until the future is ready.
    Async(AsyncHandler),
}

/// A handler that does not wait.
pub(crate) type PlainHandler = Box<dyn FnMut(&Event<Untyped>) + Send>;

/// A handler that may wait.
pub(crate) type AsyncHandler = Box<dyn FnMut(Event<Untyped>) -> BoxFuture<'static, ()> + Send>;

/// How a handler is called.
#[derive(Clone, Copy, Debug)]
pub struct HandlerOptions {
    /// Resyncs it this often, or up to a tenth later: it gets every object again. Zero is never.
    pub resync: Option<Duration>,
    /// So many events wait for it, complete and in order; beyond that, events of one object
    /// are merged into one.
    pub in_order: usize,
    /// The handler may block, as on a lock or a disk: it gets a thread of its own. Others run on
    /// the threads of the runtime, where whoever blocks holds up unrelated work. On a paused
    /// clock, such a thread keeps time from advancing by itself.
    pub blocking: bool,
}

impl Default for HandlerOptions {
    fn default() -> Self {
        Self { resync: None, in_order: IN_ORDER, blocking: false }
    }
}

/// A handler that was added to an informer. Dropping this does not remove it.
pub struct Registration {
    pub(super) progress: watch::Receiver<HandlerProgress>,
    leave: CancellationToken,
}

/// How far a handler has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HandlerProgress {
    /// It has got the whole first list.
    pub(super) synced: bool,
    /// It will not be called again.
    pub(super) ended: bool,
}

impl Registration {
    /// Whether the handler has got every object of the first list.
    pub(crate) fn has_synced(&self) -> bool {
        self.progress.borrow().synced
    }

    /// Waits until the handler has got every object of the first list, or will not any more.
    pub async fn synced(&self) {
        let mut progress = self.progress.clone();
        // An error means that the handler has ended.
        let _ = progress.wait_for(|progress| progress.synced || progress.ended).await;
    }

    /// Removes the handler when this is dropped.
    pub(crate) fn into_guard(self) -> DropGuard {
        self.leave.drop_guard()
    }

    /// Removes the handler; when this is ready, it will not be called again.
    pub async fn remove(mut self) {
        self.leave.cancel();
        let _ = self.progress.wait_for(|progress| progress.ended).await;
    }
}

/// A handler on its way into the informer.
pub(super) struct Joiner {
    pub(super) options: HandlerOptions,
    handler: Handler,
    queue: (Sender<Notification>, Receiver<Notification>),
    progress: watch::Sender<HandlerProgress>,
    leave: CancellationToken,
}

/// What a handler's queue holds.
pub(super) enum Notification {
    Event(Event<Untyped>),
    /// With its object, which is decoded and would else be forgotten before the handler sees it.
    Decoded(Event<Untyped>, Arc<dyn ErasedObject>),
    /// Everything of the first list stands before this.
    Synced,
}

/// A handler, as the distributor sees it.
pub(super) struct Seat {
    pub(super) queue: Sender<Notification>,
    pub(super) leave: CancellationToken,
}

/// Makes a handler and the handle for whoever added it.
pub(super) fn join(options: HandlerOptions, handler: Handler) -> (Joiner, Registration) {
    let queue = delta_queue::channel(Mode::Coalescing { threshold: options.in_order });
    let leave = CancellationToken::new();
    let progress = watch::Sender::new(HandlerProgress::default());
    let registration = Registration { progress: progress.subscribe(), leave: leave.clone() };
    (Joiner { options, handler, queue, progress, leave }, registration)
}

impl Joiner {
    /// Starts the handler's task.
    pub(super) fn seat(self, kind: &str, stop: CancellationToken) -> Seat {
        let Self { options, handler, queue: (queue, receiver), progress, leave } = self;
        let kind = kind.to_owned();
        let work = Work { kind, handler, receiver, progress, leave: leave.clone(), stop };
        if options.blocking {
            let runtime = tokio::runtime::Handle::current();
            tokio::task::spawn_blocking(move || runtime.block_on(work.run()));
        } else {
            tokio::spawn(work.run());
        }
        Seat { queue, leave }
    }

    pub(super) fn observer(&self) -> Observer<Notification> {
        self.queue.0.observer()
    }

    pub(super) fn progress(&self) -> watch::Receiver<HandlerProgress> {
        self.progress.subscribe()
    }
}

/// The task of one handler.
struct Work {
    kind: String,
    handler: Handler,
    receiver: Receiver<Notification>,
    progress: watch::Sender<HandlerProgress>,
    leave: CancellationToken,
    stop: CancellationToken,
}

impl Work {
    async fn run(mut self) {
        let (leave, stop) = (self.leave.clone(), self.stop.clone());
        // Waited for once and not anew for each event: dozens of handlers may hear of it.
        let end = async {
            tokio::select! {
                () = leave.cancelled() => {}
                () = stop.cancelled() => {}
            }
        };
        tokio::pin!(end);
        let mut handled = 0;
        'handling: loop {
            let batch = tokio::select! {
                biased;
                () = &mut end => break,
                batch = self.receiver.pop_batch(BATCH) => batch,
            };
            if batch.is_empty() {
                break;
            }
            handled += batch.len();
            for notification in batch {
                if leave.is_cancelled() || stop.is_cancelled() {
                    break;
                }
                tokio::select! {
                    biased;
                    () = self.notify(notification) => {}
                    () = &mut end => break 'handling,
                }
            }
            if handled >= BATCH {
                handled = 0;
                tokio::task::yield_now().await; // others want to run as well
            }
        }
        self.progress.send_modify(|progress| progress.ended = true);
    }

    async fn notify(&mut self, notification: Notification) {
        let event = match notification {
            Notification::Event(event) => event,
            Notification::Decoded(event, object) => {
                event.object().keep_decoded(object);
                event
            }
            Notification::Synced => {
                return self.progress.send_modify(|progress| progress.synced = true);
            }
        };
        let survived = match &mut self.handler {
            Handler::Plain(handler) => catch_unwind(AssertUnwindSafe(|| handler(&event))).is_ok(),
            Handler::Async(handler) => {
                // The call itself is inside the future, so that its panics are caught as well.
                let call = async { handler(event.clone()).await };
                AssertUnwindSafe(call).catch_unwind().await.is_ok()
            }
        };
        if !survived {
            let kind = &*self.kind;
            tracing::error!(kind, ?event, "event handler panicked; the event is lost to it");
        }
    }
}

impl Notification {
    /// Of a change whose object is decoded, if it is.
    pub(super) fn of(event: Event<Untyped>, decoded: Option<Arc<dyn ErasedObject>>) -> Self {
        match decoded {
            Some(object) => Self::Decoded(event, object),
            None => Self::Event(event),
        }
    }

    fn into_event(self) -> Option<Event<Untyped>> {
        match self {
            Self::Event(event) | Self::Decoded(event, _) => Some(event),
            Self::Synced => None,
        }
    }
}

impl Coalesce for Notification {
    fn key(&self) -> Option<ObjectKey> {
        match self {
            Self::Event(event) | Self::Decoded(event, _) => Some(event.object().key().clone()),
            Self::Synced => None,
        }
    }

    /// What a handler that sleeps through both must get.
    fn merge(earlier: Self, later: Self) -> Merged<Self> {
        let (Some(earlier), Some(later)) = (earlier.into_event(), later.into_event()) else {
            return Merged::Nothing; // neither has a key, so the queue never asks
        };
        match merged(earlier, later) {
            Merged::Nothing => Merged::Nothing,
            Merged::One(event) => Merged::One(Self::Event(event)),
            Merged::Both(first, second) => Merged::Both(Self::Event(first), Self::Event(second)),
        }
    }
}

fn merged(earlier: Event<Untyped>, later: Event<Untyped>) -> Merged<Event<Untyped>> {
    use Event::{Added, Deleted, Resynced, Updated};
    match (earlier, later) {
        (Added { initial, .. }, Updated { new: object, .. }) => {
            Merged::One(Added { object, initial })
        }
        // The handler never got it.
        (Added { .. }, Deleted { .. }) => Merged::Nothing,
        (Updated { old, .. }, Updated { new, .. }) => Merged::One(Updated { old, new }),
        (Resynced { .. }, later) => Merged::One(later),
        (earlier @ (Added { .. } | Updated { .. }), Resynced { .. }) => Merged::One(earlier),
        // Another object took the name: the deletion of its predecessor must not be lost. Nor must what an
        // object was before its last change, such as its labels: who is told of its end by what it was in
        // the end would not find whom it belonged to.
        (earlier, later) => Merged::Both(earlier, later),
    }
}
