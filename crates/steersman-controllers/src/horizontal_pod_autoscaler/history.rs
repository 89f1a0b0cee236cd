//! What was recommended for one autoscaler and what was done, as far back as it matters.
//!
//! Whatever is older than the longest window or period that asks for it is dropped, so the length
//! of these lists is bounded by an hour of syncs.

use jiff::{SignedDuration, Timestamp};

/// A number of replicas at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamped {
    pub(super) replicas: i32,
    pub(super) at: Timestamp,
}

/// What is remembered of one autoscaler.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// For how many seconds recommendations keep the target from shrinking, unless it says otherwise.
    pub(super) downscale_stabilization: i32,
    /// What the metrics asked for, before it was stabilised.
    pub(super) recommendations: Vec<Stamped>,
    /// By how many replicas the target grew.
    ups: Vec<Stamped>,
    /// By how many replicas the target shrank.
    downs: Vec<Stamped>,
}

/// How the size of a target changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rescale {
    pub(super) from: i32,
    pub(super) to: i32,
    /// The longest period, in seconds, of the policies that limit such a change.
    pub(super) period: i32,
    pub(super) at: Timestamp,
}

impl History {
    /// Of an autoscaler that is new.
    pub(super) fn new(downscale_stabilization: i32) -> Self {
        let (recommendations, ups, downs) = (Vec::new(), Vec::new(), Vec::new());
        Self { downscale_stabilization, recommendations, ups, downs }
    }

    /// Lets the size that a target had when it was first seen count as a recommendation.
    pub(super) fn begin(&mut self, current: i32, now: Timestamp) {
        if self.recommendations.is_empty() {
            self.recommendations.push(Stamped { replicas: current, at: now });
        }
    }

    /// Adds a recommendation and drops those before `cutoff`.
    pub(super) fn recommend(&mut self, replicas: i32, now: Timestamp, cutoff: Timestamp) {
        self.recommendations.retain(|old| old.at >= cutoff);
        self.recommendations.push(Stamped { replicas, at: now });
    }

    /// Notes that the target has another size.
    pub(super) fn rescaled(&mut self, Rescale { from, to, period, at }: Rescale) {
        let events = if to > from { &mut self.ups } else { &mut self.downs };
        let cutoff = before(at, period);
        events.retain(|event| event.at >= cutoff);
        events.push(Stamped { replicas: (to - from).abs(), at });
    }

    /// How many replicas there were when a period began that ends now.
    pub(super) fn at_start_of(&self, period: i32, current: i32, now: Timestamp) -> i32 {
        let cutoff = before(now, period);
        let changed = |events: &[Stamped]| -> i32 {
            let within = events.iter().filter(|event| event.at > cutoff);
            within.map(|event| event.replicas).fold(0, i32::saturating_add)
        };
        current.saturating_sub(changed(&self.ups)).saturating_add(changed(&self.downs))
    }
}

/// The time so many seconds before another.
pub(super) fn before(now: Timestamp, seconds: i32) -> Timestamp {
    now - SignedDuration::from_secs(seconds.into())
}
