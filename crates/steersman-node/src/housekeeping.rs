//! How a node is kept usable: what it removes, rotates and evicts, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;

use crate::eviction::{Pressure, Settings, Signal, Threshold, ThresholdError, parse};
use crate::garbage::{ContainerPolicy, ImagePolicy};
use crate::logs::LogPolicy;

/// What a node does so that it does not run full, by the names of a kubelet's configuration. The
/// defaults are a kubelet's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Housekeeping {
    /// From this usage of the images' disk on, in percent, images that nobody uses are removed.
    pub image_gc_high_threshold_percent: u8,
    /// Down to this usage.
    pub image_gc_low_threshold_percent: u8,
    /// An image stays for as long as this after it came.
    pub image_minimum_gc_age: Duration,
    /// An image that was not used for as long as this goes, however much room there is.
    pub image_maximum_gc_age: Option<Duration>,
    /// How often images are looked at.
    pub image_gc_period: Duration,
    /// A container that has ended stays for as long as this after it was made.
    pub minimum_container_ttl: Duration,
    /// How many containers that have ended are kept of each container of a Pod.
    pub maximum_dead_containers_per_container: Option<usize>,
    /// How many are kept on the node.
    pub maximum_dead_containers: Option<usize>,
    /// How often containers are looked at.
    pub container_gc_period: Duration,
    /// From this size on the log of a container is rotated, in bytes.
    pub container_log_max_size: u64,
    /// How many files the log of a container has at most, with the one that is written.
    pub container_log_max_files: usize,
    /// How often logs are looked at.
    pub container_log_monitor_interval: Duration,
    /// Below which amounts Pods are evicted at once, by signal, such as `memory.available` and `100Mi`.
    pub eviction_hard: BTreeMap<String, String>,
    /// Below which amounts they are if that lasts.
    pub eviction_soft: BTreeMap<String, String>,
    /// For how long, by signal, such as `1m30s`.
    pub eviction_soft_grace_period: BTreeMap<String, String>,
    /// How much more must be there before all is well again, by signal.
    pub eviction_minimum_reclaim: BTreeMap<String, String>,
    /// For how long the Node says that it is under pressure after it was last.
    pub eviction_pressure_transition_period: Duration,
    /// How long a Pod has at most that goes because something is short for long.
    pub eviction_max_pod_grace_period: Duration,
    /// How often it is looked at what there is.
    pub eviction_monitoring_period: Duration,
}

impl Default for Housekeeping {
    fn default() -> Self {
        Self {
            image_gc_high_threshold_percent: 85,
            image_gc_low_threshold_percent: 80,
            image_minimum_gc_age: Duration::from_secs(120),
            image_maximum_gc_age: None,
            image_gc_period: Duration::from_secs(300),
            minimum_container_ttl: Duration::ZERO,
            maximum_dead_containers_per_container: Some(1),
            maximum_dead_containers: None,
            container_gc_period: Duration::from_secs(60),
            container_log_max_size: 10 << 20,
            container_log_max_files: 5,
            container_log_monitor_interval: Duration::from_secs(10),
            eviction_hard: Settings::usual().hard,
            eviction_soft: BTreeMap::new(),
            eviction_soft_grace_period: BTreeMap::new(),
            eviction_minimum_reclaim: BTreeMap::new(),
            eviction_pressure_transition_period: Pressure::TRANSITION.unsigned_abs(),
            eviction_max_pod_grace_period: Duration::ZERO,
            eviction_monitoring_period: Duration::from_secs(10),
        }
    }
}

/// The same for those who do it.
#[derive(Clone, Debug)]
pub(crate) struct Policies {
    pub(crate) images: ImagePolicy,
    pub(crate) images_every: Duration,
    pub(crate) containers: ContainerPolicy,
    pub(crate) containers_every: Duration,
    pub(crate) logs: LogPolicy,
    pub(crate) logs_every: Duration,
    pub(crate) thresholds: Vec<Threshold>,
    pub(crate) transition: SignedDuration,
    /// How long a Pod has at most that goes because something is short for long.
    pub(crate) grace_max_seconds: i64,
    pub(crate) pressure_every: Duration,
}

impl Policies {
    /// How much of so much is kept free of Pods: what is less calls for their eviction.
    pub(crate) fn kept(&self, signal: Signal, capacity: u64) -> u64 {
        let capacity = i64::try_from(capacity).unwrap_or(i64::MAX);
        let hard = self.thresholds.iter().find(|it| it.signal == signal && it.is_hard());
        hard.map_or(0, |hard| u64::try_from(hard.value.of(capacity)).unwrap_or(0))
    }
}

/// Why a node cannot be kept as it is told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HousekeepingError {
    #[error("invalid {name} {percent}, must be in range [0-100]")]
    Percentage { name: &'static str, percent: u8 },
    #[error("LowThresholdPercent {low} can not be higher than HighThresholdPercent {high}")]
    Order { low: u8, high: u8 },
    #[error("invalid MaxFiles {0}, must be > 1")]
    LogFiles(usize),
    #[error(transparent)]
    Eviction(#[from] ThresholdError),
}

impl Housekeeping {
    pub(crate) fn policies(&self) -> Result<Policies, HousekeepingError> {
        let (high, low) =
            (self.image_gc_high_threshold_percent, self.image_gc_low_threshold_percent);
        for (name, percent) in [("HighThresholdPercent", high), ("LowThresholdPercent", low)] {
            if percent > 100 {
                return Err(HousekeepingError::Percentage { name, percent });
            }
        }
        if low > high {
            return Err(HousekeepingError::Order { low, high });
        }
        if self.container_log_max_files <= 1 {
            return Err(HousekeepingError::LogFiles(self.container_log_max_files));
        }
        let thresholds = parse(&Settings {
            hard: self.eviction_hard.clone(),
            soft: self.eviction_soft.clone(),
            soft_grace: self.eviction_soft_grace_period.clone(),
            minimum_reclaim: self.eviction_minimum_reclaim.clone(),
        })?;
        let grace_max = self.eviction_max_pod_grace_period.as_secs();
        Ok(Policies {
            thresholds,
            transition: signed(self.eviction_pressure_transition_period),
            grace_max_seconds: i64::try_from(grace_max).unwrap_or(i64::MAX),
            pressure_every: self.eviction_monitoring_period,
            images: ImagePolicy {
                high_percent: high.into(),
                low_percent: low.into(),
                min_age: signed(self.image_minimum_gc_age),
                max_age: self.image_maximum_gc_age.map(signed),
            },
            images_every: self.image_gc_period,
            containers: ContainerPolicy {
                min_age: signed(self.minimum_container_ttl),
                per_container: self.maximum_dead_containers_per_container,
                per_node: self.maximum_dead_containers,
            },
            containers_every: self.container_gc_period,
            logs: LogPolicy {
                size_max: self.container_log_max_size,
                files_max: self.container_log_max_files,
            },
            logs_every: self.container_log_monitor_interval,
        })
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_of_images_are_percentages_in_order() {
        let of = |high, low| {
            let settings = Housekeeping {
                image_gc_high_threshold_percent: high,
                image_gc_low_threshold_percent: low,
                ..Housekeeping::default()
            };
            settings.policies().err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(of(85, 80), "");
        assert_eq!(of(101, 80), "invalid HighThresholdPercent 101, must be in range [0-100]");
        let order = "LowThresholdPercent 80 can not be higher than HighThresholdPercent 70";
        assert_eq!(of(70, 80), order);
    }

    #[test]
    fn who_says_nothing_has_the_policies_of_a_kubelet() {
        let policies = Housekeeping::default().policies().unwrap();
        assert_eq!(policies.images, ImagePolicy::default());
        assert_eq!(policies.containers, ContainerPolicy::default());
        assert_eq!(policies.logs, LogPolicy::default());
        assert_eq!(policies.kept(Signal::MemoryAvailable, 1 << 30), 100 << 20);
        assert_eq!(policies.kept(Signal::NodeFsAvailable, 1000), 100);
        assert_eq!(policies.kept(Signal::PidAvailable, 1000), 0);
    }
}
