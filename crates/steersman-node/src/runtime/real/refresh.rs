//! Brings the volumes of running Pods up to date: files of ConfigMaps, Secrets and Pods' own fields
//! that have changed, and tokens that grow old.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Volume};
use steersman::Client;
use tokio::time::{MissedTickBehavior, interval};

use super::{Shared, locked, prepare};

/// Refreshes for ever.
pub(super) async fn run(shared: &Shared, client: &Client, period: Duration) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let pods: Vec<Arc<Pod>> = locked(&shared.running).values().cloned().collect();
        for pod in pods.iter().filter(|pod| changes(pod)) {
            if let Err(why) = prepare::volumes(shared, pod, client).await {
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                tracing::warn!(pod = name, %why, "cannot bring volumes up to date; retrying");
            }
        }
    }
}

/// Whether anything of a Pod's volumes can change while it runs.
fn changes(pod: &Pod) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    let made_of_objects = |volume: &Volume| {
        volume.config_map.is_some()
            || volume.secret.is_some()
            || volume.downward_api.is_some()
            || volume.projected.is_some()
    };
    volumes.into_iter().flatten().any(made_of_objects)
}
