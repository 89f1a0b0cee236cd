//! Containers that are all started anew because one of them has ended as their Pod says
//! (`RestartAllContainers`).
//!
//! A kubelet removes them from its runtime, which then has never seen them. Here they stay, so that
//! whoever counts restarts goes on counting, and it is noted which of each name are not to be looked at
//! any more. An agent that is started meanwhile learns it from the Pod's status.

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, Pod,
};

use crate::runtime::{BEGINS_ANEW, Container};

const MESSAGE: &str = "The container is removed because RestartAllContainers in place";
/// With which code they ended, whatever it was.
const KILLED: i32 = 137;

/// The containers of a Pod that count as if they had never been there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Anew {
    /// How many of its name were started before it, by name.
    attempts: HashMap<String, i32>,
    /// When that was decided last.
    pub(super) since: Option<Timestamp>,
}

impl Anew {
    /// Those of which the status of a Pod tells.
    pub(super) fn told(pod: &Pod) -> Self {
        let attempts = statuses(pod).filter(|status| waits(status));
        let attempts = attempts.map(|status| (status.name.clone(), status.restart_count - 1));
        Self { attempts: attempts.collect(), since: None }
    }

    /// Notes more of them.
    pub(super) fn begin(&mut self, containers: &[(String, i32)], now: Timestamp) {
        self.attempts.extend(containers.iter().cloned());
        self.since = Some(now);
    }

    /// Those that are noted here, and those others.
    pub(super) fn or(mut self, others: Self) -> Self {
        for (name, attempt) in others.attempts {
            self.attempts.entry(name).or_insert(attempt);
        }
        self
    }

    /// Whether a container is one of them.
    pub(super) fn includes(&self, container: &Container) -> bool {
        self.attempts.get(&container.name) == Some(&container.attempt)
    }

    /// Whether a container came after one of them.
    pub(super) fn precedes(&self, container: &Container) -> bool {
        let before = container.attempt.checked_sub(1);
        before.is_some() && self.attempts.get(&container.name).copied() == before
    }
}

/// Whether a Pod's status tells that a container came after one of them.
pub(super) fn is_told(pod: &Pod, container: &Container) -> bool {
    statuses(pod).any(|status| {
        status.name == container.name
            && status.restart_count == container.attempt
            && status.last_state.as_ref().is_some_and(is_restarting)
    })
}

/// Whether a container has ended so.
pub(super) fn is_restarting(state: &ContainerState) -> bool {
    let ended = state.terminated.as_ref();
    ended.and_then(|ended| ended.reason.as_deref()) == Some(BEGINS_ANEW)
}

/// Why such a container waits.
pub(super) fn waiting() -> ContainerStateWaiting {
    ContainerStateWaiting { reason: Some(BEGINS_ANEW.into()), message: Some(MESSAGE.into()) }
}

/// How such a container ended, that ended like this.
pub(super) fn ended(state: Option<ContainerState>) -> ContainerState {
    let terminated = state.and_then(|state| state.terminated).unwrap_or_default();
    let terminated = ContainerStateTerminated {
        exit_code: KILLED,
        reason: Some(BEGINS_ANEW.into()),
        message: Some(MESSAGE.into()),
        signal: None,
        ..terminated
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}

/// Whether a container waits for its new beginning, whatever else it waits for by now.
fn waits(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.waiting.is_some())
        && status.last_state.as_ref().is_some_and(is_restarting)
}

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.iter();
    status.flat_map(|it| it.init_container_statuses.iter().chain(&it.container_statuses).flatten())
}
