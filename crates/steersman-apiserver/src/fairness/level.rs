//! A priority level at work: who is served, who waits, and how seats come back.
//!
//! Between [`QueueSet`], which is arithmetic, and requests, which are futures. Whoever gets a seat
//! holds a [`Seat`]; whoever waits holds a [`Wait`]. Both give back what they have when they are
//! dropped, so that a request whose client goes away loses no seat. Nobody is told of a seat while
//! the lock is held.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::counts::Counts;
use super::demand::Demand;
use super::dropped::Dropped;
use super::queues::{Arrival, Discipline, QueueSet, QueueState, Seated, Ticket};
use super::work::Work;

/// A priority level.
#[derive(Debug)]
pub(super) struct Level {
    /// What times are counted from.
    began: Instant,
    state: Mutex<State>,
    /// How many seats one request may have.
    width_max: AtomicU32,
    /// The most seats that exempt requests had at once since somebody asked.
    exempt_max: AtomicU32,
    dropped: Mutex<Dropped>,
}

#[derive(Debug)]
struct State {
    queues: QueueSet<Waiter>,
    /// Whether somebody comes back when lingering seats become free.
    tended: bool,
}

/// Who waits, and how to tell.
#[derive(Debug)]
struct Waiter {
    counts: Arc<Counts>,
    seat: oneshot::Sender<Seat>,
}

/// What becomes of a request.
pub(crate) enum Begun {
    /// It is served now.
    Seated(Seat),
    /// It has to wait.
    Waiting(Box<Wait>),
    /// It is refused.
    Refused,
}

/// The right to be served; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    counts: Arc<Counts>,
    held: Held,
}

#[derive(Debug)]
enum Held {
    /// So many seats, which nobody waits for.
    Exempt(u32),
    Seated {
        level: Arc<Level>,
        seated: Seated,
        since: Instant,
    },
    /// Nothing any more.
    Nothing,
}

/// A place in a queue; it is given up when this is dropped.
#[derive(Debug)]
pub(crate) struct Wait {
    level: Arc<Level>,
    counts: Arc<Counts>,
    ticket: Ticket,
    width: u32,
    seat: oneshot::Receiver<Seat>,
    since: Instant,
}

impl Level {
    pub(super) fn new(discipline: Discipline, limit: u32, began: Instant) -> Self {
        let queues = QueueSet::new(discipline, limit, began.elapsed());
        Self {
            began,
            state: Mutex::new(State { queues, tended: false }),
            width_max: AtomicU32::new(u32::MAX),
            exempt_max: AtomicU32::new(0),
            dropped: Mutex::default(),
        }
    }

    /// How many seats one request may have.
    pub(super) fn width_max(&self) -> u32 {
        self.width_max.load(Ordering::Relaxed)
    }

    pub(super) fn set_width_max(&self, width: u32) {
        self.width_max.store(width, Ordering::Relaxed);
    }

    pub(super) fn set_discipline(&self, discipline: Discipline) {
        self.lock().queues.set_discipline(discipline);
    }

    /// Changes how many seats there are, and lets those in for whom there are some now.
    pub(super) fn set_limit(self: &Arc<Self>, limit: u32) {
        let now = Instant::now();
        self.change(now, |queues| queues.set_limit(limit, self.at(now)));
    }

    pub(super) fn limit(&self) -> u32 {
        self.lock().queues.limit()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.lock().queues.is_idle()
    }

    pub(super) fn take_demand(&self) -> Demand {
        let exempt = self.exempt_max.swap(0, Ordering::Relaxed);
        if exempt > 0 {
            return Demand::beginning_with(exempt);
        }
        let now = self.at(Instant::now());
        self.lock().queues.take_demand(now)
    }

    pub(super) fn queue_states(&self) -> Vec<QueueState> {
        self.lock().queues.states().collect()
    }

    /// A request is refused; says after how many seconds it should come again.
    pub(super) fn refuse(&self) -> u64 {
        // Seconds are counted from long before the first, so that nothing happened lately.
        let second = 1000 + self.began.elapsed().as_secs();
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).count(second)
    }

    /// A request begins that nobody has to wait for: its seats are counted, and that is all.
    pub(super) fn begin_exempt(&self, counts: &Arc<Counts>, work: Work) -> Seat {
        let seats = work.width();
        let all = u32::try_from(counts.started(seats)).unwrap_or(0);
        if all > self.exempt_max.load(Ordering::Relaxed) {
            self.exempt_max.fetch_max(all, Ordering::Relaxed);
        }
        Seat { counts: Arc::clone(counts), held: Held::Exempt(seats) }
    }

    /// A request begins, of a flow that is dealt its queues by this hash.
    pub(super) fn begin(self: &Arc<Self>, counts: &Arc<Counts>, work: Work, hash: u64) -> Begun {
        let since = Instant::now();
        let mut receiver = None;
        let arrival = {
            let mut state = self.lock();
            state.queues.arrive(self.at(since), work, hash, || {
                let (seat, wait) = oneshot::channel();
                receiver = Some(wait);
                Waiter { counts: Arc::clone(counts), seat }
            })
        };
        match (arrival, receiver) {
            (Arrival::Seated(seated), _) => {
                counts.waited(true, Duration::ZERO);
                Begun::Seated(Seat::new(Arc::clone(self), Arc::clone(counts), seated, since))
            }
            (Arrival::Waiting(ticket), Some(seat)) => {
                let width = work.width();
                counts.enqueued(width);
                let (level, counts) = (Arc::clone(self), Arc::clone(counts));
                let wait = Wait { level, counts, ticket, width, seat, since };
                // The one that was first in line may have been too wide for what is free.
                self.change(since, |_| {});
                Begun::Waiting(Box::new(wait))
            }
            (Arrival::Refused(refusal), _) => {
                counts.refused(refusal);
                counts.waited(false, Duration::ZERO);
                Begun::Refused
            }
            (Arrival::Waiting(_), None) => Begun::Refused,
        }
    }

    /// Changes something, and seats whoever can be seated after that.
    fn change(self: &Arc<Self>, now: Instant, change: impl FnOnce(&mut QueueSet<Waiter>)) {
        let mut state = self.lock();
        change(&mut state.queues);
        let served = state.queues.dispatch(self.at(now));
        let tend = !state.tended && state.queues.due().is_some();
        state.tended |= tend;
        drop(state);
        for (Waiter { counts, seat }, seated) in served {
            // Whoever does not wait any more gives the seat back by dropping it.
            let _ = seat.send(Seat::new(Arc::clone(self), counts, seated, now));
        }
        if tend {
            self.tend();
        }
    }

    /// Comes back whenever lingering seats become free, as long as somebody waits for them.
    fn tend(self: &Arc<Self>) {
        let level = Arc::clone(self);
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            while let Some(due) = level.due() {
                tokio::time::sleep_until(level.began + due).await;
                level.change(Instant::now(), |_| {});
            }
        });
    }

    /// When to come back; without a time, the next who has to wait sees to it.
    fn due(&self) -> Option<Duration> {
        let mut state = self.lock();
        let due = state.queues.due();
        state.tended = due.is_some();
        due
    }

    /// Seats are lent from now on.
    pub(super) fn lend(self: &Arc<Self>, seats: u32) {
        let now = Instant::now();
        self.change(now, |queues| queues.lend(self.at(now), seats));
    }

    /// They are not any more.
    pub(super) fn take_back(self: &Arc<Self>, seats: u32) {
        let now = Instant::now();
        self.change(now, |queues| queues.take_back(self.at(now), seats));
    }

    fn at(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    fn new(level: Arc<Level>, counts: Arc<Counts>, seated: Seated, since: Instant) -> Self {
        counts.started(seated.width());
        Self { counts, held: Held::Seated { level, seated, since } }
    }

    /// What it can lend, and of which level; nothing, if nobody has to wait for it.
    pub(super) fn lendable(&self) -> Option<(&Arc<Level>, u32)> {
        let Held::Seated { level, seated, .. } = &self.held else { return None };
        Some((level, seated.width()))
    }

    /// Whether nobody has to wait for it.
    pub(crate) fn is_exempt(&self) -> bool {
        matches!(self.held, Held::Exempt(_))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let (level, seated, since) = match std::mem::replace(&mut self.held, Held::Nothing) {
            Held::Exempt(seats) => return self.counts.left(seats),
            Held::Nothing => return,
            Held::Seated { level, seated, since } => (level, seated, since),
        };
        let now = Instant::now();
        self.counts.ended(seated.width(), now.saturating_duration_since(since));
        level.change(now, |queues| queues.finish(level.at(now), seated));
    }
}

impl Wait {
    /// Waits for a seat, but not for ever.
    pub(crate) async fn seated(mut self, patience: Duration) -> Option<Seat> {
        let seat = tokio::time::timeout(patience, &mut self.seat).await;
        let seat = seat.ok().and_then(Result::ok);
        self.counts.waited(seat.is_some(), self.since.elapsed());
        if seat.is_none() {
            self.counts.timed_out();
        }
        seat
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.counts.dequeued(self.width);
        let now = Instant::now();
        let level = &self.level;
        level.change(now, |queues| _ = queues.withdraw(level.at(now), self.ticket));
    }
}
