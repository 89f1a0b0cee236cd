//! Hot loops: a controller that wakes itself.
//!
//! A reconcile that writes what it is woken by (a time in its own status, a child that something
//! else deletes at once) runs again and again for nothing. Every write of a reconcile is noted
//! here; a reconcile all of whose [causes](crate::cause) go back to such writes is *provoked*, and
//! it *repeats* if one of these writes was itself made by a provoked reconcile: the echo of a write
//! is no loop, the echo of an echo may be one. A key that repeats more than [`BUCKET`] times, faster
//! than [`LEAK_PER_SECOND`], is reported once, with what keeps changing, and from then on waits for
//! a growing time before each repetition, until it was quiet for a while. Whatever else happens to
//! the key (a change by somebody else, its own timer) is answered at once as ever.

mod changes;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;
use jiff::Timestamp;
use serde::Serialize;
use tokio::time::Instant;

use self::changes::Samples;
use crate::cause::{Causes, Origin, uid_hash};
use crate::client::WrittenObject;
use crate::clock;
use crate::object::{ObjectKey, version_of};

/// So many repetitions at once are no loop yet: work in steps that wait for each other.
const BUCKET: f64 = 60.;
/// So many of them in a second, for as long as you like, are none either.
const LEAK_PER_SECOND: f64 = 0.5;
/// From here on it is noted why the key is reconciled and what each write changes.
const SUSPECT: f64 = 40.;
/// What a loop waits at first; then twice as long each time, up to [`DELAY_MAX`].
const DELAY_FIRST: Duration = Duration::from_millis(100);
const DELAY_MAX: Duration = Duration::from_secs(30);
/// A loop is over when nothing repeated for so long, on top of the delay.
const QUIET: Duration = Duration::from_secs(60);
/// Writes remembered per key.
const WRITES_KEPT: usize = 64;
/// Keys remembered before those are dropped that have been quiet.
const SWEEP_FIRST: usize = 1024;

/// A key that keeps itself busy.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HotLoop {
    /// Which object is reconciled again and again.
    pub key: ObjectKey,
    /// Since when it is slowed.
    pub since: String,
    /// How often it repeated itself since.
    pub reconciles: u64,
    /// Why it was reconciled again and again until the loop was found.
    pub causes: Causes,
    /// What its writes keep changing, as far as it could be found out.
    pub changing: Vec<String>,
    /// How long it waits before it is reconciled again.
    pub delay_seconds: f64,
}

/// When a key may be reconciled.
#[derive(Debug)]
pub(crate) enum Pace {
    /// At once.
    Now,
    /// After this time.
    Later(Duration),
    /// After this time; and somebody should know why.
    Found(Duration, Box<HotLoop>),
}

/// Finds hot loops among the keys of a controller.
#[derive(Default)]
pub(crate) struct HotLoops {
    tracks: Mutex<Tracks>,
    /// How many keys have a track, so that nobody needs the lock to find none. A key's own writes
    /// are counted before its next worker gets it.
    len: AtomicUsize,
}

#[derive(Default)]
struct Tracks {
    /// Only keys that wrote something lately.
    by_key: HashMap<ObjectKey, Track>,
    /// How many there were when the quiet ones were dropped last, and when that was.
    swept: usize,
    swept_at: Option<Instant>,
}

/// What is remembered of a key.
struct Track {
    writes: VecDeque<Written>,
    /// Whether its last reconcile was provoked: then what is written now may go on for ever.
    provoked: bool,
    /// When it last repeated, or first wrote.
    last: Instant,
    /// How many repetitions have not leaked away.
    level: f64,
    /// Why it repeats: a loop may have several steps, each with a cause of its own.
    causes: Causes,
    samples: Samples,
    episode: Option<Episode>,
}

#[derive(Clone, Copy)]
struct Written {
    version: u64,
    uid: u64,
    /// Whether a provoked reconcile wrote it.
    provoked: bool,
}

/// A hot loop while it lasts.
struct Episode {
    since: Timestamp,
    reconciles: u64,
    causes: Causes,
    changing: Vec<String>,
    delay: Duration,
    /// The end of the wait, while there is one.
    until: Option<Instant>,
}

impl HotLoops {
    /// Notes that the reconcile of `key` wrote this object.
    pub(crate) fn wrote(&self, key: &ObjectKey, object: &WrittenObject<'_>) {
        let WrittenObject { kind, meta, content } = object;
        let Some(version) = version_of(meta.resource_version.as_deref()) else { return };
        let uid = meta.uid.as_deref().map_or(0, uid_hash);
        if !self.note(key, version, uid) {
            return;
        }
        // Encoded without the lock: it is the author's code.
        let Some(content) = content() else { return };
        let name = format!("{} {}", kind.name, ObjectKey::of_meta(meta));
        if let Some(track) = self.lock().by_key.get_mut(key) {
            track.samples.add(name, content);
        }
    }

    /// Remembers a write; gives whether the key is suspected.
    fn note(&self, key: &ObjectKey, version: u64, uid: u64) -> bool {
        let mut tracks = self.lock();
        tracks.make_room();
        let track = tracks.by_key.entry_ref(key).or_insert_with(Track::new);
        track.note(version, uid);
        let suspected = track.level >= SUSPECT && track.episode.is_none();
        self.len.store(tracks.by_key.len(), Ordering::Relaxed);
        suspected
    }

    /// Tells when a key with these causes may be reconciled.
    pub(crate) fn pace(&self, key: &ObjectKey, causes: &Causes) -> Pace {
        if self.len.load(Ordering::Relaxed) == 0 {
            return Pace::Now;
        }
        let mut tracks = self.lock();
        let Some(track) = tracks.by_key.get_mut(key) else { return Pace::Now };
        let now = Instant::now();
        track.calm_down(now);
        if !track.repeats(causes) {
            return Pace::Now;
        }
        let Some(episode) = &mut track.episode else {
            if !track.overflows(causes, now) {
                return Pace::Now;
            }
            let found = track.begin_episode(now);
            return Pace::Found(DELAY_FIRST, Box::new(found.shown(key)));
        };
        track.last = now;
        match episode.until {
            Some(until) if now < until => Pace::Later(until - now),
            Some(_) => {
                episode.until = None;
                Pace::Now
            }
            None => Pace::Later(episode.slow_down(now)),
        }
    }

    /// Forgets a key whose object is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        if self.len.load(Ordering::Relaxed) > 0 {
            let mut tracks = self.lock();
            tracks.by_key.remove(key);
            self.len.store(tracks.by_key.len(), Ordering::Relaxed);
        }
    }

    /// The loops that go on.
    pub(crate) fn shown(&self) -> Vec<HotLoop> {
        let mut tracks = self.lock();
        let now = Instant::now();
        let all = tracks.by_key.iter_mut().filter_map(|(key, track)| {
            track.calm_down(now);
            track.episode.as_ref().map(|episode| episode.shown(key))
        });
        let mut all: Vec<HotLoop> = all.collect();
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }

    fn lock(&self) -> MutexGuard<'_, Tracks> {
        self.tracks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tracks {
    /// Drops the keys that were quiet, now and then: when there are twice as many as before, and
    /// after a while also if there are not, since a flood of keys writes once and never again.
    fn make_room(&mut self) {
        if self.by_key.len() < SWEEP_FIRST {
            return;
        }
        let now = Instant::now();
        let lately = self.swept_at.is_some_and(|at| now.duration_since(at) <= QUIET);
        if lately && self.by_key.len() < 2 * self.swept {
            return;
        }
        self.by_key.retain(|_, track| !track.is_quiet(now));
        self.swept = self.by_key.len();
        self.swept_at = Some(now);
        self.by_key.shrink_to(2 * self.swept);
    }
}

impl Track {
    fn new() -> Self {
        Self {
            writes: VecDeque::new(),
            provoked: false,
            last: Instant::now(),
            level: 0.,
            causes: Causes::default(),
            samples: Samples::default(),
            episode: None,
        }
    }

    /// Remembers a write. One that changed nothing has the version of an earlier one.
    fn note(&mut self, version: u64, uid: u64) {
        if self.writes.iter().any(|known| known.version == version) {
            return;
        }
        if self.writes.len() == WRITES_KEPT {
            self.writes.pop_front();
        }
        self.writes.push_back(Written { version, uid, provoked: self.provoked });
    }

    /// Whether a reconcile with these causes answers a write that answered a write.
    fn repeats(&mut self, causes: &Causes) -> bool {
        let mut answers_an_answer = false;
        self.provoked = causes.all_go_back_to(|origin| {
            let written = self.written(origin);
            answers_an_answer |= written == Some(true);
            written.is_some()
        });
        self.provoked && answers_an_answer
    }

    /// Whether an event comes from a write of this key, or of the end of what it wrote; and if so,
    /// whether a provoked reconcile wrote it.
    fn written(&self, origin: &Origin) -> Option<bool> {
        let by_us =
            |known: &&Written| known.version == origin.version || origin.gone == Some(known.uid);
        let mut writes = self.writes.iter().filter(by_us).peekable();
        writes.peek()?;
        Some(writes.any(|write| write.provoked))
    }

    fn is_quiet(&self, now: Instant) -> bool {
        let delay = self.episode.as_ref().map_or(Duration::ZERO, |episode| episode.delay);
        now.duration_since(self.last) > QUIET + delay
    }

    /// Ends the loop if nothing repeated for a while.
    fn calm_down(&mut self, now: Instant) {
        if self.is_quiet(now) {
            self.episode = None;
            self.level = 0.;
            self.causes = Causes::default();
            self.samples = Samples::default();
        }
    }

    /// Counts a repetition; gives whether there are too many.
    fn overflows(&mut self, causes: &Causes, now: Instant) -> bool {
        let leaked = now.duration_since(self.last).as_secs_f64() * LEAK_PER_SECOND;
        self.level = (self.level - leaked).max(0.) + 1.;
        self.last = now;
        if self.level >= SUSPECT {
            self.causes.extend(causes);
        }
        self.level > BUCKET
    }

    fn begin_episode(&mut self, now: Instant) -> &Episode {
        self.episode.insert(Episode {
            since: clock::now(),
            reconciles: 1,
            causes: std::mem::take(&mut self.causes),
            changing: std::mem::take(&mut self.samples).changing(),
            delay: DELAY_FIRST,
            until: Some(now + DELAY_FIRST),
        })
    }
}

impl Episode {
    /// The next repetition waits longer; gives how long.
    fn slow_down(&mut self, now: Instant) -> Duration {
        self.reconciles += 1;
        self.delay = (self.delay * 2).min(DELAY_MAX);
        self.until = Some(now + self.delay);
        self.delay
    }

    fn shown(&self, key: &ObjectKey) -> HotLoop {
        HotLoop {
            key: key.clone(),
            since: self.since.to_string(),
            reconciles: self.reconciles,
            causes: self.causes.clone(),
            changing: self.changing.clone(),
            delay_seconds: self.delay.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests;
