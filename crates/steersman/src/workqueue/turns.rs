//! How much of a task's turn a key uses up.
//!
//! tokio ends a turn after 128 units of [budget](coop), of which a key costs one. A handler, which
//! awaits nothing, adds thousands in that time, so that a flood of different keys would grow to
//! millions, each in memory that is cold when a worker comes to it. So where there is such a
//! [`Backlog`], one unit buys several keys, for one task in a row: if others got keys on the same
//! thread in between, it pays again. Workers that are not [`QUICK`] pay for each key, so that nobody
//! waits much longer for his turn because of them: that one has become slow is seen after the keys that
//! it has bought. On a paused clock all are quick.

use std::cell::Cell;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::task::{self, coop};
use tokio::time::Instant;

/// How many keys one unit of budget buys where there is a backlog.
const KEYS: u32 = 16;

/// Who takes no longer for a key, on the average of those that were bought, is quick. A turn of 128
/// units thus takes four milliseconds, as long as the worker stays quick.
const QUICK: Duration = Duration::from_micros(2);

/// Whether so many keys wait that workers should hurry, until none waits. As long as all are in the
/// caches it is better that changes of a key gather before a worker comes.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    hurry: bool,
}

impl Backlog {
    /// More keys than these are a backlog.
    const BEGINS: usize = 12_288;

    /// Looks anew, as so many keys wait; tells whether to hurry.
    #[inline]
    pub(super) fn look(&mut self, waiting: usize) -> bool {
        self.hurry = waiting > if self.hurry { 0 } else { Self::BEGINS };
        self.hurry
    }
}

thread_local! {
    /// The last purchase on this thread, if it was in a hurry. It matters to the same task only, so
    /// that nothing depends on what happened here before.
    static LAST: Cell<Option<Purchase>> = const { Cell::new(None) };
}

/// Keys that a task has paid for.
#[derive(Clone, Copy)]
struct Purchase {
    task: task::Id,
    at: Instant,
    keys: u32,
    /// How many of them it may still look for.
    left: u32,
}

/// That a task may look for a key.
pub(super) struct Turn {
    /// What it paid for this one, which it gets back unless it finds something.
    paid: Option<coop::RestoreOnPending>,
}

/// Pending, and woken at once, if the task has to let others run.
pub(super) fn poll_proceed(cx: &mut Context<'_>) -> Poll<Turn> {
    if let Some(last @ Purchase { left: 1.., .. }) = LAST.get()
        && Some(last.task) == task::try_id()
    {
        LAST.set(Some(Purchase { left: last.left - 1, ..last }));
        return Poll::Ready(Turn { paid: None });
    }
    let paid = Some(ready!(coop::poll_proceed(cx)));
    Poll::Ready(Turn { paid })
}

impl Turn {
    /// The task found what it looked for, and should hurry or not.
    pub(super) fn made_progress(&self, hurry: bool) {
        let Some(budget) = &self.paid else { return };
        budget.made_progress();
        // What runs outside of tasks cannot be told apart, and pays for each key.
        let task = task::try_id().filter(|_| hurry);
        LAST.set(task.map(|task| Purchase::of(task, LAST.get())));
    }
}

impl Purchase {
    fn of(task: task::Id, last: Option<Self>) -> Self {
        let at = Instant::now();
        let last = last.filter(|last| last.task == task);
        let quick = last.is_some_and(|last| at - last.at <= last.keys * QUICK);
        let keys = if quick { KEYS } else { 1 };
        Self { task, at, keys, left: keys - 1 }
    }
}
