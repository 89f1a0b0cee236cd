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
    assert_eq!((core.slots.capacity(), core.lanes.len(), core.delays.len()), (0, 0, 0));
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
