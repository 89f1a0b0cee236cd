//! What kind of cluster a test gets.

use std::time::Duration;

use steersman_cluster::Controllers;

/// What kind of cluster a test gets.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many simulated nodes there are.
    pub nodes: usize,
    /// How long the containers of a Pod take to end when it is deleted. At once unless said
    /// otherwise; on a real cluster it is a second or more.
    pub termination: Duration,
    /// Whether the built-in controllers and the scheduler run.
    pub controllers: bool,
    /// Which of them, if they do: all, or such as `"*,-garbage-collector-controller"`, parsed.
    pub which: Controllers,
    /// What is served that Kubernetes serves on request only, as by `--runtime-config`: such as
    /// `"api/beta=true"`.
    pub runtime_config: &'static str,
    /// Everything random follows from this.
    pub seed: u64,
    /// After how much virtual time a test that has not ended is taken for stuck, and fails; in the
    /// attribute also as a text such as `limit = "8d"` or `"1d12h"`. Thirty days unless said
    /// otherwise: longer than nearly everything that one lets pass in a test, such as schedules,
    /// retention and certificates, and an idle cluster is through with them in a few seconds.
    /// (A test on a cluster that exists has ten minutes.)
    pub limit: Duration,
    /// Whether the test asks for nothing that only this cluster has: then it also runs on any
    /// other, if `STEERSMAN_TEST_KUBECONFIG` names one.
    pub anywhere: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            nodes: 3,
            termination: Duration::ZERO,
            controllers: true,
            which: Controllers::ALL,
            runtime_config: "",
            seed: 1,
            limit: Duration::from_secs(30 * 24 * 3600),
            anywhere: false,
        }
    }
}

impl Settings {
    /// Only an API server: nothing happens that the test does not do.
    pub fn bare(seed: u64) -> Self {
        Self { nodes: 0, controllers: false, seed, ..Self::default() }
    }
}
