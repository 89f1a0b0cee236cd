//! Compaction: what is forgotten, and who is told.

use super::*;

/// Three writes to `/a` and one to `/b`; returns their revisions in that order.
async fn some_history(store: &StoreUnderTest) -> [Revision; 4] {
    [
        put(store, "/a", "1").await,
        put(store, "/a", "2").await,
        put(store, "/a", "3").await,
        put(store, "/b", "1").await,
    ]
}

pub(crate) async fn a_compacted_revision_cannot_be_read_or_watched(store: StoreUnderTest) {
    let [first, second, ..] = some_history(&store).await;
    store.compact(second).await.unwrap();
    let compacted = StoreError::Compacted { requested: first, oldest: second };

    let range = RangeRequest { at: Some(first), ..RangeRequest::default() };
    assert_eq!(store.range(range).await.unwrap_err(), compacted);
    let watch = WatchRequest { prefix: String::new(), after: first };
    assert_eq!(store.watch(watch).await.err().unwrap(), compacted);
}

pub(crate) async fn compaction_keeps_the_state_at_its_revision(store: StoreUnderTest) {
    let [_, second, third, fourth] = some_history(&store).await;
    store.compact(second).await.unwrap();
    assert_eq!(list(&store, "/", Some(second)).await, ["/a=2"]);
    assert_eq!(list(&store, "/", Some(third)).await, ["/a=3"]);
    let seen = read(&mut watch(&store, "/", second).await, 2).await;
    assert_eq!(seen.iter().map(|event| event.revision).collect::<Vec<_>>(), [third, fourth]);

    store.compact(fourth).await.unwrap();
    assert_eq!(list(&store, "/", None).await, ["/a=3", "/b=1"]);
    assert_eq!(store.get("/a").await.unwrap().unwrap().modified, third);
}

pub(crate) async fn compacting_what_is_compacted_does_nothing(store: StoreUnderTest) {
    let [first, second, third, _] = some_history(&store).await;
    store.compact(third).await.unwrap();
    store.compact(third).await.unwrap();
    store.compact(first).await.unwrap();
    assert_eq!(list(&store, "/", Some(third)).await, ["/a=3"]);
    let range = RangeRequest { at: Some(second), ..RangeRequest::default() };
    assert!(matches!(store.range(range).await, Err(StoreError::Compacted { .. })));
}

pub(crate) async fn a_watch_that_compaction_passed_by_is_told(store: StoreUnderTest) {
    let start = latest(&store).await;
    let mut slow = watch(&store, "/", start).await;
    let [_, second, ..] = some_history(&store).await;
    store.compact(second).await.unwrap();
    let told = slow.next().await.unwrap_err();
    assert_eq!(told, StoreError::Compacted { requested: start, oldest: second });
    assert_eq!(slow.delivered(), start);
}

pub(crate) async fn a_watch_survives_compaction_of_what_it_has_seen(store: StoreUnderTest) {
    let mut kept = watch(&store, "/", latest(&store).await).await;
    let [.., fourth] = some_history(&store).await;
    read(&mut kept, 4).await;
    store.compact(fourth).await.unwrap();
    delete(&store, "/a").await;
    assert_eq!(told(&read(&mut kept, 1).await[0]), "/a=- (3)");
}

pub(crate) async fn a_watch_where_nothing_changes_is_never_passed_by(store: StoreUnderTest) {
    let mut quiet = watch(&store, "/quiet/", latest(&store).await).await;
    let [.., fourth] = some_history(&store).await;
    store.compact(fourth).await.unwrap();
    assert!(latest(&store).await >= fourth && quiet.delivered() >= fourth);
    put(&store, "/quiet/a", "1").await;
    assert_eq!(told(&read(&mut quiet, 1).await[0]), "/quiet/a=1 (-)");
}

pub(crate) async fn a_watch_is_told_of_the_first_change_after_a_compacted_silence(
    store: StoreUnderTest,
) {
    let start = latest(&store).await;
    let (mut quiet, mut late) =
        (watch(&store, "/quiet/", start).await, watch(&store, "/quiet/", start).await);
    let [.., fourth] = some_history(&store).await;
    store.compact(fourth).await.unwrap();
    let first = put(&store, "/quiet/a", "1").await;
    assert_eq!(told(&read(&mut quiet, 1).await[0]), "/quiet/a=1 (-)");
    assert!(quiet.delivered() >= first);

    let [.., latest] = some_history(&store).await;
    store.compact(latest).await.unwrap();
    put(&store, "/quiet/a", "2").await;
    assert_eq!(told(&read(&mut quiet, 1).await[0]), "/quiet/a=2 (1)");
    assert!(matches!(late.next().await, Err(StoreError::Compacted { .. })), "it missed a change");
}

pub(crate) async fn a_slow_watch_is_cut_off_and_disturbs_nobody(store: StoreUnderTest) {
    const WRITES: usize = 1500;
    let start = latest(&store).await;
    let mut slow = watch(&store, "/", start).await;
    let mut fast = watch(&store, "/", start).await;
    let mut last = start;
    for number in 0..WRITES {
        last = put(&store, &format!("/{}", number % 10), &number.to_string()).await;
        if number == 0 {
            assert_eq!(read(&mut slow, 1).await[0].revision, last, "it was not always slow");
        }
    }
    let heard = read(&mut fast, WRITES).await;
    assert_eq!(heard.last().unwrap().revision, last);
    store.compact(last).await.unwrap();
    assert!(matches!(slow.next().await, Err(StoreError::Compacted { .. })));

    let state = list(&store, "/", None).await;
    let mut again = watch(&store, "/", latest(&store).await).await;
    let next = put(&store, "/next", "1").await;
    for watch in [&mut fast, &mut again] {
        assert_eq!(read(watch, 1).await[0].revision, next);
    }
    assert_eq!(state.len(), 10, "what the slow one missed can be listed");
    assert!(matches!(slow.next().await, Err(StoreError::Compacted { .. })), "it stays cut off");
}

pub(crate) async fn history_is_compacted_under_readers_and_writers(store: StoreUnderTest) {
    let start = latest(&store).await;
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            for number in 0..600 {
                put(&store, &format!("/{}", number % 7), &number.to_string()).await;
            }
        }
    });
    let mut follower = watch(&store, "/", start).await;
    let mut heard = 0;
    while heard < 600 {
        let events = follower.next().await.unwrap();
        heard += events.len();
        // What was heard may be forgotten: this watch has it behind it, a new one can begin here.
        let seen = follower.delivered();
        store.compact(seen).await.unwrap();
        let at = events.last().unwrap().revision.max(seen);
        assert!(!list(&store, "/", Some(at)).await.is_empty());
    }
    writer.await.unwrap();
    let state = list(&store, "/", None).await;
    assert_eq!(state, (0..7).map(|key| format!("/{key}={}", value_after(key))).collect::<Vec<_>>());
}

/// The last number below 600 that leaves this rest when divided by seven.
fn value_after(key: usize) -> usize {
    (0..600).rev().find(|number| number % 7 == key).unwrap()
}
