//! The delta queue: what happened, on its way from those who learn of it to the one who acts.
//!
//! It stands between a [`reflector`](crate::reflector) and a cache, and between an informer and
//! each of its handlers. Events leave in the order in which they came, in batches that are taken
//! out before anybody works on them, so nothing of the consumer ever runs under the queue's lock.
//!
//! What happens when the consumer is slower than the producers is its [`Mode`]: either producers
//! wait, and the pressure reaches the socket, or events of one object are merged, as the classic
//! `DeltaFIFO` does, so that what waits is bounded by the number of objects.
//!
//! The queue ends from either side: producers fail once the [`Receiver`] is gone, the consumer
//! gets what still waits and then an empty batch once every [`Sender`] is gone.

mod waiting;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::object::ObjectKey;
use waiting::Waiting;

/// An event that can be merged with another of the same object.
///
/// All its functions run while the queue is locked or about to be: they must be quick and must
/// not touch the queue.
pub(crate) trait Coalesce: Sized {
    /// Which object the event is about; `None` if it is about all of them.
    fn key(&self) -> Option<ObjectKey>;

    /// Two events of one object become one, or none, or stay two. Replaying the result must lead
    /// to the same state as replaying both. At most two events of an object should stay in the
    /// long run: only then what waits is bounded by the number of objects.
    fn merge(earlier: Self, later: Self) -> Merged<Self>;

    /// What an event without a key means to the others that wait.
    fn sweep(&self) -> Sweep {
        Sweep::Barrier
    }
}

/// What became of two events of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merged<E> {
    /// They cancel each other.
    Nothing,
    /// This one says it all.
    One(E),
    /// Both are needed, in this order.
    Both(E, E),
}

/// What an event that is about no single object means to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// Nothing is merged across it.
    Barrier,
    /// It says how far things are: merging goes on across it, and the latest is enough.
    Mark,
    /// It is a whole new list: what waits before it is superfluous.
    Reset,
}

/// What happens when the consumer is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Every event is kept, in order; a producer waits while so many are waiting.
    InOrder {
        /// The most events that wait; at least one, at most [`Semaphore::MAX_PERMITS`].
        capacity: usize,
    },
    /// A producer never waits. Every event is kept, in order, up to a number; from there on,
    /// events of one object are merged.
    ///
    /// A merged event takes the place of its earlier half, before events of other objects that
    /// are older than it. In front of a cache this makes versions approximate: that the cache
    /// has seen an event of some version does not mean that it has seen all older ones, until
    /// the queue has been emptied. Events without a key that are a [`Sweep::Barrier`] (such as a
    /// whole state from which objects were skipped) are all kept.
    Coalescing {
        /// How many events wait before merging begins; zero merges always.
        threshold: usize,
    },
}

/// Makes a queue: the side that pushes and the side that pops.
pub(crate) fn channel<E: Coalesce>(mode: Mode) -> (Sender<E>, Receiver<E>) {
    let (capacity, threshold) = match mode {
        Mode::InOrder { capacity } => {
            let capacity = capacity.clamp(1, Semaphore::MAX_PERMITS);
            (Some(Semaphore::new(capacity)), usize::MAX)
        }
        Mode::Coalescing { threshold } => (None, threshold),
    };
    let shared = Arc::new(Shared {
        waiting: Mutex::new(Waiting::new(threshold)),
        capacity,
        arrived: Notify::new(),
        closed: CancellationToken::new(),
        senders: AtomicUsize::new(1),
        merged: AtomicU64::new(0),
    });
    (Sender { shared: Arc::clone(&shared) }, Receiver { shared })
}

/// The queue is closed, or its consumer is gone: the event was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the delta queue is closed")]
pub(crate) struct Closed;

/// Why an event was not taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TryPushError<E> {
    /// As many events wait as may.
    #[error("the delta queue is full")]
    Full(E),
    /// The queue is closed, or its consumer is gone.
    #[error("the delta queue is closed")]
    Closed,
}

/// How a queue is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    /// How many events wait.
    pub len: usize,
    /// How many events were merged into others since the queue was made.
    pub merged: u64,
    /// How long the oldest event has been waiting.
    pub oldest: Option<Duration>,
}

struct Shared<E> {
    waiting: Mutex<Waiting<E>>,
    /// One permit for each event that may still be pushed; `None` never lets anyone wait.
    capacity: Option<Semaphore>,
    /// Wakes the one consumer.
    arrived: Notify,
    /// Wakes producers that wait for the end; whether it has come stands in `waiting`.
    closed: CancellationToken,
    senders: AtomicUsize,
    merged: AtomicU64,
}

impl<E> Shared<E> {
    fn lock(&self) -> MutexGuard<'_, Waiting<E>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.lock().closed = true;
        self.closed.cancel();
        if let Some(capacity) = &self.capacity {
            capacity.close();
        }
        self.arrived.notify_one();
    }

    fn stats(&self) -> Stats {
        let (len, oldest) = {
            let waiting = self.lock();
            (waiting.len(), waiting.oldest())
        };
        let merged = self.merged.load(Ordering::Relaxed);
        Stats { len, merged, oldest: oldest.map(|since| since.elapsed()) }
    }
}

impl<E: Coalesce> Shared<E> {
    fn append(&self, event: E) -> Result<(), Closed> {
        let now = Instant::now();
        let merged = {
            let mut waiting = self.lock();
            if waiting.closed {
                return Err(Closed);
            }
            waiting.push(event, now)
        };
        if merged > 0 {
            self.merged.fetch_add(merged, Ordering::Relaxed);
        }
        self.arrived.notify_one();
        Ok(())
    }
}

/// Pushes events. Clones feed the same queue; when the last one is dropped, the queue ends.
pub(crate) struct Sender<E> {
    shared: Arc<Shared<E>>,
}

impl<E: Coalesce> Sender<E> {
    /// Puts an event into the queue, waiting for room where the [`Mode`] wants it. An event is
    /// in the queue once this is ready; a dropped future has put in nothing.
    pub(crate) async fn push(&self, event: E) -> Result<(), Closed> {
        if let Some(capacity) = &self.shared.capacity {
            capacity.acquire().await.map_err(|_| Closed)?.forget();
        }
        self.shared.append(event)
    }

    /// Puts an event into the queue without waiting. Fails with [`TryPushError::Full`] only in
    /// [`Mode::InOrder`].
    pub(crate) fn try_push(&self, event: E) -> Result<(), TryPushError<E>> {
        if let Some(capacity) = &self.shared.capacity {
            match capacity.try_acquire() {
                Ok(permit) => permit.forget(),
                Err(tokio::sync::TryAcquireError::NoPermits) => {
                    return Err(TryPushError::Full(event));
                }
                Err(tokio::sync::TryAcquireError::Closed) => return Err(TryPushError::Closed),
            }
        }
        self.shared.append(event).map_err(|Closed| TryPushError::Closed)
    }
}

impl<E> Sender<E> {
    /// Refuses further events; those that wait can still be taken.
    #[cfg(test)]
    pub(crate) fn close(&self) {
        self.shared.close();
    }

    /// Ready once the queue is closed or its consumer is gone.
    pub(crate) async fn closed(&self) {
        self.shared.closed.cancelled().await;
    }

    /// How many events wait.
    pub(crate) fn len(&self) -> usize {
        self.shared.lock().len()
    }

    /// Whether none waits.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Looks at the queue without keeping it open.
    pub(crate) fn observer(&self) -> Observer<E> {
        Observer { shared: Arc::clone(&self.shared) }
    }
}

impl<E> Clone for Sender<E> {
    fn clone(&self) -> Self {
        self.shared.senders.fetch_add(1, Ordering::Relaxed);
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<E> Drop for Sender<E> {
    fn drop(&mut self) {
        if self.shared.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.close();
        }
    }
}

/// Takes events. There is one per queue.
pub(crate) struct Receiver<E> {
    shared: Arc<Shared<E>>,
}

impl<E> Receiver<E> {
    /// Waits until there are events and takes up to `max` of them, in order. An empty batch
    /// means that there will never be any more. A dropped future has taken nothing.
    pub(crate) async fn pop_batch(&mut self, max: usize) -> Vec<E> {
        loop {
            let (batch, closed) = self.take(max);
            if !batch.is_empty() || closed {
                return batch;
            }
            self.shared.arrived.notified().await;
        }
    }

    /// Takes up to `max` of the events that are there.
    #[cfg(test)]
    pub(crate) fn try_pop_batch(&mut self, max: usize) -> Vec<E> {
        self.take(max).0
    }

    /// Takes what is there, and tells whether more can come.
    fn take(&mut self, max: usize) -> (Vec<E>, bool) {
        let taken = {
            let mut waiting = self.shared.lock();
            (waiting.pop_batch(max.max(1)), waiting.closed)
        };
        if let Some(capacity) = &self.shared.capacity {
            capacity.add_permits(taken.0.len());
        }
        taken
    }

    /// Looks at the queue without keeping it open.
    #[cfg(test)]
    pub(crate) fn observer(&self) -> Observer<E> {
        Observer { shared: Arc::clone(&self.shared) }
    }
}

impl<E> Drop for Receiver<E> {
    fn drop(&mut self) {
        self.shared.close();
        // Nobody will take these; dropped outside the lock.
        let rest = self.shared.lock().pop_batch(usize::MAX);
        drop(rest);
    }
}

/// Sees how a queue is doing; neither a producer nor a consumer.
pub(crate) struct Observer<E> {
    shared: Arc<Shared<E>>,
}

impl<E> Observer<E> {
    /// How the queue is doing now.
    pub(crate) fn stats(&self) -> Stats {
        self.shared.stats()
    }
}

impl<E> Clone for Observer<E> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

#[cfg(test)]
mod tests;
