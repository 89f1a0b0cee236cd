//! ConfigMaps and Secrets as they were read a moment ago: the Pods of a Deployment refer to the same,
//! and are started together.
//!
//! Only what was there is remembered, and not for long. What was not there counts for those who waited
//! for the same answer, and for nobody whose question came up after it was asked for.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use steersman::{Client, Object, ObjectKey};
use tokio::time::Instant;

use crate::objects::{Objects, References};

/// For how long an object is remembered.
const RECENT: Duration = Duration::from_secs(2);
/// How many of a kind are remembered.
const REMEMBERED_MAX: usize = 1_000;

/// What was read for the Pods of all nodes.
#[derive(Default)]
pub(super) struct Readings {
    config_maps: Kept<ConfigMap>,
    secrets: Kept<Secret>,
    /// Counts questions as they come up and as they are asked: the clock may not tell them apart.
    turns: AtomicU64,
}

/// A question about objects of a namespace.
pub(super) struct Question<'a> {
    readings: &'a Readings,
    client: &'a Client,
    namespace: &'a str,
    /// When it came up.
    turn: u64,
}

/// How old an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// It may be remembered.
    Recent,
    /// It was asked for after the question came up.
    New,
}

impl Readings {
    /// A question that comes up now.
    pub(super) fn question<'a>(&'a self, namespace: &'a str, client: &'a Client) -> Question<'a> {
        Question { readings: self, client, namespace, turn: next(&self.turns) }
    }
}

impl Question<'_> {
    /// Reads what is asked for, all at once.
    pub(super) async fn read(&self, references: &References, age: Age) -> Objects {
        let Readings { config_maps, secrets, turns } = self.readings;
        let asked = Asked { turns, turn: self.turn, age };
        let maps = references.config_maps.iter().map(|name| self.one(config_maps, name, asked));
        let maps: Vec<_> = maps.collect();
        let others = references.secrets.iter().map(|name| self.one(secrets, name, asked));
        let others: Vec<_> = others.collect();
        let (maps, others) = futures::join!(join_all(maps), join_all(others));
        Objects {
            config_maps: maps.into_iter().flatten().collect(),
            secrets: others.into_iter().flatten().collect(),
        }
    }

    /// An object with its name, if there is one.
    async fn one<K: Object>(
        &self,
        kept: &Kept<K>,
        name: &str,
        asked: Asked<'_>,
    ) -> Option<(String, Result<Arc<K>, String>)> {
        let key = ObjectKey::namespaced(self.namespace, name);
        let asking = key.clone();
        let reading = async move {
            match self.client.get::<K>(asking).await {
                Ok(found) => found.map(|found| Ok(Arc::new(found))),
                Err(error) => Some(Err(error.to_string())),
            }
        };
        let found = kept.find(key, asked, reading).await?;
        Some((name.to_owned(), found))
    }
}

/// What is asked of an answer.
#[derive(Clone, Copy)]
struct Asked<'a> {
    turns: &'a AtomicU64,
    /// When the question came up.
    turn: u64,
    age: Age,
}

/// An object, or why it cannot be read; nothing if there is none.
type Found<K> = Option<Result<Arc<K>, String>>;

/// The last answer about one object. Who holds it asks, and whoever waits for it may have the answer.
type Place<K> = Arc<tokio::sync::Mutex<Option<Answer<K>>>>;

/// What was read of one kind.
struct Kept<K> {
    places: Mutex<HashMap<ObjectKey, Place<K>>>,
}

struct Answer<K> {
    found: Found<K>,
    /// When it was asked for.
    turn: u64,
    at: Instant,
}

impl<K> Default for Kept<K> {
    fn default() -> Self {
        Self { places: Mutex::default() }
    }
}

impl<K> Kept<K> {
    /// What is known of an object, or else what is read.
    async fn find(
        &self,
        key: ObjectKey,
        asked: Asked<'_>,
        reading: impl Future<Output = Found<K>>,
    ) -> Found<K> {
        let place = self.place(key);
        let mut last = place.lock().await;
        if let Some(answer) = last.as_ref().filter(|answer| answer.counts(asked)) {
            return answer.found.clone();
        }
        let (turn, at) = (next(asked.turns), Instant::now());
        let found = reading.await;
        *last = Some(Answer { found: found.clone(), turn, at });
        found
    }

    fn place(&self, key: ObjectKey) -> Place<K> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= REMEMBERED_MAX && !places.contains_key(&key) {
            places.clear();
        }
        Arc::clone(places.entry(key).or_default())
    }
}

impl<K> Answer<K> {
    fn counts(&self, asked: Asked<'_>) -> bool {
        match self.found {
            Some(Ok(_)) if asked.age == Age::Recent && self.at.elapsed() < RECENT => true,
            Some(Ok(_)) | None => self.turn > asked.turn,
            // It may be about who asked.
            Some(Err(_)) => false,
        }
    }
}

fn next(turns: &AtomicU64) -> u64 {
    turns.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::advance;

    use super::*;

    /// What has one object, and counts who reads it.
    struct Scene {
        kept: Kept<&'static str>,
        turns: AtomicU64,
        there: Cell<Option<&'static str>>,
        reads: Cell<usize>,
    }

    impl Scene {
        fn new(there: Option<&'static str>) -> Self {
            let (kept, turns) = (Kept::default(), AtomicU64::new(0));
            Self { kept, turns, there: Cell::new(there), reads: Cell::new(0) }
        }

        /// Answers a question that came up at a turn.
        async fn find(&self, turn: u64, age: Age) -> Option<&'static str> {
            let reading = async {
                self.reads.set(self.reads.get() + 1);
                tokio::task::yield_now().await;
                self.there.get().map(|it| Ok(Arc::new(it)))
            };
            let asked = Asked { turns: &self.turns, turn, age };
            let found = self.kept.find(ObjectKey::named("it"), asked, reading).await;
            found.map(|found| *found.expect("it can be read"))
        }

        /// How often it is read by so many Pods at once, of which all find the same.
        async fn read_by(&self, count: usize, expected: Option<&'static str>) -> usize {
            let before = self.reads.get();
            let all = (0..count).map(|_| self.find(next(&self.turns), Age::Recent));
            for found in join_all(all.collect::<Vec<_>>()).await {
                assert_eq!(found, expected);
            }
            self.reads.get() - before
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_many_pods_need_is_read_once_in_a_while() {
        let scene = Scene::new(Some("old"));
        assert_eq!(scene.read_by(500, Some("old")).await, 1);
        scene.there.set(Some("new"));
        assert_eq!(scene.read_by(500, Some("old")).await, 0);
        advance(RECENT).await;
        assert_eq!(scene.read_by(500, Some("new")).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_there_is_looked_for_again_by_whoever_asks_later() {
        let scene = Scene::new(None);
        assert_eq!(scene.read_by(500, None).await, 1, "all wait for the same");
        scene.there.set(Some("it"));
        assert_eq!(scene.read_by(500, Some("it")).await, 1, "no time has passed");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_can_be_had_anew() {
        let scene = Scene::new(Some("old"));
        assert_eq!(scene.read_by(1, Some("old")).await, 1);
        scene.there.set(Some("new"));
        let turn = next(&scene.turns);
        assert_eq!(scene.find(turn, Age::Recent).await, Some("old"));
        assert_eq!(scene.find(turn, Age::New).await, Some("new"));
        assert_eq!(scene.find(turn, Age::New).await, Some("new"));
        assert_eq!(scene.reads.get(), 2, "it was asked for after the question came up");
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let kept: Kept<()> = Kept::default();
        for number in 0..=REMEMBERED_MAX {
            kept.place(ObjectKey::named(number.to_string()));
        }
        assert_eq!(kept.places.lock().unwrap().len(), 1);
    }
}
