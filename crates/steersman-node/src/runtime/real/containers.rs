//! Removes containers that have ended, beyond those that are kept for people to look at, with their
//! logs, and sandboxes that nobody needs. What goes, [`garbage`](crate::garbage) decides.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use steersman::{Client, ListOptions, clock};
use tokio::time::{MissedTickBehavior, interval};

use super::labels::{self, NODE};
use super::observe::{Parts, attempt_of, name_of, runs};
use super::places::{Owner, entries, log_in, remove_directory};
use super::{Shared, locked, uid_of};
use crate::cri::CriError;
use crate::cri::wire::container::{Container as Listed, ContainerState as Wire};
use crate::cri::wire::sandbox::{PodSandbox, PodSandboxState};
use crate::garbage::{
    ContainerState, ContainerStore, FoundContainer, FoundSandbox, Garbage, PodState,
    collect_containers, plan,
};
use crate::runtime::Start;

/// How many that have ended are kept of a name at least while its Pod runs: its status tells of it.
const KEPT_MIN: usize = 1;
/// What stopping something is given that should not run.
const STOP: std::time::Duration = std::time::Duration::from_secs(2);

/// Looks for ever.
pub(super) async fn run(shared: &Shared, client: &Client) {
    let mut ticks = interval(shared.policies.containers_every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = collect(shared, client, Room::Enough).await {
            tracing::warn!(%error, "containers were not collected; retrying");
        }
    }
}

/// Whether room is needed so much that Pods that have ended lose their containers too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Enough,
    Short,
}

/// Removes what is too much, and says how much that was.
pub(super) async fn collect(
    shared: &Shared,
    client: &Client,
    room: Room,
) -> Result<usize, CriError> {
    let own = Some((NODE, shared.ground.node.as_str()));
    let (sandboxes, containers) =
        futures::try_join!(shared.cri.sandboxes(own), shared.cri.containers(own))?;
    remove_dead_links(shared, &containers);
    let ready = i32::from(PodSandboxState::Ready);
    if containers.iter().all(runs) && sandboxes.iter().all(|sandbox| sandbox.state == ready) {
        return Ok(0);
    }
    // Read after what there is: the Pods of all of it are known.
    let states = states(shared, client).await;
    let names = entries(&shared.places.logs);
    let names = names.iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
    let planned = {
        let garbage = Garbage {
            containers: &containers.iter().map(found).collect::<Vec<_>>(),
            sandboxes: &sandboxes.iter().map(found_sandbox).collect::<Vec<_>>(),
            logs: &names.collect::<Vec<_>>(),
            pod: &|uid| match &states {
                Some(states) => states.get(uid).copied().unwrap_or(PodState::Gone),
                None => PodState::Needed,
            },
            pods_known: states.is_some(),
            pressed: room == Room::Short,
        };
        plan(&garbage, &shared.policies.containers, clock::now())
    };
    Ok(collect_containers(&planned, &Store { shared, containers: &containers }).await)
}

/// What each Pod of this node still needs; nothing is known if they cannot be read.
async fn states(shared: &Shared, client: &Client) -> Option<HashMap<String, PodState>> {
    let fields = Some(format!("spec.nodeName={}", shared.ground.node));
    match client.list::<Pod>(&ListOptions { fields, ..ListOptions::default() }).await {
        Ok(pods) => Some(pods.iter().map(|pod| (uid_of(pod).to_owned(), state(pod))).collect()),
        Err(error) => {
            tracing::debug!(%error, "no Pod is known to be gone while they cannot be read");
            None
        }
    }
}

fn state(pod: &Pod) -> PodState {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    if matches!(phase, Some("Succeeded" | "Failed")) { PodState::Ended } else { PodState::Needed }
}

fn found(container: &Listed) -> FoundContainer {
    FoundContainer {
        id: container.id.clone(),
        name: name_of(container).to_owned(),
        pod_uid: labels::uid(&container.labels).unwrap_or_default().to_owned(),
        sandbox: container.pod_sandbox_id.clone(),
        created: moment(container.created_at),
        state: match Wire::try_from(container.state) {
            Ok(Wire::Running) => ContainerState::Running,
            Ok(Wire::Created) => ContainerState::Created,
            Ok(Wire::Exited) => ContainerState::Ended,
            Ok(Wire::Unknown) | Err(_) => ContainerState::Unknown,
        },
    }
}

fn found_sandbox(sandbox: &PodSandbox) -> FoundSandbox {
    FoundSandbox {
        id: sandbox.id.clone(),
        pod_uid: labels::uid(&sandbox.labels).unwrap_or_default().to_owned(),
        created: moment(sandbox.created_at),
        ready: sandbox.state == i32::from(PodSandboxState::Ready),
    }
}

fn moment(nanoseconds: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The runtime, with what it has listed.
struct Store<'a> {
    shared: &'a Shared,
    containers: &'a [Listed],
}

impl ContainerStore for Store<'_> {
    async fn stop_container(&self, id: &str) -> Result<(), String> {
        self.shared.cri.stop_container(id, STOP).await.map_err(|error| error.to_string())
    }

    async fn remove_container(&self, id: &str) -> Result<(), String> {
        let Some(container) = self.containers.iter().find(|container| container.id == id) else {
            return Ok(());
        };
        remove(self.shared, container).await.map_err(|error| error.to_string())
    }

    async fn remove_sandbox(&self, id: &str) -> Result<(), String> {
        let cri = &self.shared.cri;
        cri.stop_sandbox(id).await.map_err(|error| error.to_string())?;
        cri.remove_sandbox(id).await.map_err(|error| error.to_string())?;
        locked(&self.shared.seen).addresses.remove(id);
        Ok(())
    }

    async fn remove_logs(&self, directory: &str) -> Result<(), String> {
        let path = self.shared.places.logs.join(directory);
        remove_directory(&path).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Removes a container with its log and its last words.
pub(super) async fn remove(shared: &Shared, container: &Listed) -> Result<(), CriError> {
    shared.cri.remove_container(&container.id).await?;
    locked(&shared.seen).containers.remove(&container.id);
    let Some(owner) = Owner::of_labels(&container.labels) else { return Ok(()) };
    let (name, attempt) = (name_of(container), attempt_of(container));
    let places = &shared.places;
    let log = places.logs_of(&owner).join(log_in(name, attempt));
    for file in with_rotated(&log) {
        let _ = fs::remove_file(file);
    }
    let _ = fs::remove_file(places.link(&owner, name, &container.id));
    let _ = fs::remove_file(places.last_words(&owner.uid, name, attempt));
    Ok(())
}

/// A log, and what was rotated out of it.
fn with_rotated(log: &Path) -> Vec<std::path::PathBuf> {
    let (Some(directory), Some(name)) = (log.parent(), log.file_name().and_then(|it| it.to_str()))
    else {
        return Vec::new();
    };
    let is_part = |path: &std::path::PathBuf| {
        let found = path.file_name().and_then(|found| found.to_str());
        let rest = found.and_then(|found| found.strip_prefix(name));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    entries(directory).into_iter().filter(is_part).collect()
}

/// Removes those of a name that ended before the last ones, when it was started again.
pub(super) async fn prune(shared: &Shared, pod: &Pod, start: &Start) {
    let kept = shared.policies.containers.per_container.unwrap_or(KEPT_MIN).max(KEPT_MIN);
    if usize::try_from(start.attempt).is_ok_and(|before| before <= kept) {
        return;
    }
    let Ok(parts) = Parts::of(shared, uid_of(pod)).await else { return };
    for old in parts.named(&start.name).filter(|one| !runs(one)).skip(kept) {
        if let Err(error) = remove(shared, old).await {
            tracing::warn!(%error, container = old.id, "cannot remove a container; later");
        }
    }
}

/// Links the log of a container to where those who collect logs look for them.
pub(super) fn link(shared: &Shared, pod: &Pod, container: &str, log: &Path, id: &str) {
    let link = shared.places.link(&Owner::of(pod), container, id);
    match symlink(log, &link) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            tracing::warn!(%error, link = %link.display(), "a log cannot be linked");
        }
        _ => {}
    }
}

/// Removes links to logs of this agent that are gone. What runs may only be about to write again.
fn remove_dead_links(shared: &Shared, containers: &[Listed]) {
    let running: HashSet<&str> =
        containers.iter().filter(|one| runs(one)).map(|one| one.id.as_str()).collect();
    for link in entries(&shared.places.links) {
        let Ok(target) = fs::read_link(&link) else { continue };
        let name = link.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let id = name.rsplit_once('-').map_or("", |(_, id)| id);
        let own = target.starts_with(&shared.places.logs) && !target.exists();
        if own && !running.contains(id) {
            let _ = fs::remove_file(&link);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_goes_with_what_was_rotated_out_of_it_and_nothing_else() {
        let directory = std::env::temp_dir().join(format!("steersman-dead-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        for name in ["1.log", "1.log.20261117-120000", "1.log.20261117-110000.gz", "10.log"] {
            fs::write(directory.join(name), "").unwrap();
        }
        let mut found = with_rotated(&directory.join("1.log"));
        found.sort();
        let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap()).collect();
        assert_eq!(names, ["1.log", "1.log.20261117-110000.gz", "1.log.20261117-120000"]);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_pod_that_has_ended_is_not_needed() {
        let state = |phase: &str| {
            let pod = serde_json::json!({"status": {"phase": phase}});
            state(&serde_json::from_value(pod).unwrap())
        };
        assert_eq!(state("Running"), PodState::Needed);
        assert_eq!(state("Pending"), PodState::Needed);
        assert_eq!(state("Failed"), PodState::Ended);
    }
}
