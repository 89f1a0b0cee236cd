//! The work queue: which keys want attention, each at most once, each by one worker at a time.
//!
//! In thin layers, each of which can be understood alone: the `core` is the queue as pure state
//! (deduplication, priorities, delays), the `waiters` decide who is woken, `wait` has the
//! futures that workers await, `turns` says for how many keys in a row, the `retries` and
//! [`RateLimiter`]s say how long a key that failed waits. [`WorkQueue`] puts them behind one lock,
//! from which threads stay away while it is `crowd`ed. The only user code that runs under it is
//! `Clone` and `Eq` of the [`Key`].
//!
//! ```
//! # use steersman::workqueue::WorkQueue;
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let queue = WorkQueue::default();
//! queue.add("default/web".to_owned()); // from a handler
//! queue.shut_down_with_drain(); // or never
//! while let Some(key) = queue.get().await {
//!     match work_on(&key).await {
//!         Ok(()) => queue.forget(&key),
//!         Err(_) if queue.num_requeues(&key) < 5 => queue.add_rate_limited(key.clone()),
//!         Err(_) => queue.forget(&key), // given up
//!     }
//!     queue.done(&key);
//! }
//! # });
//! # async fn work_on(_: &str) -> Result<(), ()> { Ok(()) }
//! ```

mod builder;
mod core;
mod crowd;
mod dump;
pub(crate) mod metrics;
mod priority;
mod rate_limit;
mod retries;
mod sync;
mod time;
mod turns;
mod wait;
mod waiters;

use std::fmt::{self, Debug};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;

use hashbrown::DefaultHashBuilder;

use self::core::{Core, Phase, Request};
use builder::GroupOf;
pub use builder::WorkQueueBuilder;
pub use dump::{Dump, KeyDump, KeyState};
use metrics::QueueMetrics;
#[cfg(test)]
use priority::HEAD_START;
pub use priority::Priority;
use rate_limit::Guarded;
pub use rate_limit::{ExponentialBackoff, FastSlow, MaxOf, RateLimiter, TokenBucket, WithMaxWait};
use retries::{Failure, Retries};
use sync::Mutex;
use time::{Clock, Tick};
use turns::Backlog;
pub use wait::{Drain, Get};
use waiters::Waiters;

/// Nothing is delayed longer than this; what is further away comes early, which does no harm.
const LONGEST_DELAY: Duration = Duration::from_secs(30 * 24 * 3600);

/// What a queue can hold: keys, not objects.
///
/// `Clone` and `Eq` are called under a lock of the queue, and so is `Hash` for keys that have
/// failed: they should be quick, must not use the queue, and must not panic. A key whose `clone`
/// panics in [`WorkQueue::get`] counts as worked on until [`WorkQueue::done`].
pub trait Key: Clone + Eq + Hash + Debug + Send + 'static {}

impl<T: Clone + Eq + Hash + Debug + Send + 'static> Key for T {}

/// How a key is added, for [`WorkQueue::add_with`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// How long to wait before; not at all unless said otherwise.
    pub after: Duration,
    /// Whether the key has failed and waits at least as long as its failures demand.
    pub rate_limited: bool,
    /// How urgent it is. If not said: [`Priority::NORMAL`] for a key that is wanted now; a key
    /// that is wanted later keeps the priority that it has.
    pub priority: Option<Priority>,
}

/// A queue of keys. Cheap to clone; all clones are the same queue.
pub struct WorkQueue<T: Key> {
    shared: Arc<Shared<T>>,
}

/// What the clones of a queue share.
struct Shared<T: Key> {
    /// Never held across an await or a call to user code other than `Clone` and `Eq` of keys.
    state: Mutex<State<T>>,
    clock: Clock,
    /// Keys are hashed before the lock is taken.
    hasher: DefaultHashBuilder,
    group_of: Option<GroupOf<T>>,
    limiter: Guarded<T>,
    retries: Retries<T>,
    name: Arc<str>,
    metrics: Option<QueueMetrics>,
}

/// What the lock protects.
struct State<T: Key> {
    core: Core<T>,
    waiters: Waiters,
    backlog: Backlog,
}

/// A key and what was found out about it before the lock was taken.
#[derive(Debug)]
struct Hashed<T> {
    key: T,
    hash: u64,
    group: u64,
}

impl<T: Key> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T: Key> Default for WorkQueue<T> {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl<T: Key> Debug for WorkQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("WorkQueue");
        text.field("name", &self.shared.name).field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T: Key> WorkQueue<T> {
    /// An empty queue whose retries `limiter` spaces out.
    pub fn new(limiter: impl RateLimiter<T> + 'static) -> Self {
        Self::builder().rate_limiter(limiter).build()
    }

    /// Begins a queue that has a name, metrics, or groups that take turns:
    /// `WorkQueue::builder().name("web").metrics(&metrics).build()`.
    pub fn builder() -> WorkQueueBuilder<T> {
        WorkQueueBuilder::new()
    }

    /// Asks for work on `key` now. A key that waits already is not added again; one that is
    /// being worked on runs once more afterwards.
    pub fn add(&self, key: T) {
        self.insert(key, Duration::ZERO, Some(Priority::NORMAL));
    }

    /// Asks for work on `key` after a while, 30 days at most. The earliest of several
    /// times counts, and now is the earliest.
    pub fn add_after(&self, key: T, delay: Duration) {
        self.add_with(key, AddOptions { after: delay, ..AddOptions::default() });
    }

    /// Asks for work on `key` after the delay that its failures so far demand.
    ///
    /// This counts as a failure, unless the key comes from a retry that was early, which is
    /// said best before [`done`](Self::done): if the run began (or, if the key is not worked on,
    /// if it is now) before the delay of the last failure had passed, only the rest of that
    /// delay is waited for.
    ///
    /// A [`RateLimiter`] that panics makes the key wait for a second.
    pub fn add_rate_limited(&self, key: T) {
        self.add_with(key, AddOptions { rate_limited: true, ..AddOptions::default() });
    }

    /// Asks for work on `key` as the options say. Of several requests for a key the earliest
    /// time and the highest priority count.
    pub fn add_with(&self, key: T, options: AddOptions) {
        let shared = &*self.shared;
        let mut delay = options.after;
        if options.rate_limited {
            let began = || {
                let hash = shared.hasher.hash_one(&key);
                shared.state.lock().core.running_since(&key, hash)
            };
            let failure = Failure { now: shared.clock.now(), began };
            delay = delay.max(shared.retries.failed(&key, failure, &shared.limiter));
        }
        let later = options.rate_limited || !delay.is_zero();
        if let Some(metrics) = shared.metrics.as_ref().filter(|_| later) {
            metrics.retried();
        }
        let priority = options.priority.or((!later).then_some(Priority::NORMAL));
        self.insert(key, delay, priority);
    }

    fn insert(&self, key: T, delay: Duration, priority: Option<Priority>) {
        let shared = &*self.shared;
        let hash = shared.hasher.hash_one(&key);
        let group = shared.group_of.as_ref().map_or(0, |group_of| group_of(&key));
        let timed = shared.time_if_measured();
        // A key that the queue has already is dropped here, not under the lock.
        let _spare = shared.step(|state| {
            let now = shared.time_if(timed, state.core.needs_time(priority) || !delay.is_zero());
            let due = (!delay.is_zero()).then(|| now.after(delay.min(LONGEST_DELAY)));
            state.core.add(Hashed { key, hash, group }, Request { now, due, priority })
        });
    }

    /// Forgets the failures of `key`: it has succeeded, or is given up.
    pub fn forget(&self, key: &T) {
        self.shared.retries.forget(key);
        self.shared.limiter.forget(key);
    }

    /// How often `key` has failed since it was last forgotten.
    pub fn num_requeues(&self, key: &T) -> u32 {
        self.shared.limiter.failures(key)
    }

    /// Waits for the next key; `None` once the queue is shut down. The caller must say
    /// [`done`](Self::done) with it.
    ///
    /// The future can be dropped at any time and nothing is lost. It needs tokio's timer only
    /// if keys are added for later. Under tokio it is pending now and then although a key is
    /// ready, so that other tasks get their turn.
    pub fn get(&self) -> Get<'_, T> {
        Get::new(self)
    }

    /// Ends the work on a key. If it was added meanwhile, it waits for a worker again.
    pub fn done(&self, key: &T) {
        let shared = &*self.shared;
        let hash = shared.hasher.hash_one(key);
        let done = shared.step(|state| {
            shared.catch_up(&mut state.core);
            state.core.done(key, hash)
        });
        let since = done.running_since.and_then(Tick::known);
        if let (Some(metrics), Some(since)) = (&shared.metrics, since) {
            metrics.worked(shared.clock.now().since(since));
        }
    }

    /// How many keys are ready and wait for a worker.
    pub fn len(&self) -> usize {
        self.shared.step(|state| {
            self.shared.catch_up(&mut state.core);
            state.core.ready()
        })
    }

    /// Whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stops at once: no key is accepted or given out any more, what waits is forgotten, and
    /// waiting workers get `None`. Keys that are being worked on can still be said
    /// [`done`](Self::done) with.
    pub fn shut_down(&self) {
        let _forgotten = self.shared.step(|state| state.core.stop());
    }

    /// Finishes what there is: no key is accepted any more and what was wanted later is
    /// forgotten, but ready keys are still given out, and those that were added while they were
    /// worked on run once more. Then workers get `None`.
    ///
    /// This takes effect at the call. Awaiting the future waits until the last key is
    /// [`done`](Self::done): for ever if a worker never says so, so put a time limit around it
    /// and call [`shut_down`](Self::shut_down) when it has passed.
    pub fn shut_down_with_drain(&self) -> Drain<'_, T> {
        let _forgotten = self.shared.step(|state| {
            self.shared.catch_up(&mut state.core);
            state.core.drain()
        });
        Drain::new(self)
    }

    /// Whether the queue was shut down, in either way.
    pub fn is_shutting_down(&self) -> bool {
        self.shared.state.lock().core.phase() != Phase::Open
    }

    fn assemble(builder: WorkQueueBuilder<T>, metrics: Option<QueueMetrics>) -> Self {
        let core = Core::new(builder.group_of.is_some());
        let shared = Shared {
            state: Mutex::new(State {
                core,
                waiters: Waiters::default(),
                backlog: Backlog::default(),
            }),
            clock: Clock::start(),
            hasher: DefaultHashBuilder::default(),
            group_of: builder.group_of,
            limiter: Guarded::new(builder.limiter),
            retries: Retries::default(),
            name: builder.name,
            metrics,
        };
        Self { shared: Arc::new(shared) }
    }
}

impl<T: Key> Shared<T> {
    /// Changes the state under the lock, then wakes whoever has something to do because of it.
    #[inline]
    fn step<R>(&self, change: impl FnOnce(&mut State<T>) -> R) -> R {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let result = change(state);
        let wakes = state.waiters.rouse(&mut state.core);
        if let Some(metrics) = &self.metrics {
            metrics.added(state.core.adds);
        }
        drop(guard);
        wakes.wake();
        result
    }

    /// The time, if metrics want it. To be called before the lock is taken.
    fn time_if_measured(&self) -> Tick {
        if self.metrics.is_some() { self.clock.now() } else { Tick::UNTIMED }
    }

    /// The time, if it is needed and not known yet.
    fn time_if(&self, known: Tick, needed: bool) -> Tick {
        if needed && known == Tick::UNTIMED { self.clock.now() } else { known }
    }

    /// Makes ready what is due; reads the clock only if something is delayed.
    fn catch_up(&self, core: &mut Core<T>) {
        if core.has_delayed() {
            core.advance(self.clock.now());
        }
    }

    fn observe_wait(&self, waited: Duration) {
        if let Some(metrics) = &self.metrics {
            metrics.waited(waited);
        }
    }
}

#[cfg(test)]
mod tests;
