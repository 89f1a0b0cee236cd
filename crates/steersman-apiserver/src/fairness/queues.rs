//! The queues of one priority level, and who is served next.
//!
//! This is fair queueing for requests, as Kubernetes has it. Every queue has a meter, `next_start`:
//! the reading of the level's common meter, `progress`, at which its next request would begin if all
//! queues that have something to do were served at once, each with an equal share of the seats. Of
//! all waiting requests the one is served next that would end first by those meters. A request is
//! charged with an estimate when it begins and with the truth when it ends.
//!
//! An example, with one seat: A has queued ten requests, each of 3 ms, and B comes with one. B's
//! meter begins at the common one, A's is ahead of it by what A was given, so B is next.
//!
//! Who waits for a webhook holds seats and does nothing. Those seats are lent to queues that have
//! nobody served, so that webhooks which ask for what there is no seat left for keep nobody waiting
//! but whoever asks them. A long list holds many seats for one core's work: all but one are lent as
//! well, one by one, so that a few lists keep nobody waiting who asks for little.
//!
//! Everything here is arithmetic: time is an argument, and who waits is whatever the caller says.
//! A queue that has nothing to do has no state, and is not kept.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

use super::deal::Deck;
use super::demand::Demand;
use super::work::{SERVICE, SeatTime, Work, seat_time};

/// What becomes of requests for which there is no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discipline {
    /// There is always one.
    Exempt,
    /// They are refused.
    Reject,
    /// They wait, so many in each queue.
    Queue {
        deck: Deck,
        /// How many may wait in one queue.
        length_max: usize,
    },
}

/// Why a request is refused, as metrics say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    ConcurrencyLimit,
    QueueFull,
}

/// What becomes of a request that arrives.
#[derive(Debug)]
pub(super) enum Arrival {
    Seated(Seated),
    /// It waits. Whoever waits may have been given a seat meanwhile: [`QueueSet::dispatch`] says.
    Waiting(Ticket),
    Refused(Refusal),
}

/// A request that has its seats. They are given back by [`QueueSet::finish`].
#[derive(Debug)]
#[must_use]
pub(super) struct Seated {
    queue: Option<u32>,
    work: Work,
    since: Duration,
}

impl Seated {
    /// How many seats it has.
    pub(super) fn width(&self) -> u32 {
        self.work.width()
    }
}

/// The place of a request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    queue: u32,
    number: u64,
}

/// The queues of a level. `W` is whoever waits.
#[derive(Debug)]
pub(super) struct QueueSet<W> {
    discipline: Discipline,
    /// How many seats there are.
    limit: u32,
    /// Those with something to do, by their index.
    queues: BTreeMap<u32, Queue<W>>,
    /// How many of them have a request that waits or is served.
    active: u32,
    /// What each queue could have been given since the beginning.
    progress: SeatTime,
    /// When that was so.
    synced: Duration,
    /// The queue that was served last.
    robin: u32,
    /// How many requests have been put into queues.
    enqueued: u64,
    /// The seats of requests that were answered and are held on.
    lingering: BinaryHeap<Reverse<Lingering>>,
    /// The seats of requests that wait for somebody else.
    away: u32,
    /// The seats, beyond one each, of requests that are served.
    wide: u32,
    load: Load,
    demand: Demand,
}

/// How much there is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// Requests that wait.
    pub(super) waiting: usize,
    /// Seats that these want.
    pub(super) waiting_seats: u32,
    /// Requests that are served.
    pub(super) executing: usize,
    /// Seats that are held, lingering ones included.
    pub(super) seats: u32,
}

#[derive(Debug)]
struct Queue<W> {
    waiting: VecDeque<Waiting<W>>,
    waiting_seats: u32,
    waiting_work: SeatTime,
    /// The reading of the common meter at which the next request begins.
    next_start: SeatTime,
    executing: usize,
    seats: u32,
}

#[derive(Debug)]
struct Waiting<W> {
    number: u64,
    who: W,
    work: Work,
    /// The reading of the common meter when it arrived.
    arrived: SeatTime,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Lingering {
    until: Duration,
    seats: u32,
    queue: Option<u32>,
}

/// One queue, as a person may want to see it.
#[derive(Debug)]
pub(super) struct QueueState {
    pub(super) index: u32,
    pub(super) waiting: usize,
    pub(super) executing: usize,
    pub(super) seats: u32,
    pub(super) next_start: SeatTime,
    pub(super) waiting_seats: u32,
    pub(super) waiting_work: SeatTime,
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            waiting_seats: 0,
            waiting_work: 0.0,
            next_start: 0.0,
            executing: 0,
            seats: 0,
        }
    }
}

impl<W> Queue<W> {
    fn is_active(&self) -> bool {
        self.executing > 0 || !self.waiting.is_empty()
    }

    fn is_idle(&self) -> bool {
        !self.is_active() && self.seats == 0
    }

    /// No request begins before it arrived, in the world of meters either: a queue that never used
    /// its share has no claim to it later.
    fn bound(&mut self) {
        if let Some(oldest) = self.waiting.front() {
            self.next_start = self.next_start.max(oldest.arrived);
        }
    }

    fn start(&mut self, work: &Work) {
        self.executing += 1;
        self.seats += work.width();
        self.next_start += work.total();
    }
}

impl<W> QueueSet<W> {
    /// A level without a request.
    pub(super) fn new(discipline: Discipline, limit: u32, now: Duration) -> Self {
        Self {
            discipline,
            limit,
            queues: BTreeMap::new(),
            active: 0,
            progress: 0.0,
            synced: now,
            robin: 0,
            enqueued: 0,
            lingering: BinaryHeap::new(),
            away: 0,
            wide: 0,
            load: Load::default(),
            demand: Demand::default(),
        }
    }

    /// Changes the rules for requests that arrive from now on. Those that wait go on waiting.
    pub(super) fn set_discipline(&mut self, discipline: Discipline) {
        self.discipline = discipline;
    }

    /// Changes how many seats there are. Nobody who has one loses it.
    pub(super) fn set_limit(&mut self, limit: u32, now: Duration) {
        self.sync(now);
        self.limit = limit;
    }

    /// How many seats there are.
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// How much there is to do.
    #[cfg(test)]
    pub(super) fn load(&self) -> Load {
        self.load
    }

    /// Whether nobody is served, waits, or lingers.
    pub(super) fn is_idle(&self) -> bool {
        self.load == Load::default()
    }

    /// What was wanted since this was last asked.
    pub(super) fn take_demand(&mut self, now: Duration) -> Demand {
        self.sync(now);
        let wanted = self.load.seats + self.load.waiting_seats;
        std::mem::replace(&mut self.demand, Demand::beginning_with(wanted))
    }

    /// The queues that have something to do.
    pub(super) fn states(&self) -> impl Iterator<Item = QueueState> + '_ {
        self.queues.iter().map(|(index, queue)| QueueState {
            index: *index,
            waiting: queue.waiting.len(),
            executing: queue.executing,
            seats: queue.seats,
            next_start: queue.next_start,
            waiting_seats: queue.waiting_seats,
            waiting_work: queue.waiting_work,
        })
    }

    /// When seats become free that nobody gives back: while somebody waits, the caller has to come
    /// back then.
    pub(super) fn due(&self) -> Option<Duration> {
        let first = self.lingering.peek().filter(|_| self.load.waiting > 0);
        first.map(|Reverse(lingering)| lingering.until)
    }

    /// A request arrives. If it has to wait, `who` says for whom.
    pub(super) fn arrive(
        &mut self,
        now: Duration,
        work: Work,
        flow: u64,
        who: impl FnOnce() -> W,
    ) -> Arrival {
        self.sync(now);
        let Discipline::Queue { deck, length_max } = self.discipline else {
            if !self.has_room(work.width()) {
                return Arrival::Refused(Refusal::ConcurrencyLimit);
            }
            return Arrival::Seated(self.seat(None, work));
        };
        let index = self.choose(deck, flow);
        if self.load.waiting == 0 && self.load.seats < self.limit && self.has_room(work.width()) {
            return Arrival::Seated(self.serve_at_once(index, work));
        }
        let idle = self.idle_card(deck, flow);
        if let Some(index) = idle.filter(|_| self.has_lent(work.width())) {
            return Arrival::Seated(self.serve_at_once(index, work));
        }
        // Nothing waits there either, and it is the first to which seats are lent.
        let index = idle.unwrap_or(index);
        if self.queues.get(&index).is_some_and(|queue| queue.waiting.len() >= length_max) {
            return Arrival::Refused(Refusal::QueueFull);
        }
        Arrival::Waiting(self.enqueue(index, work, who()))
    }

    /// Gives seats to as many as there are seats for. Whoever is told of them has to be served, or
    /// to [`finish`](Self::finish).
    pub(super) fn dispatch(&mut self, now: Duration) -> Vec<(W, Seated)> {
        let mut served = Vec::new();
        if self.load.waiting == 0 {
            return served;
        }
        self.sync(now);
        while self.load.seats < self.limit
            && let Some((index, width)) = self.next(|_| true)
            && self.has_room(width)
        {
            served.extend(self.serve_first(index));
        }
        while let Some((index, _)) = self.next(|queue| self.may_borrow(queue)) {
            served.extend(self.serve_first(index));
        }
        served
    }

    /// Requests with so many seats wait for somebody else from now on.
    pub(super) fn lend(&mut self, now: Duration, seats: u32) {
        self.sync(now);
        self.away += seats;
    }

    /// They do not any more. Whoever was let in meanwhile stays.
    pub(super) fn take_back(&mut self, now: Duration, seats: u32) {
        self.sync(now);
        self.away = self.away.saturating_sub(seats);
    }

    /// Seats a request that did not wait.
    fn serve_at_once(&mut self, index: u32, work: Work) -> Seated {
        let work = work.within(self.limit);
        let progress = self.progress;
        self.update(index, |queue| {
            if !queue.is_active() {
                queue.next_start = progress;
            }
            queue.start(&work);
        });
        self.robin = index;
        self.seat(Some(index), work)
    }

    /// Seats the first that waits in a queue.
    fn serve_first(&mut self, index: u32) -> Option<(W, Seated)> {
        let limit = self.limit;
        let (who, width, work) = self.update(index, |queue| {
            let waiting = queue.waiting.pop_front()?;
            queue.waiting_seats -= waiting.work.width();
            queue.waiting_work -= waiting.work.total();
            let width = waiting.work.width();
            let work = waiting.work.within(limit);
            queue.start(&work);
            queue.bound();
            Some((waiting.who, width, work))
        })?;
        self.load.waiting -= 1;
        self.load.waiting_seats -= width;
        self.robin = index;
        Some((who, self.seat(Some(index), work)))
    }

    /// A request was answered, or nobody wants its answer any more. Its seats are free, unless it
    /// lingers.
    #[expect(clippy::needless_pass_by_value, reason = "whoever ends has no seat any more")]
    pub(super) fn finish(&mut self, now: Duration, seated: Seated) {
        self.sync(now);
        let Seated { queue, work, since } = seated;
        self.load.executing -= 1;
        self.wide -= work.initial.saturating_sub(1);
        if let Some(index) = queue {
            let took = now.saturating_sub(since);
            let estimated = seat_time(work.initial, SERVICE);
            self.update(index, |queue| {
                queue.executing -= 1;
                queue.next_start -= estimated - seat_time(work.initial, took);
                queue.bound();
            });
        }
        let seats = work.width();
        if work.lasting.is_zero() || self.discipline == Discipline::Exempt {
            return self.release(queue, seats);
        }
        self.lingering.push(Reverse(Lingering { until: now + work.lasting, seats, queue }));
    }

    /// A request does not wait any longer; false, if it got its seats before.
    pub(super) fn withdraw(&mut self, now: Duration, ticket: Ticket) -> bool {
        self.sync(now);
        if !self.queues.contains_key(&ticket.queue) {
            return false;
        }
        let width = self.update(ticket.queue, |queue| {
            let at = queue.waiting.binary_search_by_key(&ticket.number, |w| w.number).ok()?;
            let gone = queue.waiting.remove(at)?;
            queue.waiting_seats -= gone.work.width();
            queue.waiting_work -= gone.work.total();
            queue.bound();
            Some(gone.work.width())
        });
        let Some(width) = width else { return false };
        self.load.waiting -= 1;
        self.load.waiting_seats -= width;
        true
    }

    /// Lets time pass: meters advance, and seats become free that were held on until then.
    fn sync(&mut self, now: Duration) {
        while let Some(Reverse(first)) = self.lingering.peek()
            && first.until <= now
        {
            let (until, seats, queue) = (first.until, first.seats, first.queue);
            self.lingering.pop();
            self.advance(until);
            self.release(queue, seats);
        }
        self.advance(now);
    }

    fn advance(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.synced);
        self.synced = self.synced.max(now);
        let wanted = self.load.seats + self.load.waiting_seats;
        self.demand.advance(passed, wanted);
        if self.active > 0 {
            let shared = seat_time(wanted.min(self.limit), passed);
            self.progress += shared / SeatTime::from(self.active);
        }
    }

    /// The queue of a flow's hand in which the least work waits. Equal ones take turns, so that
    /// flows whose hands overlap do not meet in their first cards.
    fn choose(&mut self, deck: Deck, flow: u64) -> u32 {
        let hand = deck.deal(flow);
        let cards = hand.cards();
        if self.load.waiting == 0 {
            // None has any: the next in turn.
            let turn = self.enqueued % cards.len() as u64;
            self.enqueued += 1;
            return cards[usize::try_from(turn).unwrap_or(0)];
        }
        let turn = usize::try_from(self.enqueued % cards.len() as u64).unwrap_or(0);
        self.enqueued += 1;
        let (early, late) = cards.split_at(turn);
        let waiting = |index: &u32| self.queues.get(index).map_or(0.0, |queue| queue.waiting_work);
        let less = |one: &&u32, other: &&u32| waiting(one).total_cmp(&waiting(other));
        late.iter().chain(early).min_by(less).copied().unwrap_or(0)
    }

    fn enqueue(&mut self, index: u32, work: Work, who: W) -> Ticket {
        let number = self.enqueued;
        let arrived = self.progress;
        self.update(index, |queue| {
            if !queue.is_active() {
                queue.next_start = arrived;
            }
            queue.waiting.push_back(Waiting { number, who, work, arrived });
            queue.waiting_seats += work.width();
            queue.waiting_work += work.total();
            queue.bound();
        });
        self.load.waiting += 1;
        self.load.waiting_seats += work.width();
        self.demand.note(self.load.seats + self.load.waiting_seats);
        Ticket { queue: index, number }
    }

    /// The queue whose first request would end first, and the seats that this one wants; of equal
    /// ones the first behind the one that was served last.
    fn next(&self, may: impl Fn(&Queue<W>) -> bool) -> Option<(u32, u32)> {
        let behind = self.queues.range(self.robin.saturating_add(1)..);
        let others = self.queues.range(..=self.robin);
        let allowed = behind.chain(others).filter(|(_, queue)| may(queue));
        let heads = allowed.filter_map(|(index, queue)| {
            let head = queue.waiting.front()?;
            Some((queue.next_start + head.work.total(), *index, head.work.width()))
        });
        let first = heads.min_by(|(one, ..), (other, ..)| one.total_cmp(other));
        first.map(|(_, index, width)| (index, width))
    }

    /// Whether there are that many seats. Who wants more than there ever are is served alone.
    fn has_room(&self, seats: u32) -> bool {
        match self.discipline {
            Discipline::Exempt => true,
            _ if seats > self.limit => self.load.executing == 0,
            _ => self.load.seats + seats <= self.limit,
        }
    }

    /// Whether there are that many seats if those count that are lent.
    fn has_lent(&self, seats: u32) -> bool {
        let wide = if seats == 1 { self.wide } else { 0 };
        let lent = self.away + wide;
        lent > 0 && self.load.seats.saturating_sub(lent) + seats <= self.limit
    }

    /// Whether seats may be lent to the first that waits in a queue.
    fn may_borrow(&self, queue: &Queue<W>) -> bool {
        let first = queue.waiting.front().filter(|_| queue.executing == 0);
        first.is_some_and(|waiting| self.has_lent(waiting.work.width()))
    }

    /// A queue of a flow's hand that has nothing to do.
    fn idle_card(&self, deck: Deck, flow: u64) -> Option<u32> {
        let hand = deck.deal(flow);
        let is_idle = |index: &&u32| self.queues.get(index).is_none_or(|queue| !queue.is_active());
        hand.cards().iter().find(is_idle).copied()
    }

    fn seat(&mut self, queue: Option<u32>, work: Work) -> Seated {
        self.load.executing += 1;
        self.load.seats += work.width();
        self.wide += work.initial.saturating_sub(1);
        self.demand.note(self.load.seats + self.load.waiting_seats);
        Seated { queue, work, since: self.synced }
    }

    fn release(&mut self, queue: Option<u32>, seats: u32) {
        self.load.seats -= seats;
        if let Some(index) = queue {
            self.update(index, |queue| queue.seats -= seats);
        }
    }

    /// Changes a queue, and forgets it if it has nothing to do.
    fn update<T>(&mut self, index: u32, change: impl FnOnce(&mut Queue<W>) -> T) -> T {
        let queue = self.queues.entry(index).or_default();
        let was_active = queue.is_active();
        let changed = change(queue);
        self.active += u32::from(queue.is_active());
        self.active -= u32::from(was_active);
        if queue.is_idle() {
            self.queues.remove(&index);
        }
        changed
    }
}

#[cfg(test)]
mod tests;
