//! The futures of a queue: waiting for a key, and for the end of the last one.
//!
//! Both may be dropped at any time. A worker that was woken and goes away without a key passes
//! the wake on, so that no key waits while another worker sleeps.
//!
//! Getting a key uses up some of the task's [turn](turns), so that workers of a queue that is never
//! empty let other tasks run. Outside of tokio there are no turns, and none are needed.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::turns;

use super::core::Taken;
use super::time::{Tick, Timer};
use super::waiters::WaiterId;
use super::{Key, State, WorkQueue};

/// Waits for a key; see [`WorkQueue::get`].
#[must_use = "futures do nothing unless polled"]
pub struct Get<'a, T: Key> {
    queue: &'a WorkQueue<T>,
    /// As long as this waits.
    waiter: Option<WaiterId>,
    timer: Timer,
}

/// What a worker finds.
enum Found<T> {
    Key {
        taken: Taken<T>,
        now: Tick,
        /// Whether so many others wait that the worker should hurry.
        hurry: bool,
    },
    Ended,
    /// Nothing; who is told a time looks again then.
    Nothing(Option<Tick>),
}

impl<'a, T: Key> Get<'a, T> {
    pub(super) fn new(queue: &'a WorkQueue<T>) -> Self {
        Self { queue, waiter: None, timer: Timer::default() }
    }

    fn look(&mut self, cx: &Context<'_>) -> Found<T> {
        let shared = &*self.queue.shared;
        let timed = shared.time_if_measured();
        shared.step(|State { core, waiters, backlog }| {
            let now = shared.time_if(timed, core.has_delayed() || shared.retries.any());
            // Forgotten before the key's `clone` runs: if that panics, this has come already.
            let waiter = self.waiter.take();
            if let Some(id) = waiter {
                waiters.came(id);
            }
            if let Some(taken) = core.take(now) {
                let hurry = backlog.look(core.ready());
                return Found::Key { taken, now, hurry };
            }
            if core.has_ended() {
                return Found::Ended;
            }
            let id = waiter.unwrap_or_else(|| waiters.new_id());
            self.waiter = Some(id);
            Found::Nothing(waiters.wait(id, cx.waker(), core.next_due()))
        })
    }
}

impl<T: Key> Future for Get<'_, T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        let turn = ready!(turns::poll_proceed(cx));
        let clock = this.queue.shared.clock;
        loop {
            match this.look(cx) {
                Found::Key { taken, now, hurry } => {
                    turn.made_progress(hurry);
                    this.queue.shared.observe_wait(now.since(taken.waited_since));
                    return Poll::Ready(Some(taken.key));
                }
                Found::Ended => {
                    turn.made_progress(false);
                    return Poll::Ready(None);
                }
                Found::Nothing(None) => return Poll::Pending,
                Found::Nothing(Some(due)) => {
                    if this.timer.poll_until(clock, due, cx).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl<T: Key> Drop for Get<'_, T> {
    fn drop(&mut self) {
        if let Some(id) = self.waiter.take() {
            self.queue.shared.step(|state| state.waiters.came(id));
        }
    }
}

/// Waits until the last key is done; see [`WorkQueue::shut_down_with_drain`].
#[must_use = "the queue drains without it, but only this tells when it is empty"]
pub struct Drain<'a, T: Key> {
    queue: &'a WorkQueue<T>,
    waiter: Option<WaiterId>,
}

impl<'a, T: Key> Drain<'a, T> {
    pub(super) fn new(queue: &'a WorkQueue<T>) -> Self {
        Self { queue, waiter: None }
    }
}

impl<T: Key> Future for Drain<'_, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let queue = self.queue;
        queue.shared.step(|State { core, waiters, .. }| {
            if core.is_drained() {
                return Poll::Ready(());
            }
            let id = *self.waiter.get_or_insert_with(|| waiters.new_id());
            waiters.wait_for_drain(id, cx.waker());
            Poll::Pending
        })
    }
}

impl<T: Key> Drop for Drain<'_, T> {
    fn drop(&mut self) {
        if let Some(id) = self.waiter.take() {
            self.queue.shared.step(|state| state.waiters.left_drain(id));
        }
    }
}
