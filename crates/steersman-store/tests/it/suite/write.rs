//! Writes: revisions, compare-and-swap, contention.

use super::*;

pub(crate) async fn an_empty_store_is_after_revision_zero(store: StoreUnderTest) {
    assert_eq!(list(&store, "", None).await, Vec::<String>::new());
    assert!(put(&store, "/a", "1").await >= Revision(1));
}

pub(crate) async fn every_write_has_a_revision_of_its_own(store: StoreUnderTest) {
    let first = put(&store, "/a", "1").await;
    let second = put(&store, "/b", "1").await;
    let third = put(&store, "/a", "1").await;
    let fourth = delete(&store, "/b").await;
    assert!(first < second && second < third && third < fourth);
    assert_latest(&store, fourth).await;
}

pub(crate) async fn an_entry_remembers_when_it_was_created_and_modified(store: StoreUnderTest) {
    let created = put(&store, "/a", "1").await;
    let modified = put(&store, "/a", "2").await;
    let entry = store.get("/a").await.unwrap().unwrap();
    assert_eq!((&*entry.key, text(&entry.value)), ("/a", "2".to_owned()));
    assert_eq!((entry.created, entry.modified), (created, modified));
}

pub(crate) async fn a_key_created_again_starts_over(store: StoreUnderTest) {
    put(&store, "/a", "1").await;
    delete(&store, "/a").await;
    assert_eq!(store.get("/a").await.unwrap(), None);
    let again = put(&store, "/a", "2").await;
    let entry = store.get("/a").await.unwrap().unwrap();
    assert_eq!((entry.created, entry.modified), (again, again));
}

pub(crate) async fn a_write_reports_what_it_replaced(store: StoreUnderTest) {
    let created = try_write(&store, "/a", Some("1"), Expected::Any).await.unwrap();
    assert_eq!(created.previous, None);
    let first = store.get("/a").await.unwrap();
    let updated = try_write(&store, "/a", Some("2"), Expected::Any).await.unwrap();
    assert_eq!(updated.previous, first);
    let second = store.get("/a").await.unwrap();
    let deleted = try_write(&store, "/a", None, Expected::Any).await.unwrap();
    assert_eq!(deleted.previous, second);
}

pub(crate) async fn a_write_happens_only_if_the_key_is_as_expected(store: StoreUnderTest) {
    let first = try_write(&store, "/a", Some("1"), Expected::Absent).await.unwrap().revision;
    assert_conflict(&store, Some("2"), Expected::Absent, Some(first)).await;

    let modified = Expected::Modified(first);
    let second = try_write(&store, "/a", Some("2"), modified).await.unwrap().revision;
    assert_conflict(&store, Some("3"), modified, Some(second)).await;
    assert_conflict(&store, None, modified, Some(second)).await;
    assert_conflict(&store, None, Expected::Absent, Some(second)).await;

    try_write(&store, "/a", None, Expected::Modified(second)).await.unwrap();
    assert_conflict(&store, Some("4"), Expected::Modified(second), None).await;
}

pub(crate) async fn a_conflict_leaves_the_store_unchanged(store: StoreUnderTest) {
    let revision = put(&store, "/a", "1").await;
    let mut watch = watch(&store, "/", revision).await;
    assert_conflict(&store, Some("2"), Expected::Absent, Some(revision)).await;
    assert_eq!(value(&store, "/a").await.unwrap(), "1");
    assert_latest(&store, revision).await;

    put(&store, "/b", "1").await;
    assert_eq!(told(&read(&mut watch, 1).await[0]), "/b=1 (-)");
}

pub(crate) async fn deleting_an_absent_key_conflicts(store: StoreUnderTest) {
    for expected in [Expected::Any, Expected::Absent, Expected::Modified(Revision(1))] {
        assert_conflict(&store, None, expected, None).await;
    }
    put(&store, "/a", "1").await;
    delete(&store, "/a").await;
    assert_conflict(&store, None, Expected::Any, None).await;
}

pub(crate) async fn of_many_creators_one_wins(store: StoreUnderTest) {
    let creators: Vec<_> = (0..32)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let value = number.to_string();
                try_write(&store, "/a", Some(&value), Expected::Absent).await.map(|_| value)
            })
        })
        .collect();
    let mut winners = Vec::new();
    for creator in creators {
        winners.extend(creator.await.unwrap());
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(value(&store, "/a").await, winners.pop());
}

pub(crate) async fn contended_increments_are_never_lost(store: StoreUnderTest) {
    const TASKS: usize = 16;
    const EACH: usize = 25;
    let before = put(&store, "/counter", "0").await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                for _ in 0..EACH {
                    increment(&store, "/counter").await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(value(&store, "/counter").await.unwrap(), (TASKS * EACH).to_string());

    let events = read(&mut watch(&store, "/counter", before).await, TASKS * EACH).await;
    let counted: Vec<String> = events.iter().map(|event| told(event)).collect();
    let expected: Vec<String> =
        (1..=TASKS * EACH).map(|n| format!("/counter={n} ({})", n - 1)).collect();
    assert_eq!(counted, expected);
}

/// Adds one by compare-and-swap, again and again until nobody came in between.
async fn increment(store: &StoreUnderTest, key: &str) {
    loop {
        let entry = store.get(key).await.unwrap().unwrap();
        let next = text(&entry.value).parse::<usize>().unwrap() + 1;
        let expected = Expected::Modified(entry.modified);
        match try_write(store, key, Some(&next.to_string()), expected).await {
            Ok(_) => return,
            Err(StoreError::Conflict { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

async fn assert_conflict(
    store: &StoreUnderTest,
    value: Option<&str>,
    expected: Expected,
    found: Option<Revision>,
) {
    let error = try_write(store, "/a", value, expected).await.unwrap_err();
    assert_eq!(error, StoreError::Conflict { key: "/a".into(), expected, found });
}
