//! How patient the controller is, and how fast.

use std::time::Duration;

use jiff::SignedDuration;

/// How long nodes may be silent and how fast they are given up, by the names of
/// kube-controller-manager's flags.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeLifecycleSettings {
    /// How long a node may be silent: `--node-monitor-grace-period`.
    pub monitor_grace_period: Duration,
    /// How long it may be before it has said anything: `--node-startup-grace-period`.
    pub startup_grace_period: Duration,
    /// How often all nodes are looked at, so that those that are lost together are found together:
    /// `--node-monitor-period`.
    pub monitor_period: Duration,
    /// How many nodes of a zone are given up in a second: `--node-eviction-rate`.
    pub eviction_rate: f64,
    /// The same in a large zone many of whose nodes are not ready:
    /// `--secondary-node-eviction-rate`. In small ones then nobody is.
    pub secondary_eviction_rate: f64,
    /// Which part of a zone, and three nodes at least, must not be ready for that:
    /// `--unhealthy-zone-threshold`.
    pub unhealthy_zone_threshold: f64,
    /// How many nodes a zone has at most that is not large: `--large-cluster-size-threshold`.
    pub large_zone_threshold: usize,
}

impl Default for NodeLifecycleSettings {
    /// Those of Kubernetes.
    fn default() -> Self {
        Self {
            monitor_grace_period: Duration::from_secs(50),
            startup_grace_period: Duration::from_secs(60),
            monitor_period: Duration::from_secs(5),
            eviction_rate: 0.1,
            secondary_eviction_rate: 0.01,
            unhealthy_zone_threshold: 0.55,
            large_zone_threshold: 50,
        }
    }
}

/// The longest time between two nodes: so late that nobody waits for it.
const INTERVAL_MAX: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How much time is between two of so many in a second; nobody has a turn if there are none.
pub(super) fn interval(rate: f64) -> Option<SignedDuration> {
    let interval = || SignedDuration::try_from_secs_f64(rate.recip()).unwrap_or(INTERVAL_MAX);
    (rate > 0.0).then(|| interval().min(INTERVAL_MAX))
}
