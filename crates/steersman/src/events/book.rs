//! The series that are open: what happened, how often, and when it is written.
//!
//! No clock and no client in here: every method is given the time. The rules:
//!
//! - Equal events are one [`Series`]: created at its first, counted at the others. A series ends
//!   after [`SILENCE`]; the next equal event begins another.
//! - Counts are written at growing intervals, and a last time when the series ends.
//! - Of [`Group`]s with more than `NOTES_MAX` notes within `GROUP_MEMORY`, new notes go to one
//!   series that speaks for all.
//! - Beginning a series takes a token from the bucket of its subject.

mod bucket;
mod group;
mod series;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::time::Instant;

use super::identity::{Group, Identity, Subject};
use super::metrics::Loss;
use bucket::Bucket;
use group::Notes;
use series::Series;
pub(super) use series::{Task, Write, Written};

/// After this long without another occurrence a series ends.
const SILENCE: Duration = Duration::from_secs(6 * 60);
/// Series, groups and subjects that are remembered.
const REMEMBERED_MAX: usize = 4096;

/// A moment, on both clocks.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    pub(super) instant: Instant,
    pub(super) time: MicroTime,
}

/// All series that are open.
#[derive(Default)]
pub(super) struct Book {
    series: HashMap<Arc<Identity>, Series>,
    /// The series that nobody writes at the moment, by when they want attention.
    due: BTreeSet<(Instant, Arc<Identity>)>,
    groups: HashMap<Group, Notes>,
    buckets: HashMap<Subject, Bucket>,
}

impl Book {
    /// How many series are open.
    pub(super) fn len(&self) -> usize {
        self.series.len()
    }

    /// Notes an occurrence. Returns whether something is due earlier than it was.
    pub(super) fn observe(&mut self, identity: Identity, now: Moment) -> Result<bool, Loss> {
        let note = identity.note.clone().unwrap_or_default();
        let known = self.series.contains_key(&identity);
        let one_too_many = !known && self.too_many_notes(&identity, &now);
        let identity = if one_too_many { identity.combined() } else { identity };
        if let Some((identity, series)) = self.series.get_key_value(&identity) {
            let identity = Arc::clone(identity);
            let before = series.due();
            return Ok(self.count(&identity, before, now));
        }
        self.make_room(now.instant)?;
        self.take_token(&identity.group.subject, now.instant)?;
        let event = identity.to_event(&note, &now.time);
        let identity = Arc::new(identity);
        self.due.insert((now.instant, Arc::clone(&identity)));
        self.series.insert(identity, Series::new(event, now));
        Ok(true)
    }

    /// The next series that wants to be written by now. It is not given out again until
    /// [`finish`](Self::finish) has got what became of it.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Write> {
        loop {
            let (due, _) = self.due.first()?;
            if *due > now {
                return None;
            }
            let (_, identity) = self.due.pop_first()?;
            let series = self.series.get_mut(&identity)?;
            match series.take() {
                Some(task) => return Some(Write { identity, task }),
                None => self.series.remove(&identity), // it has ended, and all of it was written
            };
        }
    }

    /// A series with something unwritten, due or not, for when there is no later.
    pub(super) fn take_unwritten(&mut self) -> Option<Write> {
        loop {
            let (_, identity) = self.due.pop_first()?;
            if let Some(task) = self.series.get_mut(&identity)?.take() {
                return Some(Write { identity, task });
            }
        }
    }

    /// When the next series wants attention.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Takes in what became of a write. Returns what was lost by it.
    pub(super) fn finish(&mut self, write: Write, written: &Written, now: Instant) -> Option<Loss> {
        let series = self.series.get_mut(&write.identity)?;
        let loss = series.finish(&write.task, written, now);
        self.due.insert((series.due(), write.identity));
        loss
    }

    fn count(&mut self, identity: &Arc<Identity>, before: Instant, now: Moment) -> bool {
        let Some(series) = self.series.get_mut(identity) else { return false };
        series.count(now);
        let after = series.due();
        // A series that is being written is not in the schedule; it comes back when it ended.
        if self.due.remove(&(before, Arc::clone(identity))) {
            self.due.insert((after, Arc::clone(identity)));
        }
        after < before
    }

    fn too_many_notes(&mut self, identity: &Identity, now: &Moment) -> bool {
        if !self.groups.contains_key(&identity.group) {
            forget_oldest(&mut self.groups, |notes| notes.last);
        }
        let notes = self.groups.entry(identity.group.clone());
        notes.or_insert_with(|| Notes::new(now.instant)).exceeded_by(identity, now.instant)
    }

    fn take_token(&mut self, subject: &Subject, now: Instant) -> Result<(), Loss> {
        if !self.buckets.contains_key(subject) {
            forget_oldest(&mut self.buckets, |bucket| bucket.last);
        }
        let bucket = self.buckets.entry(subject.clone()).or_insert_with(|| Bucket::full(now));
        if bucket.take(now) { Ok(()) } else { Err(Loss::RateLimited) }
    }

    /// Ends the series that was silent for longest, if there are too many. One with something
    /// unwritten is never ended: rather, nothing new begins.
    fn make_room(&mut self, now: Instant) -> Result<(), Loss> {
        if self.series.len() < REMEMBERED_MAX {
            return Ok(());
        }
        // Those with something unwritten are due soon, so that a silent one is at the end.
        let written = self.due.last().filter(|(due, identity)| {
            *due > now && self.series.get(identity).is_none_or(|series| !series.has_unwritten())
        });
        let (due, identity) = written.cloned().ok_or(Loss::Full)?;
        self.due.remove(&(due, Arc::clone(&identity)));
        self.series.remove(&identity);
        Ok(())
    }
}

/// Makes room for one more in a map of things that are only remembered.
fn forget_oldest<K: Clone + Eq + std::hash::Hash, V>(
    map: &mut HashMap<K, V>,
    last: impl Fn(&V) -> Instant,
) {
    if map.len() < REMEMBERED_MAX {
        return;
    }
    // Many at once, so that a flood does not look through the whole map for each.
    let mut ages: Vec<Instant> = map.values().map(&last).collect();
    let middle = ages.len() / 2;
    let (_, median, _) = ages.select_nth_unstable(middle);
    let median = *median;
    map.retain(|_, value| last(value) > median);
}
