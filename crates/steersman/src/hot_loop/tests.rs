use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::cache::Item;
use crate::cause::{Cause, CauseBook, WatchedType};
use crate::informer::Event;
use crate::kind::Kind;

fn key() -> ObjectKey {
    ObjectKey::from("default/a")
}

fn written(version: u64) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some("a".into());
    map.metadata.uid = Some("1".into());
    map.metadata.resource_version = Some(version.to_string());
    map.data = Some([("n".to_owned(), version.to_string())].into());
    map
}

/// The reconcile of a key writes that object.
fn wrote(loops: &HotLoops, key: &ObjectKey, version: u64) {
    let (kind, object) = (Kind::<ConfigMap>::of().erased(), written(version));
    loops.wrote(
        key,
        &WrittenObject {
            kind: kind.names(),
            meta: &object.metadata,
            content: &|| serde_json::to_value(&object).ok(),
        },
    );
}

/// The causes that a write of this version leads to.
fn woken_by(version: u64) -> Causes {
    let (book, object) = (CauseBook::default(), Item::typed(written(version)));
    let event = Event::Updated { old: object.clone(), new: object }.cast();
    book.note(&key(), Cause::of(&WatchedType::of(&Kind::<ConfigMap>::of()), &event));
    book.take(&key()).causes
}

/// The object is written, the event of that write comes: when is it reconciled?
fn round(loops: &HotLoops, version: u64) -> Pace {
    wrote(loops, &key(), version);
    loops.pace(&key(), &woken_by(version))
}

/// Rounds until the loop is found.
fn find(loops: &HotLoops) -> Box<HotLoop> {
    for version in 1..100 {
        match round(loops, version) {
            Pace::Now => {}
            Pace::Found(delay, found) => {
                assert_eq!(delay, DELAY_FIRST);
                return found;
            }
            Pace::Later(_) => panic!("slowed without a word"),
        }
    }
    panic!("not found")
}

#[tokio::test(start_paused = true)]
async fn a_key_that_wakes_itself_is_found_with_what_keeps_changing() {
    let found = find(&HotLoops::default());
    assert_eq!(found.changing, ["ConfigMap a: data.n"]);
    assert_eq!(found.causes.to_string(), "ConfigMap a updated");
}

#[tokio::test(start_paused = true)]
async fn it_waits_longer_each_time_and_at_most_so_long() {
    let loops = HotLoops::default();
    find(&loops);
    let mut delays = Vec::new();
    for version in 100..120 {
        wrote(&loops, &key(), version);
        let Pace::Later(wait) = loops.pace(&key(), &woken_by(version)) else {
            panic!("not slowed")
        };
        delays.push(wait);
        tokio::time::advance(wait).await;
        assert!(matches!(loops.pace(&key(), &woken_by(version)), Pace::Now), "its time has come");
    }
    assert!(delays.windows(2).all(|pair| pair[0] <= pair[1]), "{delays:?}");
    assert_eq!(delays.last(), Some(&DELAY_MAX));
    assert_eq!(loops.shown()[0].reconciles, 20);
}

#[tokio::test(start_paused = true)]
async fn what_others_do_is_answered_at_once_even_in_a_loop() {
    let loops = HotLoops::default();
    find(&loops);
    assert!(matches!(loops.pace(&key(), &woken_by(5000)), Pace::Now), "somebody else's write");
    let (book, key) = (CauseBook::default(), key());
    book.note(&key, Cause::Timer);
    assert!(matches!(loops.pace(&key, &book.take(&key).causes), Pace::Now));
}

#[tokio::test(start_paused = true)]
async fn the_echo_of_a_write_is_no_loop_however_often_it_comes() {
    let loops = HotLoops::default();
    for version in (0..1000).step_by(2) {
        // Somebody changes the object, the reconcile writes, the reconcile of that does not.
        assert!(matches!(loops.pace(&key(), &woken_by(version)), Pace::Now));
        wrote(&loops, &key(), version + 1);
        assert!(matches!(loops.pace(&key(), &woken_by(version + 1)), Pace::Now));
        wrote(&loops, &key(), version + 1); // changes nothing
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_loop_is_none_and_a_quiet_one_is_over() {
    let loops = HotLoops::default();
    for version in 1..200 {
        assert!(matches!(round(&loops, version), Pace::Now), "round {version}");
        tokio::time::advance(Duration::from_secs(2)).await;
    }
    find(&loops);
    tokio::time::advance(QUIET + DELAY_FIRST + Duration::from_secs(1)).await;
    assert!(loops.shown().is_empty());
    assert!(matches!(round(&loops, 1000), Pace::Now));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_what_was_written_counts_whoever_brought_it_about() {
    let loops = HotLoops::default();
    let (book, key) = (CauseBook::default(), key());
    let found = (1..100).any(|version| {
        wrote(&loops, &key, version);
        let object = Item::typed(written(version + 1000)); // the same uid, deleted by somebody
        let gone = Event::Deleted { object, final_state_unknown: false };
        book.note(&key, Cause::of(&WatchedType::of(&Kind::<ConfigMap>::of()), &gone.cast()));
        matches!(loops.pace(&key, &book.take(&key).causes), Pace::Found(..))
    });
    assert!(found);
}

#[tokio::test(start_paused = true)]
async fn memory_is_given_back_by_keys_that_are_quiet() {
    let loops = HotLoops::default();
    for number in 0..3 * SWEEP_FIRST {
        if number == SWEEP_FIRST - 1 {
            tokio::time::advance(QUIET * 2).await;
        }
        wrote(&loops, &ObjectKey::from(format!("k-{number}")), 1);
    }
    let kept = loops.lock().by_key.len();
    assert!(kept <= 2 * SWEEP_FIRST + 1, "{kept} of {}", 3 * SWEEP_FIRST);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_keys_that_write_once_is_forgotten() {
    let loops = HotLoops::default();
    for version in 1..=10_000 {
        let key = ObjectKey::from(format!("default/{version}"));
        wrote(&loops, &key, version);
    }
    tokio::time::advance(QUIET * 2).await;
    wrote(&loops, &key(), 10_001);
    assert_eq!(loops.lock().by_key.len(), 1);
}
