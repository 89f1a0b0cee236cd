//! What compaction gives back, seen from inside.

use bytes::Bytes;

use super::*;

fn put(state: &mut State, key: &str, value: &Bytes) {
    write(state, key, Some(value.clone()));
}

fn delete(state: &mut State, key: &str) {
    write(state, key, None);
}

fn write(state: &mut State, key: &str, value: Option<Bytes>) {
    let revision = Revision(state.revision.0 + 1);
    state.apply(Change { revision, key: key.into(), value });
}

fn compact_all(state: &mut State) {
    let revision = state.revision;
    while !state.compact_step(revision).unwrap() {}
}

#[test]
fn a_replaced_value_is_freed_by_compaction_and_not_before() {
    let mut state = State::new(usize::MAX);
    let first = Bytes::from(vec![1]);
    let second = Bytes::from(vec![2]);
    put(&mut state, "/a", &first);
    put(&mut state, "/a", &second);
    assert!(!first.is_unique());

    compact_all(&mut state);
    assert!(first.is_unique());
    assert!(!second.is_unique());
    assert_eq!(state.get("/a").unwrap().value, second);
}

#[test]
fn deletes_and_compaction_leave_an_empty_store() {
    let mut state = State::new(usize::MAX);
    let value = Bytes::from(vec![0; 16]);
    let keys: Vec<String> = (0..5_000).map(|number| format!("/a/{number}")).collect();
    keys.iter().for_each(|key| put(&mut state, key, &value));
    keys.iter().for_each(|key| delete(&mut state, key));
    assert_eq!(state.stats().keys, 0);
    assert_eq!(state.stats().history, 10_000);

    compact_all(&mut state);
    assert!(state.keys.is_empty());
    assert!(state.log.is_empty());
    assert_eq!(state.log.capacity(), 0);
    assert!(value.is_unique());
}

#[test]
fn the_versions_of_a_key_share_its_memory() {
    let mut state = State::new(usize::MAX);
    put(&mut state, "/a", &Bytes::new());
    put(&mut state, "/a", &Bytes::new());
    let events: Vec<_> = state.log.iter().collect();
    assert!(Arc::ptr_eq(&events[0].key, &events[1].key));
}

#[test]
fn one_look_at_the_log_is_bounded() {
    let mut state = State::new(usize::MAX);
    for number in 0..2 * SCAN_MAX {
        put(&mut state, &format!("/a/{number}"), &Bytes::new());
    }
    let (a, _) = state.watch("/a/", Revision(1)).unwrap();
    let matching = state.scan(Revision(1), "/a/", &a).unwrap();
    assert_eq!(matching.events.len(), BATCH_MAX);
    assert!(matching.more);

    let (b, _) = state.watch("/b/", Revision(1)).unwrap();
    let none = state.scan(Revision(1), "/b/", &b).unwrap();
    assert!(none.events.is_empty() && none.more);
    assert_eq!(none.scanned, Revision(1 + SCAN_MAX as u64));

    let rest = state.scan(none.scanned, "/b/", &b).unwrap();
    assert!(!rest.more);
    assert_eq!(rest.scanned, state.revision);
}

#[test]
fn a_step_of_compaction_is_bounded_and_leaves_a_readable_store() {
    let mut state = State::new(usize::MAX);
    for number in 0..COMPACT_MAX + 1 {
        put(&mut state, &format!("/a/{number:05}"), &Bytes::new());
    }
    let revision = state.revision;
    assert_eq!(state.compact_step(revision), Ok(false));
    assert_eq!(state.stats().history, 1);
    let at = Some(state.stats().oldest);
    let then = state.range(&RangeRequest { at, ..RangeRequest::default() }).unwrap();
    assert_eq!(then.entries.len(), COMPACT_MAX);
    assert_eq!(state.compact_step(revision), Ok(true));
    assert_eq!(state.stats().oldest, revision);
}

#[test]
fn one_look_at_the_log_takes_few_large_values_but_never_none() {
    let mut state = State::new(usize::MAX);
    let large = Bytes::from(vec![0; BATCH_BYTES / 2]);
    for number in 0..8 {
        put(&mut state, &format!("/a/{}", number % 2), &large);
    }
    let (topic, _) = state.watch("/a/", Revision(1)).unwrap();
    let first = state.scan(Revision(1), "/a/", &topic).unwrap();
    assert_eq!(first.events.len(), 2, "nothing was there before them");
    let mut seen = first.events.len();
    let mut after = first.scanned;
    while seen < 8 {
        let next = state.scan(after, "/a/", &topic).unwrap();
        assert_eq!(next.events.len(), 1, "each with the value before it");
        (seen, after) = (seen + 1, next.scanned);
    }
    assert_eq!(after, state.revision);
}

/// Room for so many changes that replace four bytes.
fn room_for(changes: usize) -> usize {
    changes * (CHANGE_BYTES + 4)
}

#[test]
fn history_holds_no_more_than_it_may() {
    let mut state = State::new(room_for(2));
    for number in 0..20 {
        put(&mut state, &format!("/a/{}", number % 3), &Bytes::from_static(b"four"));
    }
    let Stats { history, history_bytes, oldest, revision, keys } = state.stats();
    assert_eq!((history, history_bytes, keys), (2, room_for(2), 3));
    assert_eq!(oldest, Revision(revision.0 - 2));
    let all = state.range(&RangeRequest::default()).unwrap();
    assert_eq!(all.entries.len(), 3, "the latest values stay");
    assert!(matches!(state.check_kept(Revision(1)), Err(StoreError::Compacted { .. })));
}

#[test]
fn what_was_there_before_history_began_counts_once_it_is_replaced_or_deleted() {
    let mut state = State::new(room_for(10));
    // One of them fits into history.
    let large = || Bytes::from(vec![0; room_for(10) - CHANGE_BYTES]);
    let [a, b, c] = [large(), large(), large()];
    for (key, value) in [("/a", &a), ("/b", &b), ("/c", &c)] {
        put(&mut state, key, value);
    }
    assert_eq!(state.stats().history_bytes, 3 * CHANGE_BYTES, "the latest values are no history");
    compact_all(&mut state);
    assert_eq!(state.stats().history_bytes, 0);

    put(&mut state, "/a", &Bytes::from_static(b"four"));
    delete(&mut state, "/b");
    delete(&mut state, "/c");
    assert_eq!([&a, &b, &c].map(Bytes::is_unique), [true, true, false]);
    assert!(state.stats().history_bytes <= room_for(10));
    assert_eq!(state.stats().keys, 1);
    assert_eq!(state.get("/a").unwrap().value, "four");
}

#[test]
fn history_counts_down_to_nothing_whatever_came_and_went() {
    let mut state = State::new(usize::MAX);
    for round in 0..4 {
        for number in 0..50 {
            let value = Bytes::from(vec![0; number * (round + 1)]);
            put(&mut state, &format!("/a/{number}"), &value);
            if number % 3 == round % 3 {
                delete(&mut state, &format!("/a/{number}"));
            }
        }
    }
    assert!(state.stats().history_bytes > 200 * CHANGE_BYTES);
    compact_all(&mut state);
    assert_eq!((state.stats().history, state.stats().history_bytes), (0, 0));
}
