//! Many who want the same key at the same time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;

pub(crate) async fn a_key_that_is_created_and_deleted_is_a_lock(store: StoreUnderTest) {
    const TASKS: usize = 6;
    const TURNS: usize = 60;
    let start = latest(&store).await;
    let (held, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (store, held, turns) = (store.clone(), Arc::clone(&held), Arc::clone(&turns));
            tokio::spawn(async move {
                while turns.load(Ordering::SeqCst) < TURNS {
                    let taken = try_write(&store, "/lock", Some("held"), Expected::Absent).await;
                    let Ok(taken) = taken else {
                        tokio::task::yield_now().await;
                        continue;
                    };
                    assert!(!held.swap(true, Ordering::SeqCst), "two hold it");
                    turns.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    held.store(false, Ordering::SeqCst);
                    let expected = Expected::Modified(taken.revision);
                    try_write(&store, "/lock", None, expected).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let turns = turns.load(Ordering::SeqCst);
    let events = read(&mut watch(&store, "/lock", start).await, 2 * turns).await;
    for turn in events.chunks(2) {
        assert_eq!(told(&turn[0]), "/lock=held (-)");
        assert_eq!(told(&turn[1]), "/lock=- (held)");
        let current = turn[0].current.as_ref().unwrap();
        assert_eq!((current.created, current.modified), (turn[0].revision, turn[0].revision));
    }
}

pub(crate) async fn of_many_deleters_one_wins(store: StoreUnderTest) {
    for round in 0..10 {
        let revision = put(&store, "/a", &round.to_string()).await;
        let deleters: Vec<_> = (0..8)
            .map(|number| {
                let store = store.clone();
                let expected =
                    if number % 2 == 0 { Expected::Any } else { Expected::Modified(revision) };
                tokio::spawn(async move { try_write(&store, "/a", None, expected).await })
            })
            .collect();
        let mut winners = 0;
        for deleter in deleters {
            match deleter.await.unwrap() {
                Ok(deleted) => {
                    winners += 1;
                    assert_eq!(deleted.previous.unwrap().modified, revision);
                }
                Err(StoreError::Conflict { found, .. }) => assert_eq!(found, None),
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(winners, 1);
    }
}
