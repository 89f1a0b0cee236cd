//! Rotates the logs of running containers that have grown too large, see [`logs`](crate::logs).

use std::path::PathBuf;

use steersman::clock;
use tokio::time::{MissedTickBehavior, interval};

use super::Shared;
use super::labels::NODE;
use super::observe::{attempt_of, name_of, runs};
use super::places::{Owner, log_in};
use crate::cri::CriError;
use crate::cri::wire::container::Container as Listed;
use crate::logs::{ReopenLog, rotate};

/// Looks for ever.
pub(super) async fn run(shared: &Shared) {
    let mut ticks = interval(shared.policies.logs_every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = look(shared).await {
            tracing::debug!(%error, "logs cannot be looked at; retrying");
        }
    }
}

async fn look(shared: &Shared) -> Result<(), CriError> {
    let own = Some((NODE, shared.ground.node.as_str()));
    let containers = shared.cri.containers(own).await?;
    for container in containers.iter().filter(|one| runs(one)) {
        let Some(log) = log_of(shared, container) else { continue };
        let rotated = rotate(&container.id, &log, shared.policies.logs, shared, clock::now());
        match rotated.await {
            Ok(true) => tracing::debug!(log = %log.display(), "rotated a log"),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, container = container.id, "a log was not rotated; retrying");
            }
        }
    }
    Ok(())
}

fn log_of(shared: &Shared, container: &Listed) -> Option<PathBuf> {
    let owner = Owner::of_labels(&container.labels)?;
    let log = log_in(name_of(container), attempt_of(container));
    Some(shared.places.logs_of(&owner).join(log))
}

impl ReopenLog for Shared {
    async fn reopen(&self, container: &str) -> Result<(), String> {
        self.cri.reopen_log(container).await.map_err(|error| error.to_string())
    }
}
