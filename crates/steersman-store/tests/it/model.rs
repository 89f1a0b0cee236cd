//! A naive reference model, and random histories that a store must agree with.
//!
//! The model keeps every write in a list and answers each question by reading all of it.
//! Revisions in the generated operations are relative ("three writes ago"), and may reach
//! before the compacted part or into the future.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::test_runner::{Config, TestRunner};
use steersman_store::{
    Entry, Expected, Key, RangeRequest, Revision, Store, StoreError, WatchRequest, WriteRequest,
};

use crate::stores::{Ground, StoreUnderTest};

/// Keys that are prefixes of each other, and neighbours.
const KEYS: [&str; 6] = ["/a", "/a/1", "/a/2", "/a/2/x", "/ab", "/b"];
const PREFIXES: [&str; 5] = ["", "/a", "/a/", "/a/2", "/c"];

#[derive(Clone, Debug)]
enum Expect {
    Any,
    Absent,
    /// The key's last write, which makes the write succeed if the key exists.
    Right,
    Wrong,
}

#[derive(Clone, Debug)]
enum Operation {
    Write {
        key: usize,
        value: Option<u8>,
        expect: Expect,
    },
    Range {
        prefix: usize,
        start: Option<usize>,
        back: Option<i8>,
        limit: usize,
    },
    Watch {
        prefix: usize,
        back: i8,
    },
    Compact {
        back: i8,
    },
    /// Everything is there again, history included, after the store was opened again.
    Again,
}

fn operation() -> impl Strategy<Value = Operation> {
    let expect = prop_oneof![
        Just(Expect::Any),
        Just(Expect::Absent),
        Just(Expect::Right),
        Just(Expect::Wrong)
    ];
    let back = || -1_i8..20;
    prop_oneof![
        8 => (0..KEYS.len(), any::<Option<u8>>(), expect)
            .prop_map(|(key, value, expect)| Operation::Write { key, value, expect }),
        3 => (
            0..PREFIXES.len(),
            proptest::option::of(0..KEYS.len()),
            proptest::option::of(back()),
            0_usize..4,
        )
            .prop_map(|(prefix, start, back, limit)| Operation::Range { prefix, start, back, limit }),
        2 => (0..PREFIXES.len(), back()).prop_map(|(prefix, back)| Operation::Watch { prefix, back }),
        1 => back().prop_map(|back| Operation::Compact { back }),
        1 => Just(Operation::Again),
    ]
}

/// Every write since the store was empty.
struct Model {
    writes: Vec<(Revision, &'static str, Option<Bytes>)>,
    start: Revision,
    oldest: Revision,
}

impl Model {
    fn latest(&self) -> Revision {
        self.writes.last().map_or(self.start, |(revision, ..)| *revision)
    }

    fn back(&self, back: i8) -> Revision {
        Revision(self.latest().0.saturating_add_signed(-i64::from(back)))
    }

    fn check_kept(&self, requested: Revision) -> Result<(), StoreError> {
        let (oldest, current) = (self.oldest, self.latest());
        if requested > current {
            Err(StoreError::Future { requested, current })
        } else if requested < oldest {
            Err(StoreError::Compacted { requested, oldest })
        } else {
            Ok(())
        }
    }

    /// The state at a revision, by replaying every write up to it.
    fn at(&self, at: Revision) -> BTreeMap<&'static str, Entry> {
        let mut state = BTreeMap::<&'static str, Entry>::new();
        for (revision, key, value) in self.writes.iter().filter(|(revision, ..)| *revision <= at) {
            let before = state.remove(key);
            if let Some(value) = value {
                let created = before.map_or(*revision, |before| before.created);
                let (value, modified) = (value.clone(), *revision);
                state.insert(key, Entry { key: Key::from(*key), value, created, modified });
            }
        }
        state
    }
}

/// Runs random histories on stores that nobody else writes to.
pub(crate) fn check(ground: impl Future<Output = Ground>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let ground = runtime.block_on(ground);
    let histories = proptest::collection::vec(operation(), 1..60);
    let cases = ground.cases();
    let config = Config { failure_persistence: None, cases, ..Config::default() };
    TestRunner::new(config)
        .run(&histories, |history| {
            runtime.block_on(async { agree(ground.store().await, &history).await });
            Ok(())
        })
        .unwrap();
}

async fn agree(mut under_test: StoreUnderTest, history: &[Operation]) {
    let store = &**under_test;
    let start = store.range(RangeRequest::default()).await.unwrap().revision;
    let mut model = Model { writes: Vec::new(), start, oldest: start };
    // Nothing is known of the time before the store was handed to us.
    store.compact(start).await.unwrap();
    for operation in history {
        if matches!(operation, Operation::Again) {
            under_test = under_test.again().await;
        }
        let store = &**under_test;
        match operation.clone() {
            Operation::Again => {}
            Operation::Write { key, value, expect } => {
                agree_on_write(store, &mut model, KEYS[key], value, &expect).await;
            }
            Operation::Range { prefix, start, back, limit } => {
                let request = RangeRequest {
                    prefix: PREFIXES[prefix].to_owned(),
                    start: start.map(|start| KEYS[start].to_owned()),
                    at: back.map(|back| model.back(back)),
                    limit,
                    count: true,
                    stale: false,
                    keys_only: false,
                };
                agree_on_range(store, &model, request).await;
            }
            Operation::Watch { prefix, back } => {
                agree_on_watch(store, &model, PREFIXES[prefix], model.back(back)).await;
            }
            Operation::Compact { back } => agree_on_compact(store, &mut model, back).await,
        }
        for key in KEYS {
            let expected = model.at(model.latest()).remove(key);
            assert_eq!(store.get(key).await.unwrap(), expected);
        }
    }
}

async fn agree_on_write(
    store: &dyn Store,
    model: &mut Model,
    key: &'static str,
    value: Option<u8>,
    expect: &Expect,
) {
    let previous = model.at(model.latest()).remove(key);
    let found = previous.as_ref().map(|entry| entry.modified);
    let expected = match expect {
        Expect::Any => Expected::Any,
        Expect::Absent => Expected::Absent,
        Expect::Right => Expected::Modified(found.unwrap_or(model.latest())),
        Expect::Wrong => Expected::Modified(Revision(found.map_or(0, |found| found.0 - 1))),
    };
    let allowed = match expect {
        Expect::Any => value.is_some() || found.is_some(),
        Expect::Absent => value.is_some() && found.is_none(),
        Expect::Right => found.is_some(),
        Expect::Wrong => false,
    };
    let value = value.map(|value| Bytes::from(vec![value]));
    let request = WriteRequest { key: key.into(), value: value.clone(), expected, ttl: None };
    match store.write(request).await {
        Ok(written) => {
            assert!(allowed, "{key} was written although it was not as expected");
            assert!(written.revision > model.latest());
            assert_eq!(written.previous, previous);
            model.writes.push((written.revision, key, value));
        }
        Err(error) => {
            assert!(!allowed, "{error}");
            assert_eq!(error, StoreError::Conflict { key: key.into(), expected, found });
        }
    }
}

async fn agree_on_range(store: &dyn Store, model: &Model, request: RangeRequest) {
    let at = request.at.unwrap_or(model.latest());
    let answer = store.range(request.clone()).await;
    if let Err(expected) = model.check_kept(at) {
        assert_eq!(answer.unwrap_err(), expected);
        return;
    }
    let mut expected: Vec<Entry> = model
        .at(at)
        .into_values()
        .filter(|entry| entry.key.starts_with(&request.prefix))
        .filter(|entry| request.start.as_deref().is_none_or(|start| &*entry.key >= start))
        .collect();
    let limit = if request.limit == 0 { expected.len() } else { request.limit };
    let remaining = expected.len().saturating_sub(limit);
    expected.truncate(limit);
    let answer = answer.unwrap();
    assert_eq!((answer.entries, answer.revision), (expected, at));
    assert_eq!((answer.more, answer.remaining), (remaining > 0, Some(remaining)));
}

async fn agree_on_watch(store: &dyn Store, model: &Model, prefix: &str, after: Revision) {
    let watch = store.watch(WatchRequest { prefix: prefix.to_owned(), after }).await;
    if let Err(expected) = model.check_kept(after) {
        assert_eq!(watch.err(), Some(expected));
        return;
    }
    let mut watch = watch.unwrap();
    let expected: Vec<_> = model
        .writes
        .iter()
        .filter(|(revision, key, _)| *revision > after && key.starts_with(prefix))
        .collect();
    let mut events = Vec::new();
    while events.len() < expected.len() {
        events.extend(watch.next().await.unwrap());
    }
    assert_eq!(events.len(), expected.len());
    for (event, (revision, key, value)) in events.iter().zip(expected) {
        assert_eq!((event.revision, &*event.key), (*revision, *key));
        assert_eq!(event.current.as_ref().map(|entry| &entry.value), value.as_ref());
        assert_eq!(event.current, model.at(*revision).remove(key));
        assert_eq!(event.previous, model.at(Revision(revision.0 - 1)).remove(key));
    }
    assert_eq!(watch.delivered(), model.latest());
}

async fn agree_on_compact(store: &dyn Store, model: &mut Model, back: i8) {
    let revision = model.back(back);
    let answer = store.compact(revision).await;
    if revision > model.latest() {
        let (requested, current) = (revision, model.latest());
        assert_eq!(answer, Err(StoreError::Future { requested, current }));
    } else {
        assert_eq!(answer, Ok(()));
        model.oldest = model.oldest.max(revision);
    }
}
