//! The queue against its promises: in order, complete, bounded, and ending from both sides.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// What happened to a numbered object.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Set(u8, u32),
    Gone(u8),
    Mark(u32),
    Barrier(u32),
    /// The whole state.
    Reset(BTreeMap<u8, u32>),
}

impl Coalesce for Change {
    fn key(&self) -> Option<ObjectKey> {
        match self {
            Self::Set(key, _) | Self::Gone(key) => Some(ObjectKey::named(key.to_string())),
            _ => None,
        }
    }

    fn merge(earlier: Self, later: Self) -> Merged<Self> {
        match (earlier, later) {
            (Self::Gone(key), set @ Self::Set(..)) => Merged::Both(Self::Gone(key), set),
            (_, later) => Merged::One(later),
        }
    }

    fn sweep(&self) -> Sweep {
        match self {
            Self::Mark(_) => Sweep::Mark,
            Self::Reset(_) => Sweep::Reset,
            _ => Sweep::Barrier,
        }
    }
}

/// A change told to someone who knows what is there: additions and deletions cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Added(u8, u32),
    Updated(u8, u32),
    Deleted(u8),
}

impl Coalesce for Told {
    fn key(&self) -> Option<ObjectKey> {
        let (Self::Added(key, _) | Self::Updated(key, _) | Self::Deleted(key)) = self;
        Some(ObjectKey::named(key.to_string()))
    }

    fn merge(earlier: Self, later: Self) -> Merged<Self> {
        match (earlier, later) {
            (Self::Added(..), Self::Deleted(_)) => Merged::Nothing,
            (Self::Added(key, _), Self::Updated(_, new)) => Merged::One(Self::Added(key, new)),
            (Self::Deleted(key), added) => Merged::Both(Self::Deleted(key), added),
            (_, later) => Merged::One(later),
        }
    }
}

fn pushed<E: Coalesce>(
    mode: Mode,
    events: impl IntoIterator<Item = E>,
) -> (Sender<E>, Receiver<E>) {
    let (send, receive) = channel(mode);
    for event in events {
        assert!(send.try_push(event).is_ok());
    }
    (send, receive)
}

const COALESCING: Mode = Mode::Coalescing { threshold: 0 };

#[tokio::test]
async fn events_leave_in_the_order_in_which_they_came_in_batches() {
    let mode = Mode::InOrder { capacity: 8 };
    let (_send, mut receive) = pushed(mode, (0..5).map(|n| Change::Set(1, n)));
    assert_eq!(receive.pop_batch(2).await, [Change::Set(1, 0), Change::Set(1, 1)]);
    assert_eq!(receive.pop_batch(9).await.len(), 3);
}

#[test]
fn no_capacity_is_too_large_or_too_small() {
    for capacity in [0, usize::MAX] {
        let (send, mut receive) = channel(Mode::InOrder { capacity });
        send.try_push(Change::Set(1, 1)).unwrap();
        assert_eq!(receive.try_pop_batch(9), [Change::Set(1, 1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_makes_its_producer_wait_until_there_is_room() {
    let mode = Mode::InOrder { capacity: 2 };
    let (send, mut receive) = pushed(mode, [Change::Gone(1), Change::Gone(2)]);
    assert!(matches!(send.try_push(Change::Gone(3)), Err(TryPushError::Full(_))));
    let blocked = tokio::time::timeout(Duration::from_secs(1), send.push(Change::Gone(3))).await;
    assert!(blocked.is_err(), "a third event went into a queue of two");
    assert_eq!(receive.pop_batch(1).await, [Change::Gone(1)]);
    send.push(Change::Gone(4)).await.unwrap();
    assert_eq!(receive.pop_batch(9).await, [Change::Gone(2), Change::Gone(4)]);
}

#[tokio::test]
async fn below_the_threshold_nothing_is_merged_and_above_it_is_by_key() {
    let events = (0..100).map(|n| Change::Set(u8::try_from(n % 2).unwrap(), n));
    let (send, mut receive) = pushed(Mode::Coalescing { threshold: 4 }, events);
    let expected = [Change::Set(0, 0), Change::Set(1, 1), Change::Set(0, 98), Change::Set(1, 99)];
    assert_eq!(send.observer().stats().merged, 96);
    assert_eq!(receive.pop_batch(9).await, expected);
}

#[tokio::test]
async fn nothing_is_merged_across_a_barrier() {
    let events = [Change::Set(1, 1), Change::Barrier(0), Change::Set(1, 2), Change::Set(1, 3)];
    let (_send, mut receive) = pushed(COALESCING, events);
    let expected = [Change::Set(1, 1), Change::Barrier(0), Change::Set(1, 3)];
    assert_eq!(receive.pop_batch(9).await, expected);
}

#[tokio::test]
async fn marks_are_merged_across_and_only_the_latest_stays() {
    let events = [Change::Set(1, 1), Change::Mark(1), Change::Set(1, 2), Change::Mark(2)];
    let (_send, mut receive) = pushed(COALESCING, events);
    assert_eq!(receive.pop_batch(9).await, [Change::Set(1, 2), Change::Mark(2)]);
}

#[tokio::test]
async fn a_reset_makes_what_waits_superfluous() {
    let all = Change::Reset(BTreeMap::new());
    let events = [Change::Set(1, 1), Change::Barrier(1), all.clone(), Change::Set(1, 2)];
    let (_send, mut receive) = pushed(COALESCING, events);
    assert_eq!(receive.pop_batch(9).await, [all, Change::Set(1, 2)]);
}

#[tokio::test]
async fn what_was_taken_is_not_merged_with() {
    let (send, mut receive) = pushed(COALESCING, [Change::Set(1, 1), Change::Set(2, 1)]);
    assert_eq!(receive.pop_batch(1).await, [Change::Set(1, 1)]);
    send.push(Change::Set(1, 2)).await.unwrap();
    assert_eq!(receive.pop_batch(9).await, [Change::Set(2, 1), Change::Set(1, 2)]);
}

#[tokio::test]
async fn a_dropped_consumer_ends_its_producers() {
    let (send, receive) = pushed(Mode::InOrder { capacity: 1 }, [Change::Gone(1)]);
    let other = send.clone();
    let blocked = tokio::spawn(async move { other.push(Change::Gone(2)).await });
    tokio::task::yield_now().await;
    drop(receive);
    assert_eq!(blocked.await.unwrap(), Err(Closed));
    send.closed().await;
    assert_eq!(send.push(Change::Gone(3)).await, Err(Closed));
    assert!(send.is_empty(), "what nobody will take is kept");
}

#[tokio::test]
async fn the_last_producer_to_go_ends_the_consumer_after_what_waits() {
    let (send, mut receive) = pushed(COALESCING, [Change::Gone(1)]);
    let other = send.clone();
    drop(send);
    assert_eq!(receive.pop_batch(9).await, [Change::Gone(1)]);
    let waits = tokio::spawn(async move { receive.pop_batch(9).await });
    tokio::task::yield_now().await;
    drop(other);
    assert!(waits.await.unwrap().is_empty());
}

#[tokio::test]
async fn a_closed_queue_gives_what_waits_and_takes_nothing_more() {
    let (send, mut receive) = pushed(COALESCING, [Change::Gone(1)]);
    send.close();
    assert_eq!(send.try_push(Change::Gone(2)), Err(TryPushError::Closed));
    assert_eq!(receive.pop_batch(9).await, [Change::Gone(1)]);
    assert!(receive.pop_batch(9).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn it_tells_how_long_the_oldest_event_waits_even_if_it_was_merged() {
    let (send, mut receive) = pushed(COALESCING, [Change::Set(1, 1)]);
    let observer = send.observer();
    tokio::time::advance(Duration::from_secs(5)).await;
    send.push(Change::Set(1, 2)).await.unwrap();
    let expected = Stats { len: 1, merged: 1, oldest: Some(Duration::from_secs(5)) };
    assert_eq!(observer.stats(), expected);
    receive.pop_batch(1).await;
    assert_eq!(observer.stats().oldest, None);
}

#[tokio::test]
async fn events_that_cancel_each_other_leave_nothing_behind() {
    let (send, mut receive) = pushed(COALESCING, [Told::Deleted(0)]);
    for round in 0..10_000 {
        let key = u8::try_from(round % 250).unwrap();
        send.push(Told::Added(key, round)).await.unwrap();
        send.push(Told::Deleted(key)).await.unwrap();
    }
    assert_eq!(receive.pop_batch(9).await, [Told::Deleted(0)]);
}

/// A change, or the consumer taking so many.
#[derive(Clone, Debug)]
enum Op {
    Push(Change),
    Pop(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let key = 0_u8..6;
    let op = prop_oneof![
        6 => (key.clone(), any::<u32>()).prop_map(|(key, n)| Op::Push(Change::Set(key, n))),
        3 => key.prop_map(|key| Op::Push(Change::Gone(key))),
        1 => any::<u32>().prop_map(|n| Op::Push(Change::Mark(n))),
        1 => any::<u32>().prop_map(|n| Op::Push(Change::Barrier(n))),
        1 => proptest::collection::btree_map(0_u8..6, any::<u32>(), 0..4)
            .prop_map(|all| Op::Push(Change::Reset(all))),
        2 => (1_usize..5).prop_map(Op::Pop),
    ];
    proptest::collection::vec(op, 0..200)
}

/// Pushes and pops as told; gives what was pushed and what came out.
fn replayed(mode: Mode, ops: Vec<Op>) -> (Vec<Change>, Vec<Change>) {
    let (send, mut receive) = channel(mode);
    let mut pushed = Vec::new();
    let mut popped = Vec::new();
    for op in ops {
        match op {
            Op::Push(change) => {
                pushed.push(change.clone());
                assert!(send.try_push(change).is_ok());
            }
            Op::Pop(max) => popped.extend(receive.try_pop_batch(max)),
        }
    }
    popped.extend(receive.try_pop_batch(usize::MAX));
    (pushed, popped)
}

fn state(changes: &[Change]) -> BTreeMap<u8, u32> {
    let mut state = BTreeMap::new();
    for change in changes {
        match change {
            Change::Set(key, value) => {
                state.insert(*key, *value);
            }
            Change::Gone(key) => {
                state.remove(key);
            }
            Change::Reset(all) => state.clone_from(all),
            Change::Mark(_) | Change::Barrier(_) => {}
        }
    }
    state
}

/// The objects' keys in the order in which they are first spoken of.
fn first_keys(changes: &[Change]) -> Vec<u8> {
    let mut keys = Vec::new();
    for change in changes {
        if let Change::Set(key, _) | Change::Gone(key) = change
            && !keys.contains(key)
        {
            keys.push(*key);
        }
    }
    keys
}

proptest! {
    #[test]
    fn in_order_everything_comes_out_as_it_went_in(ops in ops()) {
        let (pushed, popped) = replayed(Mode::InOrder { capacity: 200 }, ops);
        prop_assert_eq!(pushed, popped);
    }

    #[test]
    fn coalesced_events_lead_to_the_same_state(ops in ops(), threshold in 0_usize..20) {
        let (pushed, popped) = replayed(Mode::Coalescing { threshold }, ops);
        prop_assert_eq!(state(&pushed), state(&popped));
    }

    #[test]
    fn coalesced_barriers_all_come_out_in_order(ops in ops(), threshold in 0_usize..20) {
        let ops: Vec<Op> =
            ops.into_iter().filter(|op| !matches!(op, Op::Push(Change::Reset(_)))).collect();
        let (pushed, popped) = replayed(Mode::Coalescing { threshold }, ops);
        let barriers = |changes: &[Change]| -> Vec<Change> {
            changes.iter().filter(|change| matches!(change, Change::Barrier(_))).cloned().collect()
        };
        prop_assert_eq!(barriers(&pushed), barriers(&popped));
        prop_assert_eq!(first_keys(&pushed), first_keys(&popped));
    }

    #[test]
    fn what_waits_is_bounded_by_the_number_of_objects(
        changes in proptest::collection::vec((0_u8..6, any::<bool>()), 0..300),
    ) {
        let (send, _receive) = channel(COALESCING);
        for (key, set) in changes {
            let change = if set { Change::Set(key, 1) } else { Change::Gone(key) };
            prop_assert!(send.try_push(change).is_ok());
            prop_assert!(send.try_push(Change::Mark(0)).is_ok());
        }
        prop_assert!(send.len() <= 6 * 2 + 1, "{} wait", send.len());
    }

    /// Whoever hears only the merged stream sees each object added before it is deleted, never
    /// misses a deletion of what it saw, and ends with what is there.
    #[test]
    fn no_addition_is_left_without_its_deletion(
        ops in proptest::collection::vec((0_u8..4, 0_u8..4), 0..200),
        threshold in 0_usize..10,
    ) {
        let (send, mut receive) = channel(Mode::Coalescing { threshold });
        let mut truth = BTreeMap::new();
        let mut heard = Vec::new();
        for (number, (key, action)) in (0_u32..).zip(ops) {
            let told = match (action, truth.contains_key(&key)) {
                (3, _) => {
                    heard.extend(receive.try_pop_batch(2));
                    continue;
                }
                (_, false) => Told::Added(key, number),
                (0, true) => Told::Deleted(key),
                (_, true) => Told::Updated(key, number),
            };
            match told {
                Told::Deleted(key) => truth.remove(&key),
                Told::Added(key, n) | Told::Updated(key, n) => truth.insert(key, n),
            };
            prop_assert!(send.try_push(told).is_ok());
        }
        heard.extend(receive.try_pop_batch(usize::MAX));
        let mut seen = BTreeMap::new();
        for told in heard {
            match told {
                Told::Added(key, n) => prop_assert!(seen.insert(key, n).is_none()),
                Told::Updated(key, n) => prop_assert!(seen.insert(key, n).is_some()),
                Told::Deleted(key) => prop_assert!(seen.remove(&key).is_some()),
            }
        }
        prop_assert_eq!(seen, truth);
    }
}
