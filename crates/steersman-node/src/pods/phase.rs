//! The phase of a Pod, from the statuses of its containers.

use k8s_openapi::api::core::v1::{Container, ContainerStatus, PodSpec, PodStatus};

use super::anew;
use crate::restart_policy::{accompanies, restarts};

/// How far the containers of a Pod are.
#[derive(Default)]
struct Counts {
    /// Init containers that are not done, and have not failed.
    uninitialized: usize,
    /// Init containers that failed for good.
    failed: usize,
    running: usize,
    waiting: usize,
    stopped: usize,
    stopped_for_good: usize,
    succeeded: usize,
}

/// How a container ended, if it has: with this code, and if it runs again since then.
fn ended(status: &ContainerStatus) -> Option<i32> {
    let state = status.state.as_ref();
    if state.is_some_and(|state| state.running.is_some()) {
        return None;
    }
    let last = status.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    let ended = state.and_then(|state| state.terminated.as_ref()).or(last);
    ended.map(|ended| ended.exit_code)
}

fn runs(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

fn waits(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.waiting.is_some())
}

/// Whether a container waits because all of its Pod are started anew.
fn waits_anew(status: &ContainerStatus) -> bool {
    waits(status) && status.last_state.as_ref().is_some_and(anew::is_restarting)
}

/// The phase of a Pod whose containers have these statuses. `terminal` if nothing is started again.
pub(super) fn phase(spec: &PodSpec, status: &PodStatus, terminal: bool) -> &'static str {
    let counts = count(spec, status);
    if counts.failed > 0 {
        return "Failed";
    }
    if counts.uninitialized > 0 || counts.waiting > 0 {
        return "Pending";
    }
    if counts.running > 0 {
        return "Running";
    }
    if counts.stopped == 0 {
        return "Pending";
    }
    if !terminal && counts.stopped != counts.stopped_for_good {
        return "Running";
    }
    if counts.stopped == counts.succeeded { "Succeeded" } else { "Failed" }
}

fn count(spec: &PodSpec, status: &PodStatus) -> Counts {
    let mut counts = Counts::default();
    let begun = status.container_statuses.iter().flatten().any(|s| runs(s) || ended(s).is_some());
    for (container, status) in
        pairs(spec.init_containers.iter().flatten(), &status.init_container_statuses)
    {
        let code = status.and_then(ended);
        let running = status.is_some_and(runs);
        match code {
            _ if accompanies(container) => {
                counts.running += usize::from(running);
                let pending = !running && code.is_none();
                counts.uninitialized += usize::from(pending && !begun);
            }
            Some(0) => {}
            Some(code) if !restarts(container, spec, code) && !status.is_some_and(waits_anew) => {
                counts.failed += 1;
            }
            Some(_) => {} // it is tried again, and what comes after it waits
            None => counts.uninitialized += usize::from(!begun),
        }
    }
    for (container, status) in pairs(spec.containers.iter(), &status.container_statuses) {
        match status.and_then(ended) {
            _ if status.is_some_and(runs) => counts.running += 1,
            None => counts.waiting += 1,
            Some(code) => {
                counts.stopped += 1;
                // What is started again whatever its policy waits for that.
                let over = !restarts(container, spec, code) && !status.is_some_and(waits);
                counts.stopped_for_good += usize::from(over);
                counts.succeeded += usize::from(code == 0);
            }
        }
    }
    counts
}

/// Containers, each with its status.
fn pairs<'a>(
    containers: impl Iterator<Item = &'a Container>,
    statuses: &'a Option<Vec<ContainerStatus>>,
) -> impl Iterator<Item = (&'a Container, Option<&'a ContainerStatus>)> {
    containers.map(move |container| {
        let mut statuses = statuses.iter().flatten();
        (container, statuses.find(|status| status.name == container.name))
    })
}
