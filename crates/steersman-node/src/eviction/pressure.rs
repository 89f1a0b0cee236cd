//! Since when something is short, and what follows from it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::signal::{Condition, Signal};
use super::threshold::Threshold;

/// How much there is of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Observation {
    pub(crate) available: i64,
    pub(crate) capacity: i64,
    /// When it was looked at.
    pub(crate) time: Timestamp,
}

/// What was looked at.
pub(crate) type Observations = BTreeMap<Signal, Observation>;

/// What is to be done about a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Observed {
    /// Those that the Node has, in order.
    pub(crate) conditions: Vec<Condition>,
    /// The thresholds that call for something to be done now, the most urgent first.
    pub(crate) starved: Vec<Threshold>,
}

/// What is known of a node that may be short of something.
#[derive(Clone, Debug)]
pub(crate) struct Pressure {
    thresholds: Vec<Threshold>,
    /// For how long a condition stays after it was seen last, so that Pods do not come and go.
    transition: SignedDuration,
    /// Thresholds that are passed, and since when.
    first_seen: Vec<(Threshold, Timestamp)>,
    last_seen: BTreeMap<Condition, Timestamp>,
    /// Thresholds that called for something the last time.
    met: Vec<Threshold>,
    last: Observations,
}

impl Pressure {
    /// How long a condition stays unless somebody says otherwise.
    pub(crate) const TRANSITION: SignedDuration = SignedDuration::from_mins(5);

    pub(crate) fn new(thresholds: Vec<Threshold>, transition: SignedDuration) -> Self {
        Self {
            thresholds,
            transition,
            first_seen: Vec::new(),
            last_seen: BTreeMap::new(),
            met: Vec::new(),
            last: Observations::new(),
        }
    }

    /// Takes what was observed, and says what follows from it.
    pub(crate) fn observe(&mut self, observations: &Observations, now: Timestamp) -> Observed {
        let mut passed = passed(&self.thresholds, observations, Reclaimed::Nothing);
        for threshold in self::passed(&self.met, observations, Reclaimed::Minimum) {
            if !passed.contains(&threshold) {
                passed.push(threshold);
            }
        }
        self.first_seen = {
            let seen = |threshold: &Threshold| {
                let before = self.first_seen.iter().find(|(known, _)| known == threshold);
                before.map_or(now, |(_, since)| *since)
            };
            passed.iter().map(|threshold| (*threshold, seen(threshold))).collect()
        };
        for threshold in &passed {
            self.last_seen.insert(threshold.signal.condition(), now);
        }
        let transition = self.transition;
        self.last_seen.retain(|_, seen| now.duration_since(*seen) < transition);
        let long_enough = |(threshold, since): &&(Threshold, Timestamp)| {
            now.duration_since(*since) >= threshold.grace
        };
        self.met = self.first_seen.iter().filter(long_enough).map(|(it, _)| *it).collect();
        let mut starved = self.met.clone();
        // What was looked at only once says nothing about what was done since.
        starved.retain(|threshold| {
            let now = observations.get(&threshold.signal);
            let before = self.last.get(&threshold.signal);
            now.is_some_and(|now| before.is_none_or(|before| now.time > before.time))
        });
        starved.sort_by_key(|threshold| threshold.signal.condition() != Condition::Memory);
        self.last.clone_from(observations);
        Observed { conditions: self.last_seen.keys().copied().collect(), starved }
    }
}

/// Whether enough was reclaimed, so that no Pod has to go.
pub(crate) fn satisfied(thresholds: &[Threshold], observations: &Observations) -> bool {
    passed(thresholds, observations, Reclaimed::Minimum).is_empty()
}

/// How much must be there for all to be well.
#[derive(Clone, Copy, PartialEq)]
enum Reclaimed {
    /// The threshold.
    Nothing,
    /// The threshold, and what is to be reclaimed at least.
    Minimum,
}

fn passed(
    thresholds: &[Threshold],
    observations: &Observations,
    reclaimed: Reclaimed,
) -> Vec<Threshold> {
    let is_passed = |threshold: &&Threshold| {
        let Some(observed) = observations.get(&threshold.signal) else { return false };
        let more = threshold.min_reclaim.filter(|_| reclaimed == Reclaimed::Minimum);
        let more = more.map_or(0, |more| more.of(observed.capacity));
        observed.available < threshold.value.of(observed.capacity).saturating_add(more)
    };
    thresholds.iter().filter(is_passed).copied().collect()
}
