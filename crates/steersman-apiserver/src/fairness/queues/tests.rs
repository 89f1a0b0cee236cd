use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::{collection, prop_assert, prop_assert_eq};

use super::super::deal::Deck;
use super::super::work::Work;
use super::{Arrival, Discipline, Load, QueueSet, Refusal, Seated, Ticket};

const QUEUES: Discipline = Discipline::Queue { deck: Deck { queues: 64, hand: 4 }, length_max: 50 };

/// Hashes whose hands have no queue in common: the digits of base 64 are the cards.
const FLOOD: u64 = 1;
const OTHER: u64 = 40;

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn seated(arrival: Arrival) -> Seated {
    match arrival {
        Arrival::Seated(seated) => seated,
        other => panic!("{other:?}"),
    }
}

fn waiting(arrival: Arrival) -> Ticket {
    match arrival {
        Arrival::Waiting(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

fn refusal(arrival: Arrival) -> Refusal {
    match arrival {
        Arrival::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn whoever_finds_a_seat_takes_it_and_the_others_wait() {
    let mut set = QueueSet::new(QUEUES, 2, ms(0));
    let first = seated(set.arrive(ms(0), Work::ONE, FLOOD, || 0));
    let second = seated(set.arrive(ms(0), Work::ONE, FLOOD, || 1));
    waiting(set.arrive(ms(0), Work::ONE, FLOOD, || 2));
    assert!(set.dispatch(ms(0)).is_empty());
    set.finish(ms(5), first);
    let mut served = set.dispatch(ms(5));
    let (who, third) = served.pop().unwrap();
    assert_eq!((who, served.len()), (2, 0));
    set.finish(ms(6), second);
    set.finish(ms(7), third);
    assert!(set.is_idle());
    assert_eq!(set.states().count(), 0);
}

#[test]
fn without_queues_and_seats_a_request_is_refused_and_the_exempt_never_are() {
    let mut set = QueueSet::new(Discipline::Reject, 1, ms(0));
    let first = seated(set.arrive(ms(0), Work::ONE, 0, || ()));
    assert_eq!(refusal(set.arrive(ms(0), Work::ONE, 0, || ())), Refusal::ConcurrencyLimit);
    set.finish(ms(1), first);
    let again = seated(set.arrive(ms(1), Work::ONE, 0, || ()));
    set.finish(ms(2), again);
    let mut exempt = QueueSet::new(Discipline::Exempt, 0, ms(0));
    let all: Vec<Seated> =
        (0..1000).map(|_| seated(exempt.arrive(ms(0), Work::seats(10), 0, || ()))).collect();
    assert_eq!(exempt.load().seats, 10_000);
    all.into_iter().for_each(|seated| exempt.finish(ms(1), seated));
    assert!(exempt.is_idle());
}

#[test]
fn seats_of_those_who_wait_for_somebody_else_are_lent_to_queues_without_any() {
    let mut set = QueueSet::new(QUEUES, 2, ms(0));
    let flood = [0, 1].map(|number| seated(set.arrive(ms(0), Work::ONE, FLOOD, || number)));
    let ticket = waiting(set.arrive(ms(0), Work::ONE, OTHER, || 2));
    set.lend(ms(1), 1);
    let (who, other) = set.dispatch(ms(1)).pop().unwrap();
    assert_eq!(who, 2, "whoever waits is let in");
    assert!(!set.withdraw(ms(1), ticket));
    // That seat is lent already.
    waiting(set.arrive(ms(2), Work::ONE, OTHER, || 3));
    set.finish(ms(3), other);
    let (who, other) = set.dispatch(ms(3)).pop().unwrap();
    assert_eq!(who, 3);
    set.lend(ms(4), 1);
    let another = seated(set.arrive(ms(4), Work::ONE, OTHER + 1, || 4));
    set.finish(ms(4), another);
    set.take_back(ms(5), 2);
    waiting(set.arrive(ms(5), Work::ONE, OTHER + 3, || 20));
    assert!(set.dispatch(ms(5)).is_empty());
    drop((flood, other));
}

#[test]
fn whoever_asks_for_little_does_not_wait_for_the_many_seats_of_a_list() {
    let mut set = QueueSet::new(QUEUES, 10, ms(0));
    let list = seated(set.arrive(ms(0), Work::seats(10), FLOOD, || 0));
    waiting(set.arrive(ms(0), Work::seats(10), FLOOD, || 1));
    waiting(set.arrive(ms(0), Work::seats(10), OTHER + 1, || 2));
    let little = seated(set.arrive(ms(1), Work::ONE, OTHER, || 3));
    assert!(set.dispatch(ms(1)).is_empty(), "lists wait for all their seats");
    set.finish(ms(2), little);
    let others: Vec<Seated> = (0..9)
        .map(|number| seated(set.arrive(ms(3), Work::ONE, 100 * (number + 1), || 4)))
        .collect();
    waiting(set.arrive(ms(3), Work::ONE, 63, || 5));
    others.into_iter().for_each(|other| set.finish(ms(4), other));
    let (who, little) = set.dispatch(ms(4)).pop().unwrap();
    assert_eq!(who, 5, "nothing is left of what was lent");
    set.finish(ms(5), little);
    set.finish(ms(6), list);
    assert_eq!(set.dispatch(ms(6)).len(), 1, "the next list");
}

#[test]
fn a_flood_fills_its_own_hand_and_others_have_queues_left() {
    let mut set = QueueSet::new(QUEUES, 1, ms(0));
    let first = seated(set.arrive(ms(0), Work::ONE, FLOOD, || 0));
    for number in 0..200 {
        waiting(set.arrive(ms(0), Work::ONE, FLOOD, || number));
    }
    assert_eq!(refusal(set.arrive(ms(0), Work::ONE, FLOOD, || 0)), Refusal::QueueFull);
    waiting(set.arrive(ms(0), Work::ONE, OTHER, || 1000));
    set.finish(ms(3), first);
    let served = set.dispatch(ms(3));
    // All are equally far: turns are taken from the queue that was served last on.
    assert_eq!(served.len(), 1);
}

#[test]
fn an_innocent_waits_for_hardly_more_than_one_of_the_flood() {
    let mut set = QueueSet::new(QUEUES, 1, ms(0));
    let mut now = ms(0);
    let mut running = seated(set.arrive(now, Work::ONE, FLOOD, || 0));
    let mut served_before = Vec::new();
    for round in 0..20 {
        // The flood keeps its queues full.
        while let Arrival::Waiting(_) = set.arrive(now, Work::ONE, FLOOD, || 0) {}
        waiting(set.arrive(now, Work::ONE, OTHER, || 1));
        let mut others = 0;
        loop {
            now += ms(3);
            set.finish(now, running);
            let (who, next) = set.dispatch(now).pop().unwrap();
            running = next;
            if who == 1 {
                break;
            }
            others += 1;
            while let Arrival::Waiting(_) = set.arrive(now, Work::ONE, FLOOD, || 0) {}
        }
        served_before.push(others);
        assert!(others <= 5, "round {round}: {served_before:?}");
    }
    // Five queues have something to do, four of them the flood's.
    let sum: i32 = served_before.iter().sum();
    assert!(sum <= 20 * 4, "{served_before:?}");
}

/// Serves two flows that always have requests waiting, and gives how much of the seats each had.
fn shares(works: [Work; 2], took: [Duration; 2], hand: u32) -> [u64; 2] {
    let discipline = Discipline::Queue { deck: Deck { queues: 64, hand }, length_max: 20 };
    let mut set = QueueSet::new(discipline, 12, ms(0));
    let mut ends: BTreeMap<(Duration, u64), (usize, Seated)> = BTreeMap::new();
    let (mut now, mut number) = (ms(0), 0);
    let mut had = [0; 2];
    while now < Duration::from_secs(60) {
        for (flow, work) in works.iter().enumerate() {
            for _ in 0..(10 - 9 * flow) {
                let hash = [FLOOD, OTHER][flow];
                match set.arrive(now, *work, hash, || flow) {
                    Arrival::Seated(seated) => {
                        number += 1;
                        ends.insert((now + took[flow], number), (flow, seated));
                    }
                    Arrival::Waiting(_) | Arrival::Refused(_) => {}
                }
            }
        }
        for (flow, seated) in set.dispatch(now) {
            number += 1;
            ends.insert((now + took[flow], number), (flow, seated));
        }
        let ((end, _), (flow, seated)) = ends.pop_first().unwrap();
        now = end;
        had[flow] += u64::from(seated.width()) * u64::try_from(took[flow].as_millis()).unwrap();
        set.finish(now, seated);
    }
    had
}

#[test]
fn two_flows_that_always_want_more_have_equal_shares_whatever_they_send() {
    for (works, took) in [
        ([Work::ONE, Work::ONE], [ms(3), ms(3)]),
        ([Work::ONE, Work::ONE], [ms(30), ms(3)]),
        ([Work::seats(3), Work::ONE], [ms(3), ms(3)]),
        ([Work::seats(2), Work::ONE], [ms(20), ms(5)]),
    ] {
        let [flood, other] = shares(works, took, 1);
        let ratio = flood as f64 / other as f64;
        assert!((0.8..1.25).contains(&ratio), "{works:?} {took:?}: {flood} {other}");
    }
}

#[test]
fn seats_are_held_on_after_the_answer_and_then_free() {
    let work = Work { initial: 1, last: 2, lasting: ms(5) };
    let mut set = QueueSet::new(QUEUES, 2, ms(0));
    let first = seated(set.arrive(ms(0), work, FLOOD, || 0));
    assert_eq!(set.load().seats, 2);
    set.finish(ms(1), first);
    assert_eq!(set.due(), None);
    waiting(set.arrive(ms(2), Work::ONE, OTHER, || 1));
    assert_eq!(set.due(), Some(ms(6)));
    assert!(set.dispatch(ms(5)).is_empty());
    let (_, second) = set.dispatch(ms(6)).pop().unwrap();
    set.finish(ms(7), second);
    assert!(set.is_idle());
}

#[test]
fn what_is_wider_than_the_level_is_served_alone() {
    let mut set = QueueSet::new(QUEUES, 4, ms(0));
    let small = seated(set.arrive(ms(0), Work::ONE, OTHER, || 0));
    waiting(set.arrive(ms(0), Work::seats(10), FLOOD, || 1));
    assert!(set.dispatch(ms(0)).is_empty());
    set.finish(ms(1), small);
    let (_, wide) = set.dispatch(ms(1)).pop().unwrap();
    waiting(set.arrive(ms(2), Work::seats(2), OTHER, || 2));
    assert!(set.dispatch(ms(2)).is_empty());
    let lent = seated(set.arrive(ms(2), Work::ONE, OTHER + 1, || 3));
    set.finish(ms(3), lent);
    set.finish(ms(3), wide);
    assert_eq!(set.dispatch(ms(3)).len(), 1);
}

#[test]
fn more_seats_are_used_at_once_and_fewer_take_nobodys_seat_away() {
    let mut set = QueueSet::new(QUEUES, 1, ms(0));
    let first = seated(set.arrive(ms(0), Work::ONE, FLOOD, || 0));
    for number in 1..4 {
        waiting(set.arrive(ms(0), Work::ONE, FLOOD, || number));
    }
    set.set_limit(3, ms(1));
    let served = set.dispatch(ms(1));
    assert_eq!(served.len(), 2);
    set.set_limit(1, ms(2));
    assert_eq!(set.load().seats, 3);
    set.finish(ms(3), first);
    assert!(set.dispatch(ms(3)).is_empty());
    served.into_iter().for_each(|(_, seated)| set.finish(ms(4), seated));
    assert_eq!(set.dispatch(ms(4)).len(), 1);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive { flow: u64, work: Work },
    Finish(usize),
    Withdraw(usize),
    Pass(u64),
    Limit(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let work = (1..6_u32, prop_oneof![Just((0, 0)), (1..8_u32, 1..9_u64)])
        .prop_map(|(initial, (last, lasting))| Work { initial, last, lasting: ms(lasting) });
    let arrive = || (0..6_u64, work.clone()).prop_map(|(flow, work)| Step::Arrive { flow, work });
    prop_oneof![
        arrive(),
        arrive(),
        any::<usize>().prop_map(Step::Finish),
        any::<usize>().prop_map(Step::Withdraw),
        (0..10_u64).prop_map(Step::Pass),
        (1..12_u32).prop_map(Step::Limit),
    ]
}

/// A level, and what must be so of it.
struct Model {
    set: QueueSet<u64>,
    now: Duration,
    number: u64,
    seated: Vec<Seated>,
    /// By who waits.
    waiting: BTreeMap<u64, (Ticket, u32)>,
}

impl Model {
    fn take(&mut self, step: Step) {
        match step {
            Step::Arrive { flow, work } => {
                let number = self.number;
                self.number += 1;
                let hash = flow.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                match self.set.arrive(self.now, work, hash, || number) {
                    Arrival::Seated(seated) => self.sit(seated),
                    Arrival::Waiting(ticket) => {
                        self.waiting.insert(number, (ticket, work.width()));
                    }
                    Arrival::Refused(_) => {}
                }
            }
            Step::Finish(at) if !self.seated.is_empty() => {
                let seated = self.seated.swap_remove(at % self.seated.len());
                self.set.finish(self.now, seated);
            }
            Step::Withdraw(at) if !self.waiting.is_empty() => {
                let at = at % self.waiting.len();
                let number = *self.waiting.keys().nth(at).unwrap();
                let (ticket, _) = self.waiting.remove(&number).unwrap();
                assert!(self.set.withdraw(self.now, ticket));
                assert!(!self.set.withdraw(self.now, ticket));
            }
            Step::Pass(time) => self.now += ms(time),
            Step::Limit(limit) => self.set.set_limit(limit, self.now),
            Step::Finish(_) | Step::Withdraw(_) => {}
        }
        for (number, seated) in self.set.dispatch(self.now) {
            self.waiting.remove(&number).expect("only who waits is served");
            self.sit(seated);
        }
    }

    /// Nobody sits beyond the limit, but one who is wider than the level and then alone, and who is
    /// lent a seat of somebody who has several.
    fn sit(&mut self, seated: Seated) {
        let Load { seats, .. } = self.set.load();
        let alone = self.seated.is_empty();
        let lent = self.set.wide;
        assert!(seats <= self.set.limit() + lent || alone, "{seats} of {}", self.set.limit());
        self.seated.push(seated);
    }
}

proptest! {
    #[test]
    fn no_seat_is_lost_and_none_is_given_twice(
        steps in collection::vec(step(), 1..80),
        hand in 1..5_u32,
        length_max in 1..6_usize,
    ) {
        let discipline = Discipline::Queue { deck: Deck { queues: 8, hand }, length_max };
        let mut model = Model {
            set: QueueSet::new(discipline, 4, ms(0)),
            now: ms(0), number: 0, seated: Vec::new(), waiting: BTreeMap::new(),
        };
        for step in steps {
            model.take(step);
            let load = model.set.load();
            prop_assert_eq!(load.waiting, model.waiting.len());
            prop_assert_eq!(load.waiting_seats, model.waiting.values().map(|(_, w)| w).sum::<u32>());
            prop_assert_eq!(load.executing, model.seated.len());
            let held: u32 = model.seated.iter().map(Seated::width).sum();
            prop_assert!(load.seats >= held);
            // Somebody is served as long as anybody waits and nobody holds a seat on.
            if load.waiting > 0 && load.seats == 0 {
                prop_assert!(false, "nobody is served: {:?}", model.set);
            }
        }
        // In the end everybody who waited is served, and every seat is free.
        for _ in 0..10_000 {
            if model.set.is_idle() {
                break;
            }
            model.take(Step::Finish(0));
            model.take(Step::Pass(10));
            // Time is looked at when something happens.
            model.set.take_demand(model.now);
        }
        prop_assert!(model.set.is_idle(), "{:?}", model.set);
        prop_assert_eq!(model.set.states().count(), 0);
        prop_assert_eq!(model.set.active, 0);
    }
}
