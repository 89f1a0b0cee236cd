//! Takes away what Pods leave behind: what they had of the machine when they have ended, the rest
//! when they are gone, and now and then whatever belongs to no Pod of this node.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use steersman::{Client, Error, ListOptions, Result};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::image_volumes::{self, ImageVolumeError};
use super::labels::{self, NODE};
use super::observe::{Parts, runs};
use super::places::{Owner, entries, remove_directory, uid_of_logs};
use super::{Shared, containers, locked, names_of_running, stops, uid_of};
use crate::cri::CriError;
use crate::volumes::{self, LinuxMounter};

/// How often it is looked for what belongs to nobody.
const PERIOD: Duration = Duration::from_secs(10);
/// How often what a Pod left behind is tried to be removed, before that is left to the next look.
const TRIES: usize = 3;
const AGAIN: Duration = Duration::from_millis(500);
/// What the containers of Pods that nobody knows have between the signal and force.
const LEAST: Duration = Duration::from_secs(2);

/// Gives back what a Pod that has ended had of the machine, and tells whether that is done.
pub(super) async fn wind_down(shared: &Arc<Shared>, pod: &Pod) -> Result<bool> {
    let uid = uid_of(pod);
    if locked(&shared.wound_down).contains(uid) {
        return Ok(true);
    }
    let parts = Parts::of(shared, uid).await?;
    let running = names_of_running(&parts);
    if !running.is_empty() {
        stops::stop(shared, pod, &running).await?;
        return Ok(false);
    }
    for sandbox in &parts.sandboxes {
        shared.cri.stop_sandbox(&sandbox.id).await?;
    }
    locked(&shared.running).remove(uid);
    shared.probing.forget(uid);
    if let Err(error) = image_volumes::remove(shared, uid).await {
        tracing::warn!(%error, uid, "the images of a Pod cannot be unmounted; retrying");
        return Ok(false);
    }
    let directory = shared.places.of_pod(uid);
    if let Err(error) = volumes::tear_down(&directory, &LinuxMounter) {
        tracing::warn!(%error, uid, "the volumes of a Pod cannot be taken down; retrying");
        return Ok(false);
    }
    // Something may take a moment to leave it.
    if let Err(error) = shared.cgroups.remove(uid, true) {
        tracing::debug!(%error, uid, "the cgroup of a Pod is still in use");
        return Ok(false);
    }
    if shared.evictions.why(uid).is_some() {
        // The machine needs the room.
        for container in &parts.containers {
            containers::remove(shared, container).await?;
        }
        remove_directory(&shared.places.logs_of(&Owner::of(pod))).map_err(Error::from)?;
        shared.evictions.forget(uid);
    }
    locked(&shared.wound_down).insert(uid.to_owned());
    Ok(true)
}

/// Removes everything of a Pod that is gone.
pub(super) fn forget(shared: &Arc<Shared>, uid: &str) {
    shared.pulls.forget(uid);
    shared.network_waits.forget(uid);
    shared.tokens.forget(uid);
    shared.evictions.forget(uid);
    shared.endings.forget(uid);
    locked(&shared.running).remove(uid);
    // If something of it stays now, the next look has to find it.
    locked(&shared.gone).insert(uid.to_owned());
    shared.probing.forget(uid);
    let (shared, uid) = (Arc::clone(shared), uid.to_owned());
    tokio::spawn(async move {
        for _ in 0..TRIES {
            match remove(&shared, &uid).await {
                Ok(()) => return,
                Err(error) => tracing::debug!(%error, uid, "something of a Pod is left; retrying"),
            }
            sleep(AGAIN).await;
        }
    });
}

/// Why something is left of a Pod.
#[derive(Debug, thiserror::Error)]
enum Left {
    #[error(transparent)]
    Runtime(#[from] CriError),
    #[error(transparent)]
    Images(#[from] ImageVolumeError),
    #[error(transparent)]
    Files(#[from] io::Error),
}

/// Removes everything of the Pod with this uid.
async fn remove(shared: &Shared, uid: &str) -> std::result::Result<(), Left> {
    let parts = Parts::of(shared, uid).await?;
    for container in parts.containers.iter().filter(|one| runs(one)) {
        shared.cri.stop_container(&container.id, LEAST).await?;
    }
    for sandbox in &parts.sandboxes {
        shared.cri.stop_sandbox(&sandbox.id).await?;
        shared.cri.remove_sandbox(&sandbox.id).await?;
    }
    // Those of a sandbox that is gone already.
    for container in &parts.containers {
        containers::remove(shared, container).await?;
    }
    // Somebody else may have Pods below the same cgroup; of ours there is a directory.
    shared.cgroups.remove(uid, shared.places.of_pod(uid).exists())?;
    image_volumes::remove(shared, uid).await?;
    volumes::tear_down(&shared.places.of_pod(uid), &LinuxMounter)?;
    for logs in entries(&shared.places.logs) {
        if uid_of_logs(&logs) == Some(uid) {
            remove_directory(&logs)?;
        }
    }
    let mut seen = locked(&shared.seen);
    for sandbox in &parts.sandboxes {
        seen.addresses.remove(&sandbox.id);
    }
    locked(&shared.wound_down).remove(uid);
    Ok(())
}

/// Removes what belongs to no Pod of this node, again and again.
pub(super) async fn run(shared: &Shared, client: &Client) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut known = HashSet::new();
    loop {
        ticks.tick().await;
        if let Err(error) = look(shared, client, &mut known).await {
            tracing::warn!(%error, "cannot look for what belongs to no Pod; retrying");
        }
    }
}

/// Looks once. Pods that were there at the last look are `known`: the API server is asked only if
/// something is there of another, or of one that has gone since.
async fn look(shared: &Shared, client: &Client, known: &mut HashSet<String>) -> Result<()> {
    for uid in std::mem::take(&mut *locked(&shared.gone)) {
        known.remove(&uid);
    }
    let there = uids(shared).await?;
    if known.is_superset(&there) {
        return Ok(());
    }
    let node = &shared.ground.node;
    let fields = Some(format!("spec.nodeName={node}"));
    let pods = client.list::<Pod>(&ListOptions { fields, ..ListOptions::default() }).await?;
    *known = pods.iter().map(|pod| uid_of(pod).to_owned()).collect();
    known.extend(locked(&shared.kept).iter().cloned());
    let mut failed = None;
    for uid in there.difference(known) {
        tracing::info!(uid, "removing what a Pod that is gone has left");
        // What is left of one Pod is no reason to leave the others'.
        if let Err(error) = remove(shared, uid).await {
            failed = Some(Error::from(error));
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The uids of all Pods of which there is something on the machine.
async fn uids(shared: &Shared) -> Result<HashSet<String>> {
    let own = Some((NODE, shared.ground.node.as_str()));
    let (sandboxes, containers) =
        futures::try_join!(shared.cri.sandboxes(own), shared.cri.containers(own))?;
    let mut uids: HashSet<String> = shared.cgroups.uids().into_iter().collect();
    let labelled = sandboxes.iter().map(|one| &one.labels);
    let labelled = labelled.chain(containers.iter().map(|one| &one.labels));
    uids.extend(labelled.filter_map(|labels| labels::uid(labels).map(str::to_owned)));
    for directory in entries(&shared.places.pods()) {
        uids.extend(directory.file_name().and_then(|name| name.to_str()).map(str::to_owned));
    }
    for directory in entries(&shared.places.logs) {
        uids.extend(uid_of_logs(&directory).map(str::to_owned));
    }
    Ok(uids)
}
