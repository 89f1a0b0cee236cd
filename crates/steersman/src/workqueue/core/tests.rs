//! What the core keeps in memory; what it does is shown by the tests of the whole queue.

use super::*;

fn hashed(key: u64) -> Hashed<u64> {
    Hashed { key, hash: key.wrapping_mul(0x9e37_79b9_7f4a_7c15), group: key % 3 }
}

fn request(now: u64) -> Request {
    Request { now: Tick(now), due: None, priority: None }
}

fn finish(core: &mut Core<u64>, key: u64) {
    core.done(&key, hashed(key).hash);
}

#[test]
fn a_key_that_is_done_leaves_nothing_behind() {
    let mut core = Core::new(false);
    for round in 0..1000 {
        core.add(hashed(round), request(round));
        let taken = core.take(Tick(round)).unwrap();
        finish(&mut core, taken.key);
        assert_eq!((core.slots.len(), core.slots.capacity() <= 4, core.lanes.len()), (0, true, 0));
    }
}

#[test]
fn a_key_delayed_again_and_again_does_not_fill_the_heap() {
    let mut core = Core::new(false);
    for round in 0..100_000 {
        let due = Some(Tick(1_000_000 - round));
        core.add(hashed(1), Request { due, ..request(0) });
    }
    assert!(core.delays.len() < 100, "{}", core.delays.len());
    assert_eq!(core.next_due(), Some(Tick(1_000_000 - 99_999)));
}

#[test]
fn keys_raised_out_of_a_lane_do_not_fill_it() {
    for fair in [false, true] {
        let mut core = Core::new(fair);
        for now in 0..100_000 {
            let key = now % 10;
            core.add(hashed(key), Request { priority: Some(Priority::LOW), ..request(now) });
            core.add(hashed(key), request(now));
            core.add(hashed(key), Request { priority: Some(Priority(1)), ..request(now) });
            let taken = core.take(Tick(now)).unwrap();
            finish(&mut core, taken.key);
        }
        assert!(core.lanes.len() < 300, "{}", core.lanes.len());
    }
}

#[test]
fn an_idle_queue_gives_its_memory_back_after_a_flood() {
    let mut core = Core::new(false);
    for key in 0..100_000 {
        core.add(hashed(key), Request { due: Some(Tick(key)), ..request(0) });
    }
    while let Some(taken) = core.take(Tick(100_000)) {
        finish(&mut core, taken.key);
    }
    assert!(room(&core).iter().all(|room| *room <= memory::KEPT), "{:?}", room(&core));
    assert_eq!((core.slots.len(), core.lanes.len(), core.delays.len()), (0, 0, 0));
}

/// Room for keys, for ready and for delayed ones.
fn room(core: &Core<u64>) -> [usize; 3] {
    [core.slots.capacity(), core.lanes.capacity(), core.delays.capacity()]
}

/// Keys that outlive a flood.
const LATER: u64 = 1_000_000;
const RUNS: u64 = 1_000_001;
const RUNS_AND_IS_WANTED: u64 = 1_000_004;
const WAIT: [u64; 4] = [2_000_000, 2_000_001, 2_000_002, 2_000_003];

/// A queue with 100,000 keys that are ready, and behind them keys of every state.
fn flooded(fair: bool) -> Core<u64> {
    let mut core = Core::new(fair);
    for key in 0..100_000 {
        core.add(hashed(key), Request { due: Some(Tick(1 + key % 50)), ..request(0) });
    }
    core.add(hashed(LATER), Request { due: Some(Tick(500)), ..request(0) });
    let with = |priority| Request { priority: Some(Priority(priority)), ..request(60) };
    for key in [RUNS, RUNS_AND_IS_WANTED] {
        core.add(hashed(key), with(1));
        assert_eq!(core.take(Tick(60)).unwrap().key, key);
    }
    core.add(hashed(RUNS_AND_IS_WANTED), with(-100));
    for key in WAIT {
        core.add(hashed(key), with(-100));
    }
    core.add(hashed(WAIT[2]), with(-99));
    core
}

#[test]
fn a_queue_gives_its_memory_back_although_some_keys_stay() {
    for fair in [false, true] {
        let mut core = flooded(fair);
        assert!(room(&core).iter().all(|room| *room >= 100_000), "{:?}", room(&core));
        for _ in 0..100_000 {
            let taken = core.take(Tick(60)).unwrap();
            finish(&mut core, taken.key);
        }
        assert!(room(&core).iter().all(|room| *room <= memory::KEPT), "{:?}", room(&core));
        for key in WAIT {
            assert_eq!(core.add(hashed(key), request(60)), Some(key), "it waits already");
        }
        let running: Vec<_> = core.working_times(Tick(70)).collect();
        assert_eq!(running, [Duration::from_nanos(10); 2]);
        finish(&mut core, RUNS_AND_IS_WANTED);
        let taken: Vec<_> = (0..5).filter_map(|_| core.take(Tick(60))).map(|t| t.key).collect();
        assert_eq!(taken, [WAIT[2], WAIT[0], WAIT[1], WAIT[3], RUNS_AND_IS_WANTED]);
        assert!(core.take(Tick(60)).is_none() && core.next_due() == Some(Tick(500)));
        assert_eq!(core.take(Tick(500)).unwrap().key, LATER);
        assert_eq!(core.running_since(&RUNS, hashed(RUNS).hash), Some(Tick(60)));
        for key in taken.into_iter().chain([LATER, RUNS]) {
            finish(&mut core, key);
        }
        assert_eq!((core.slots.len(), core.running.len(), core.ready()), (0, 0, 0));
    }
}

#[test]
fn a_million_delayed_keys_come_out_in_the_order_of_their_times() {
    let mut core = Core::new(false);
    let due = |key: u64| Tick(1 + key.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1_000_000);
    for key in 0..1_000_000 {
        core.add(hashed(key), Request { due: Some(due(key)), ..request(0) });
    }
    let mut last = (Tick(0), 0);
    for _ in 0..1_000_000 {
        let taken = core.take(Tick(1_000_000)).unwrap();
        assert!(last < (due(taken.key), taken.key), "{taken:?} came after {last:?}");
        last = (due(taken.key), taken.key);
        finish(&mut core, taken.key);
    }
}
