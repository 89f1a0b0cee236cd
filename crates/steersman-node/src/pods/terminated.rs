//! What is said of the containers of a Pod that has ended and of which nobody has seen how they did.
//!
//! Like a kubelet (`TerminatePod` of its status manager), it takes them for failed: all main containers
//! once the init containers were done, and init containers up to the last that has begun.

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStatus, Pod, PodSpec, PodStatus,
};

use crate::restart_policy::accompanies;

/// With which code they ended, as far as anybody knows.
const CODE: i32 = 137;
const REASON: &str = "ContainerStatusUnknown";
const MESSAGE: &str = "The container could not be located when the pod was terminated";

/// Completes the status of a Pod of which nothing runs any more: it has ended, and so have its
/// containers.
pub(super) fn terminate(pod: &Pod, status: &mut PodStatus) {
    let Some(spec) = &pod.spec else { return };
    let before = pod.status.as_ref().is_some_and(|before| was_initialized(spec, before));
    if before || was_initialized(spec, status) {
        status.container_statuses.iter_mut().flatten().for_each(lose);
    }
    let init = status.init_container_statuses.as_deref_mut().unwrap_or_default();
    let last = init.iter().rposition(has_begun).unwrap_or(0);
    init.iter_mut().take(last + 1).for_each(lose);
    if !matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        status.phase = Some("Failed".into());
    }
}

fn lose(status: &mut ContainerStatus) {
    if status.state.as_ref().is_some_and(|state| state.terminated.is_some()) {
        return;
    }
    let terminated = ContainerStateTerminated {
        exit_code: CODE,
        reason: Some(REASON.into()),
        message: Some(MESSAGE.into()),
        ..ContainerStateTerminated::default()
    };
    let terminated = Some(terminated);
    status.state = Some(ContainerState { terminated, ..ContainerState::default() });
}

/// Whether a status tells that main containers could be started.
fn was_initialized(spec: &PodSpec, status: &PodStatus) -> bool {
    let Some(last) = spec.init_containers.as_ref().and_then(|all| all.last()) else { return true };
    if status.container_statuses.iter().flatten().any(has_begun) {
        return true;
    }
    let mut init = status.init_container_statuses.iter().flatten();
    let Some(found) = init.find(|status| status.name == last.name) else { return false };
    if accompanies(last) {
        let runs = found.state.as_ref().is_some_and(|state| state.running.is_some());
        return runs && found.started == Some(true);
    }
    let mut ended =
        found.state.iter().chain(&found.last_state).filter_map(|it| it.terminated.as_ref());
    ended.any(|ended| ended.exit_code == 0)
}

/// Whether a container is told to have done more than to wait for its first start.
fn has_begun(status: &ContainerStatus) -> bool {
    let waits = status.state.as_ref().is_some_and(|state| state.waiting.is_some());
    !waits || status.last_state.as_ref().is_some_and(|last| last.terminated.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::plan::Observed;
    use crate::pods::status::{End, ending};
    use crate::pods::tests::{at, condition, exited, pod, runs, seen, status};

    /// How the containers of a Pod are told to be that was told to end and of which no more is there.
    fn told(pod: &Pod, observed: &Observed) -> Vec<String> {
        let status = ending(pod, observed, &End::Told, at(5));
        assert_eq!(status.phase.as_deref(), Some("Failed"));
        let lists = [&status.init_container_statuses, &status.container_statuses];
        let said = |it: &ContainerStatus| {
            let state = it.state.clone().unwrap();
            let said = state.terminated.and_then(|it| it.reason);
            said.or(state.waiting.and_then(|it| it.reason)).unwrap()
        };
        lists.into_iter().flatten().flatten().map(said).collect()
    }

    #[test]
    fn what_never_began_has_failed_once_its_turn_had_come() {
        const LOST: &str = "ContainerStatusUnknown";
        const WAITS: &str = "PodInitializing";
        let pod = pod();
        // A Pod of which nothing was told: there is always one whose turn it is.
        assert_eq!(told(&pod, &seen([])), [LOST, WAITS, WAITS]);
        let failed = seen([exited("setup", 3, 1)]);
        assert_eq!(told(&pod, &failed), ["Error", WAITS, WAITS]);
        let done = seen([exited("setup", 0, 1), exited("proxy", 137, 2)]);
        assert_eq!(told(&pod, &done), ["Completed", "Error", WAITS], "it never came up");
        let mut up = pod.clone();
        up.status = Some(status(&pod, &seen([exited("setup", 0, 1), runs("proxy")]), 1));
        assert_eq!(told(&up, &done), ["Completed", "Error", LOST]);
        let mut plain = pod.clone();
        plain.spec.as_mut().unwrap().init_containers = None;
        plain.status = None;
        assert_eq!(told(&plain, &seen([])), [LOST]);
    }

    #[test]
    fn what_was_lost_says_so_and_the_pod_why_it_was_not_ready() {
        let mut pod = pod();
        pod.spec.as_mut().unwrap().init_containers = None;
        let status = ending(&pod, &seen([]), &End::Told, at(5));
        let main = &status.container_statuses.as_ref().unwrap()[0];
        let ended = main.state.clone().unwrap().terminated.unwrap();
        assert_eq!((ended.exit_code, ended.message.as_deref()), (CODE, Some(MESSAGE)));
        assert_eq!((ended.finished_at, main.restart_count), (None, 0));
        assert_eq!(condition(&status, "Ready").reason.as_deref(), Some("ContainersNotReady"));
        assert_eq!(condition(&status, "PodReadyToStartContainers").status, "False");
    }
}
