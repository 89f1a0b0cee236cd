//! Removes images that nobody uses, when they are old or the disk fills up.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use steersman::clock;
use steersman::events::NewEvent;
use tokio::time::{MissedTickBehavior, interval};

use super::{Shared, locked};
use crate::cri::CriError;
use crate::garbage::{
    Disk, Failures, FoundImage, GarbageEvent, ImageGcError, ImageStore, collect_images,
    remove_unused_images,
};

/// Looks for ever.
pub(super) async fn run(shared: &Shared) {
    let mut ticks = interval(shared.policies.images_every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failures = Failures::default();
    let policy = &shared.policies.images;
    loop {
        ticks.tick().await;
        let mut records = shared.images.lock().await;
        let now = clock::now();
        let collected = collect_images(&mut records, policy, shared, shared.started, now).await;
        drop(records);
        if let Err(error) = &collected {
            tracing::warn!(%error, "images were not collected; retrying");
        }
        let own = collected.as_ref().err().and_then(ImageGcError::event);
        for event in own.into_iter().chain(failures.ended(&collected)) {
            tell(shared, event);
        }
    }
}

/// Removes all that nobody uses, to make room.
pub(super) async fn remove_unused(shared: &Shared) {
    let mut records = shared.images.lock().await;
    let policy = &shared.policies.images;
    match remove_unused_images(&mut records, policy, shared, clock::now()).await {
        Ok(bytes) => tracing::info!(bytes, "images were removed to make room"),
        Err(error) => tracing::warn!(%error, "images cannot be removed to make room"),
    }
}

/// Tells people, about the Node.
fn tell(shared: &Shared, GarbageEvent { reason, message }: GarbageEvent) {
    let event = NewEvent::warning(reason).action("ImageGarbageCollection").note(message);
    shared.recorder.event(&shared.node(), event);
}

/// The images that a Pod has as volumes.
fn mounted(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| volume.image.as_ref()?.reference.as_deref())
}

impl ImageStore for Shared {
    async fn list(&self) -> Result<Vec<FoundImage>, String> {
        let begun = clock::now();
        let images = self.cri.images().await.map_err(|error| error.to_string())?;
        self.permits.prune(&images.iter().map(|image| image.id.as_str()).collect(), begun);
        let found = images.into_iter().map(|image| FoundImage {
            size: i64::try_from(image.size).unwrap_or(i64::MAX),
            pinned: image.pinned,
            id: image.id,
        });
        Ok(found.collect())
    }

    async fn used(&self) -> Result<HashSet<String>, String> {
        let failed = |error: CriError| error.to_string();
        let containers = self.cri.containers(None).await.map_err(failed)?;
        let mut used: HashSet<String> =
            containers.into_iter().map(|container| container.image_ref).collect();
        // Those that are mounted as volumes belong to no container.
        let pods: Vec<Arc<Pod>> = locked(&self.running).values().cloned().collect();
        for name in pods.iter().flat_map(|pod| mounted(pod)) {
            used.extend(self.cri.image(name).await.map_err(failed)?.map(|image| image.id));
        }
        // Older runtimes do not pin it, and without it no Pod could be started.
        if let Some(name) = self.cri.sandbox_image().await.map_err(failed)? {
            used.extend(self.cri.image(&name).await.map_err(failed)?.map(|image| image.id));
        }
        Ok(used)
    }

    async fn disk(&self) -> Result<Disk, String> {
        let images = self.cri.image_disk().await.map_err(|error| error.to_string())?;
        let path = images.unwrap_or_else(|| "/".into());
        let room = rustix::fs::statvfs(Path::new(&path).as_os_str().as_bytes());
        let room = room.map_err(|error| format!("{path}: {error}"))?;
        let bytes = |blocks: u64| i64::try_from(blocks * room.f_frsize).unwrap_or(i64::MAX);
        Ok(Disk { capacity: bytes(room.f_blocks), available: bytes(room.f_bavail) })
    }

    async fn remove(&self, id: &str) -> Result<(), String> {
        self.cri.remove_image(id).await.map_err(|error| error.to_string())
    }
}
