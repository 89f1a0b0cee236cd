//! How often the controller looks, and how much it takes to impress it.

use std::time::Duration;

/// How targets are scaled unless autoscalers say otherwise, by the names of kube-controller-manager's
/// flags, which begin with `--horizontal-pod-autoscaler-`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AutoscalerSettings {
    /// How often an autoscaler is looked at: `sync-period`.
    pub sync_period: Duration,
    /// For how many seconds what was recommended keeps a target from shrinking:
    /// `downscale-stabilization`.
    pub downscale_stabilization: i32,
    /// How far usage may be off its target: `tolerance`.
    pub tolerance: f64,
    /// For how long after its start the CPU time of a Pod says little: `cpu-initialization-period`.
    pub cpu_initialization_period: Duration,
    /// A Pod that became unready this soon after its start has never been ready:
    /// `initial-readiness-delay`.
    pub initial_readiness_delay: Duration,
}

impl Default for AutoscalerSettings {
    /// Those of Kubernetes.
    fn default() -> Self {
        Self {
            sync_period: Duration::from_secs(15),
            downscale_stabilization: 300,
            tolerance: 0.1,
            cpu_initialization_period: Duration::from_mins(5),
            initial_readiness_delay: Duration::from_secs(30),
        }
    }
}
