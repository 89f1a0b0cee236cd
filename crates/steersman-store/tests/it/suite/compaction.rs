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
    assert!(quiet.delivered() >= fourth);
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
