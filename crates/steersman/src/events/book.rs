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
//!
//! Counted events follow the [rules of client-go's `tools/record`] instead: each occurrence takes a
//! token and is written at once if there is one; a series is remembered until it is the one that
//! was silent for longest of too many; and the event that speaks for others says what the last of
//! them said.
//!
//! [rules of client-go's `tools/record`]: https://pkg.go.dev/k8s.io/client-go/tools/record#EventCorrelator

mod bucket;
mod group;
mod series;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::time::Instant;

use super::EventForm;
use super::document::Origin;
use super::identity::{Allowance, Group, Identity};
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

/// Another occurrence of a series.
struct Occurrence {
    now: Moment,
    /// Whether it may be written.
    allowed: bool,
}

/// All series that are open.
#[derive(Default)]
pub(super) struct Book {
    series: HashMap<Arc<Identity>, Series>,
    /// The series that nobody writes at the moment, by when they want attention.
    due: BTreeSet<(Instant, Arc<Identity>)>,
    /// The series of which nothing is to be written, by when they happened last. Those that end by
    /// themselves want attention, too.
    silent: BTreeSet<(Instant, Arc<Identity>)>,
    groups: HashMap<Group, Notes>,
    buckets: HashMap<Allowance, Bucket>,
}

impl Book {
    /// How many series are open.
    pub(super) fn len(&self) -> usize {
        self.series.len()
    }

    /// Notes an occurrence. Returns whether something is due earlier than it was.
    pub(super) fn observe(&mut self, identity: Identity, now: Moment) -> Result<bool, Loss> {
        let counted = identity.form() == EventForm::Counted;
        let known = !counted && self.series.contains_key(&identity);
        let combined = !known && self.too_many_notes(&identity, &now);
        let first = combined.then(|| identity.clone());
        let identity = if combined { identity.combined() } else { identity };
        let token = if counted { Some(self.take_token(&identity, now.instant)) } else { None };
        let allowed = token.is_none_or(|token| token.is_ok());
        if let Some((known, _)) = self.series.get_key_value(&identity) {
            let known = Arc::clone(known);
            let last = first.filter(|_| counted);
            let sooner = self.count(&known, last.as_ref(), Occurrence { now, allowed });
            return token.unwrap_or(Ok(())).map(|()| sooner);
        }
        self.make_room()?;
        if !counted {
            self.take_token(&identity, now.instant)?;
        }
        let origin = Origin::new(first.as_ref().unwrap_or(&identity), combined, now.time.clone());
        let identity = Arc::new(identity);
        self.series.insert(Arc::clone(&identity), Series::new(origin, now, allowed));
        self.schedule(identity);
        token.unwrap_or(Ok(())).map(|()| true)
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
            match series.take(&identity) {
                Some(task) => return Some(Write { identity, task }),
                None => {
                    // It has ended, and all of it was written.
                    let last = series.last();
                    self.silent.remove(&(last, Arc::clone(&identity)));
                    self.series.remove(&identity);
                }
            }
        }
    }

    /// A series with something unwritten, due or not, for when there is no later.
    pub(super) fn take_unwritten(&mut self) -> Option<Write> {
        loop {
            let (_, identity) = self.due.pop_first()?;
            if let Some(task) = self.series.get_mut(&identity)?.take(&identity) {
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
        let loss = series.finish(&write, written, now);
        self.schedule(write.identity);
        loss
    }

    /// Notes when a series wants attention that nobody writes at the moment.
    fn schedule(&mut self, identity: Arc<Identity>) {
        let Some(series) = self.series.get(&identity) else { return };
        if let Some(due) = series.due(identity.form()) {
            self.due.insert((due, Arc::clone(&identity)));
        }
        if !series.has_unwritten() {
            self.silent.insert((series.last(), identity));
        }
    }

    /// Takes a series out of the schedule, before it changes. Returns whether it was there: one
    /// that is being written comes back when that has ended.
    fn unschedule(&mut self, identity: &Arc<Identity>) -> bool {
        let Some(series) = self.series.get(identity) else { return false };
        let due = series.due(identity.form());
        let was_due = due.is_some_and(|due| self.due.remove(&(due, Arc::clone(identity))));
        let was_silent =
            !series.has_unwritten() && self.silent.remove(&(series.last(), Arc::clone(identity)));
        was_due || was_silent
    }

    fn count(&mut self, identity: &Arc<Identity>, last: Option<&Identity>, it: Occurrence) -> bool {
        let scheduled = self.unschedule(identity);
        let Some(series) = self.series.get_mut(identity) else { return false };
        let before = series.due(identity.form());
        if let Some(last) = last {
            series.now_says(last);
        }
        series.count(it.now, it.allowed);
        let after = series.due(identity.form());
        if scheduled {
            self.schedule(Arc::clone(identity));
        }
        after.is_some_and(|after| before.is_none_or(|before| after < before))
    }

    fn too_many_notes(&mut self, identity: &Identity, now: &Moment) -> bool {
        let group = identity.similar();
        if !self.groups.contains_key(&group) {
            forget_oldest(&mut self.groups, |notes| notes.last);
        }
        let notes = self.groups.entry(group);
        notes.or_insert_with(|| Notes::new(now.instant)).exceeded_by(identity, now.instant)
    }

    fn take_token(&mut self, identity: &Identity, now: Instant) -> Result<(), Loss> {
        let allowance = identity.allowance();
        if !self.buckets.contains_key(&allowance) {
            forget_oldest(&mut self.buckets, |bucket| bucket.last);
        }
        let bucket = self.buckets.entry(allowance).or_insert_with(|| Bucket::full(now));
        if bucket.take(now) { Ok(()) } else { Err(Loss::RateLimited) }
    }

    /// Ends the series that was silent for longest, if there are too many. One with something
    /// unwritten is never ended: rather, nothing new begins.
    fn make_room(&mut self) -> Result<(), Loss> {
        if self.series.len() < REMEMBERED_MAX {
            return Ok(());
        }
        let (_, identity) = self.silent.first().cloned().ok_or(Loss::Full)?;
        self.unschedule(&identity);
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
