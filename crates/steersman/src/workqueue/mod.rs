//! The work queue: which keys want attention, each at most once, each by one worker at a time.
//!
//! In thin layers: [`fifo`] (deduplication, dirty and processing sets), [`delay`] (a key may
//! come later), [`rate_limit`] (how much later after failures). [`WorkQueue`] puts them behind
//! one lock and lets workers wait.

mod delay;
mod fifo;
mod rate_limit;

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use delay::Delayed;
use fifo::Fifo;
pub use rate_limit::{ExponentialBackoff, RateLimiter};

/// What a queue can hold: keys, not objects.
pub trait Key: Clone + Eq + Hash + Ord + Debug + Send + 'static {}

impl<T: Clone + Eq + Hash + Ord + Debug + Send + 'static> Key for T {}

/// A queue of keys. Cheap to clone; all clones are the same queue.
pub struct WorkQueue<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    /// Never held across an await or a call to user code.
    state: Mutex<State<T>>,
    /// Wakes one waiting worker for each key that became ready.
    ready: Notify,
    /// Wakes every worker: the earliest delay changed, or the queue shut down.
    changed: Notify,
}

struct State<T> {
    fifo: Fifo<T>,
    delayed: Delayed<T>,
    limiter: Box<dyn RateLimiter<T>>,
    /// When the last retry of a failing key is due. A failure before that is no new one: the
    /// key was only tried again early.
    retries: HashMap<T, Instant>,
    shut_down: bool,
}

impl<T> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T: Key> Default for WorkQueue<T> {
    fn default() -> Self {
        Self::new(ExponentialBackoff::default())
    }
}

impl<T: Key> WorkQueue<T> {
    /// An empty queue whose retries `limiter` spaces out.
    pub fn new(limiter: impl RateLimiter<T> + 'static) -> Self {
        let state = State {
            fifo: Fifo::default(),
            delayed: Delayed::default(),
            limiter: Box::new(limiter),
            retries: HashMap::new(),
            shut_down: false,
        };
        let (ready, changed) = (Notify::new(), Notify::new());
        Self { shared: Arc::new(Shared { state: Mutex::new(state), ready, changed }) }
    }

    /// Asks for work on `key` now. A key that waits already is not added again; one that is
    /// being worked on runs once more afterwards.
    pub fn add(&self, key: T) {
        let mut state = self.lock();
        if state.shut_down {
            return;
        }
        state.delayed.remove(&key);
        if state.fifo.add(key) {
            self.shared.ready.notify_one();
        }
    }

    /// Asks for work on `key` after a while. The earliest of several times counts.
    pub fn add_after(&self, key: T, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        let mut state = self.lock();
        if state.shut_down || state.fifo.is_waiting(&key) {
            return;
        }
        state.delayed.add(key, Instant::now(), delay);
        self.shared.changed.notify_waiters();
    }

    /// Asks for work on `key` after the delay that its failures so far demand.
    pub fn add_rate_limited(&self, key: T) {
        let delay = {
            let (now, mut guard) = (Instant::now(), self.lock());
            let state = &mut *guard;
            match state.retries.get(&key).filter(|due| **due > now) {
                Some(due) => *due - now,
                None => {
                    let delay = state.limiter.failed(&key);
                    state.retries.insert(key.clone(), now + delay);
                    delay
                }
            }
        };
        self.add_after(key, delay);
    }

    /// Forgets the failures of `key`: it has succeeded.
    pub fn forget(&self, key: &T) {
        let mut state = self.lock();
        state.retries.remove(key);
        state.limiter.forget(key);
    }

    /// How often `key` has failed since it was last forgotten.
    pub fn num_requeues(&self, key: &T) -> u32 {
        self.lock().limiter.failures(key)
    }

    /// Waits for the next key; `None` once the queue is shut down. The caller must say
    /// [`done`](Self::done) with it. Cancel-safe.
    pub async fn get(&self) -> Option<T> {
        loop {
            // Registered before the state is read, so that no wake-up falls in between.
            let changed = self.shared.changed.notified();
            let due = match self.try_get() {
                Ok(next) => return next,
                Err(due) => due,
            };
            tokio::select! {
                () = self.shared.ready.notified() => {}
                () = changed => {}
                () = until(due) => {}
            }
        }
    }

    /// The next key, or when to look again.
    fn try_get(&self) -> Result<Option<T>, Option<Instant>> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.shut_down {
            return Ok(None);
        }
        for key in state.delayed.due(Instant::now()) {
            state.fifo.add(key);
        }
        match state.fifo.take() {
            Some(key) => {
                if state.fifo.len() > 0 {
                    self.shared.ready.notify_one(); // a delayed batch became ready together
                }
                Ok(Some(key))
            }
            None => Err(state.delayed.next()),
        }
    }

    /// Ends the work on a key.
    pub fn done(&self, key: &T) {
        if self.lock().fifo.done(key) {
            self.shared.ready.notify_one();
        }
    }

    /// How many keys are ready and wait for a worker.
    pub fn len(&self) -> usize {
        self.lock().fifo.len()
    }

    /// Whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stops giving out keys and accepting them; waiting workers get `None`.
    pub fn shut_down(&self) {
        self.lock().shut_down = true;
        self.shared.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sleeps until then, or for ever.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
