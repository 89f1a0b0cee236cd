//! Reads that never miss the controller's own writes.
//!
//! Every write through a [`Context`](crate::Context) is noted under the key being reconciled.
//! Before that key is reconciled again, the caches must show what it wrote. A cache that is
//! behind postpones that key and no other; the worker goes on with the next one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::cache::{AnyCache, OwnWrite, Progress};
use crate::hot_loop::HotLoops;
use crate::object::ObjectKey;

/// A cache is usually behind by less than this: so long a worker waits for it.
const MOMENT: Duration = Duration::from_millis(20);
/// The shortest time between two looks at a cache that is further behind. A look costs next to
/// nothing, and whoever is looked for too late has waited in vain.
const RECHECK_MIN: Duration = Duration::from_millis(5);
/// The longest.
const RECHECK_MAX: Duration = Duration::from_secs(1);
/// Of the time that a cache has been behind, the part after which it is looked at again.
const RECHECK_PART: u32 = 8;
/// After this long a cache is not going to show a write, for whatever reason.
const PATIENCE: Duration = Duration::from_secs(300);
/// Writes remembered per key; a reconcile that writes more waits for the last ones.
const KEPT: usize = 1024;
/// Keys remembered before those are dropped whose writes are visible by now.
const SWEEP_FIRST: usize = 1024;

/// The writes that caches have yet to show, by the key whose reconcile made them.
#[derive(Default)]
pub(crate) struct OwnWrites {
    pending: Mutex<AllPending>,
    /// How many keys are pending, so that nobody needs the lock to find none. A key's own writes
    /// are counted before its next worker gets it.
    len: AtomicUsize,
    /// Finds keys that are woken by nothing but what they write.
    pub(crate) hot_loops: HotLoops,
}

#[derive(Default)]
struct AllPending {
    by_key: HashMap<ObjectKey, Pending>,
    /// How many there were when the visible ones were dropped last.
    swept: usize,
}

struct Pending {
    /// When the last of them was made.
    since: Instant,
    writes: Vec<(Arc<dyn AnyCache>, OwnWrite)>,
}

/// Whether a key may be reconciled.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// The caches show everything its last reconcile wrote.
    Visible,
    /// They do not yet: look again after this time.
    Behind(Duration),
    /// They have not for so long that the key is reconciled all the same.
    GivenUp,
}

impl OwnWrites {
    pub(crate) fn note(&self, key: &ObjectKey, cache: Arc<dyn AnyCache>, write: OwnWrite) {
        let mut all = self.lock();
        all.make_room();
        let since = Instant::now();
        let pending = all.by_key.entry_ref(key).or_insert_with(|| Pending::since(since));
        pending.since = since;
        if pending.writes.len() == KEPT {
            pending.writes.remove(0);
        }
        pending.writes.push((cache, write));
        self.len.store(all.by_key.len(), Ordering::Relaxed);
    }

    /// Tells whether the caches show what the last reconcile of `key` wrote; waits a moment
    /// for them if that was just now.
    pub(crate) async fn visible(&self, key: &ObjectKey) -> Visibility {
        let mut deadline = None;
        loop {
            let Some((since, mut progress)) = self.unshown(key) else {
                return Visibility::Visible;
            };
            let waited = since.elapsed();
            if waited > PATIENCE {
                self.give_up(key);
                return Visibility::GivenUp;
            }
            if waited >= RECHECK_MAX {
                self.reread(key);
            }
            let moment = MOMENT.saturating_sub(waited);
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + moment);
            if timeout_at(deadline, progress.changed()).await.is_err() {
                let recheck = since.elapsed() / RECHECK_PART;
                return Visibility::Behind(recheck.clamp(RECHECK_MIN, RECHECK_MAX));
            }
        }
    }

    /// What a cache has not shown for so long, its watch may never tell: it is read by itself.
    fn reread(&self, key: &ObjectKey) {
        if let Some(pending) = self.lock().by_key.get(key) {
            let missing = pending.writes.iter().filter(|(cache, write)| !cache.shows(write));
            missing.for_each(|(cache, write)| cache.reread(write.key()));
        }
    }

    /// Forgets the writes of a key whose object is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.give_up(key);
        self.hot_loops.forget(key);
    }

    fn give_up(&self, key: &ObjectKey) {
        if self.len.load(Ordering::Relaxed) > 0 {
            let mut all = self.lock();
            all.by_key.remove(key);
            self.len.store(all.by_key.len(), Ordering::Relaxed);
        }
    }

    /// Drops the last writes that are visible by now; if any is left, gives since when, and the
    /// progress to wait for. What was written last is shown last, more often than not: one look
    /// tells that a cache is behind, however much was written.
    fn unshown(&self, key: &ObjectKey) -> Option<(Instant, watch::Receiver<Progress>)> {
        if self.len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut all = self.lock();
        let pending = all.by_key.get_mut(key)?;
        while let Some((cache, write)) = pending.writes.last() {
            // Subscribed before the look, so that no progress falls in between.
            let progress = cache.progress();
            if !cache.shows(write) {
                return Some((pending.since, progress));
            }
            pending.writes.pop();
        }
        all.by_key.remove(key);
        self.len.store(all.by_key.len(), Ordering::Relaxed);
        None
    }

    fn lock(&self) -> MutexGuard<'_, AllPending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AllPending {
    /// Drops what is visible by now, now and then: a key that nothing wakes does not look itself.
    fn make_room(&mut self) {
        if self.by_key.len() < SWEEP_FIRST.max(2 * self.swept) {
            return;
        }
        self.by_key.retain(|_, pending| {
            pending.writes.retain(|(cache, write)| !cache.shows(write));
            !pending.writes.is_empty()
        });
        self.swept = self.by_key.len();
        self.by_key.shrink_to(2 * self.swept);
    }
}

impl Pending {
    fn since(since: Instant) -> Self {
        Self { since, writes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;
    use crate::cache::{self, Untyped};

    /// A write of an object that is gone by then: the cache as a whole must have come so far.
    fn written(version: u64) -> OwnWrite {
        OwnWrite::Version { key: ObjectKey::from("default/child"), version }
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_is_waited_for_a_moment_then_looked_for_and_at_last_given_up() {
        let (mut writer, cache) = cache::channel::<ConfigMap>();
        let (own_writes, key) = (OwnWrites::default(), ObjectKey::from("default/a"));
        assert_eq!(own_writes.visible(&key).await, Visibility::Visible);
        own_writes.note(&key, Arc::new(cache.clone().cast()), written(7));
        assert!(matches!(own_writes.visible(&key).await, Visibility::Behind(_)));
        writer.bookmark(Some(7));
        assert_eq!(own_writes.visible(&key).await, Visibility::Visible);
        own_writes.note(&key, Arc::new(cache.cast()), written(8));
        tokio::time::advance(PATIENCE + MOMENT).await;
        assert_eq!(own_writes.visible(&key).await, Visibility::GivenUp);
        assert_eq!(own_writes.visible(&key).await, Visibility::Visible);
    }

    #[tokio::test(start_paused = true)]
    async fn keys_that_nothing_wakes_do_not_pile_up() {
        let (mut writer, cache) = cache::channel::<Untyped>();
        let cache = Arc::new(cache);
        let own_writes = OwnWrites::default();
        for version in 1..=10_000 {
            let key = ObjectKey::from(format!("default/{version}"));
            own_writes.note(&key, Arc::clone(&cache) as _, written(version));
            writer.bookmark(Some(version));
        }
        assert!(own_writes.lock().by_key.len() <= SWEEP_FIRST);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_write_of_a_long_reconcile_is_waited_for_as_well() {
        let (_writer, cache) = cache::channel::<ConfigMap>();
        let (own_writes, key) = (OwnWrites::default(), ObjectKey::from("default/a"));
        own_writes.note(&key, Arc::new(cache.clone().cast()), written(7));
        tokio::time::advance(PATIENCE + MOMENT).await;
        own_writes.note(&key, Arc::new(cache.cast()), written(8));
        assert!(matches!(own_writes.visible(&key).await, Visibility::Behind(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn progress_within_a_moment_is_noticed_at_once() {
        let (mut writer, cache) = cache::channel::<ConfigMap>();
        let (own_writes, key) = (Arc::new(OwnWrites::default()), ObjectKey::from("default/a"));
        own_writes.note(&key, Arc::new(cache.cast()), written(7));
        let start = Instant::now();
        let waiting = tokio::spawn(async move { own_writes.visible(&key).await });
        tokio::task::yield_now().await;
        writer.bookmark(Some(6));
        tokio::task::yield_now().await;
        writer.bookmark(Some(7));
        assert_eq!(waiting.await.unwrap(), Visibility::Visible);
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    /// A cache that shows everything or nothing, and counts how often it is looked at.
    struct Watched {
        shows: AtomicBool,
        looks: AtomicUsize,
        progress: watch::Sender<Progress>,
    }

    impl AnyCache for Watched {
        fn own_write(
            &self,
            _: &ObjectMeta,
            _: &dyn Fn() -> Option<serde_json::Value>,
        ) -> Option<OwnWrite> {
            None
        }

        fn reread(&self, _: &ObjectKey) {}

        fn shows(&self, _: &OwnWrite) -> bool {
            self.looks.fetch_add(1, Ordering::Relaxed);
            self.shows.load(Ordering::Relaxed)
        }

        fn progress(&self) -> watch::Receiver<Progress> {
            self.progress.subscribe()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_look_tells_that_a_cache_is_behind_however_much_was_written() {
        let cache = Arc::new(Watched {
            shows: AtomicBool::new(false),
            looks: AtomicUsize::new(0),
            progress: watch::Sender::new(Progress::default()),
        });
        let (own_writes, key) = (OwnWrites::default(), ObjectKey::from("default/a"));
        for version in 1..=500 {
            own_writes.note(&key, Arc::clone(&cache) as _, written(version));
        }
        // The longer it is behind, the less often it is looked at.
        for (waited, recheck) in [(0, RECHECK_MIN), (780, Duration::from_millis(100))] {
            tokio::time::advance(Duration::from_millis(waited)).await;
            let visibility = own_writes.visible(&key).await;
            let soon = recheck..recheck + Duration::from_millis(1);
            assert!(matches!(visibility, Visibility::Behind(it) if soon.contains(&it)));
        }
        assert_eq!(cache.looks.load(Ordering::Relaxed), 2);
        cache.shows.store(true, Ordering::Relaxed);
        assert_eq!(own_writes.visible(&key).await, Visibility::Visible);
        assert_eq!(cache.looks.load(Ordering::Relaxed), 502);
    }
}
