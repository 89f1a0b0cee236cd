//! The probes of one container, and what they say together.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Container;

use super::Kind;
use super::worker::{Verdict, Worker};

/// The workers of a container; for an init container that ends there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContainerProbes {
    pub(crate) startup: Option<Worker>,
    pub(crate) liveness: Option<Worker>,
    pub(crate) readiness: Option<Worker>,
}

impl ContainerProbes {
    /// The probes that a container has.
    pub(crate) fn of(container: &Container, agent_started: Timestamp) -> Self {
        let worker = |kind, probe: &Option<_>| {
            probe.as_ref().map(|probe| Worker::new(kind, probe, agent_started))
        };
        Self {
            startup: worker(Kind::Startup, &container.startup_probe),
            liveness: worker(Kind::Liveness, &container.liveness_probe),
            readiness: worker(Kind::Readiness, &container.readiness_probe),
        }
    }

    /// Whether a running container has started; `before` is what its status said.
    pub(crate) fn started(&self, container: &str, before: Option<bool>) -> bool {
        match &self.startup {
            Some(startup) => match startup.verdict(container) {
                Some(verdict) => verdict == Verdict::Success,
                None => before == Some(true),
            },
            None => true,
        }
    }

    /// Whether a running container that has started is ready; `before` is what the status of its
    /// Pod said, which counts until somebody has looked after a restart of the agent.
    pub(crate) fn ready(&self, container: &str, before: bool) -> bool {
        match &self.readiness {
            Some(readiness) => match readiness.verdict(container) {
                Some(verdict) => verdict == Verdict::Success,
                None => before,
            },
            None => true,
        }
    }

    /// Which probe says that the container must be stopped.
    pub(crate) fn failed(&self, container: &str) -> Option<Kind> {
        let fails = |worker: &Option<Worker>| {
            let verdict = worker.as_ref().and_then(|worker| worker.verdict(container));
            verdict == Some(Verdict::Failure)
        };
        match () {
            () if fails(&self.liveness) => Some(Kind::Liveness),
            () if fails(&self.startup) => Some(Kind::Startup),
            () => None,
        }
    }

    /// What people are told of a container that is stopped because a probe failed.
    pub(crate) fn killing(name: &str, failed: Kind, restarts: bool) -> String {
        let kind = failed.to_string().to_lowercase();
        let then = if restarts { ", will be restarted" } else { "" };
        format!("Container {name} failed {kind} probe{then}")
    }
}
