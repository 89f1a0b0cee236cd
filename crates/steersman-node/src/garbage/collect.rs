//! Removes what was decided to be garbage.

use std::collections::HashSet;
use std::future::Future;

use jiff::Timestamp;

use super::containers::{ContainerGarbage, DeadContainer, DeadSandbox};
use super::images::{Disk, FoundImage, ImagePolicy, ImageRecords, Need, Unused};

/// What a runtime does with images. Errors are said as it says them.
pub(crate) trait ImageStore: Send + Sync {
    fn list(&self) -> impl Future<Output = Result<Vec<FoundImage>, String>> + Send;

    /// The ids of images that containers, running or not, or volumes use.
    fn used(&self) -> impl Future<Output = Result<HashSet<String>, String>> + Send;

    fn disk(&self) -> impl Future<Output = Result<Disk, String>> + Send;

    fn remove(&self, id: &str) -> impl Future<Output = Result<(), String>> + Send;
}

/// What a runtime does with containers and sandboxes, and the node with logs.
pub(crate) trait ContainerStore: Send + Sync {
    fn stop_container(&self, id: &str) -> impl Future<Output = Result<(), String>> + Send;

    fn remove_container(&self, id: &str) -> impl Future<Output = Result<(), String>> + Send;

    /// Stops a sandbox and removes it.
    fn remove_sandbox(&self, id: &str) -> impl Future<Output = Result<(), String>> + Send;

    fn remove_logs(&self, directory: &str) -> impl Future<Output = Result<(), String>> + Send;
}

/// Why images were not collected, or not enough of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ImageGcError {
    #[error("{0}")]
    Runtime(String),
    #[error("invalid capacity 0 on image filesystem")]
    NoCapacity,
    #[error(
        "wanted to free {wanted} bytes, but freed {freed} bytes space with errors in image \
         deletion: {why}"
    )]
    Removal { wanted: i64, freed: i64, why: String },
    #[error("wanted to free images older than {age}, encountered errors in image deletion: {why}")]
    Old { age: String, why: String },
    #[error(
        "Insufficient free disk space on the node's image filesystem ({usage_percent}% of \
         {capacity} used). Failed to free sufficient space by deleting unused images (freed \
         {freed} bytes). Investigate disk usage, as it could be used by active images, logs, \
         volumes, or other data."
    )]
    Insufficient { usage_percent: i64, capacity: String, freed: i64 },
}

/// What people are told about the Node, as a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GarbageEvent {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl ImageGcError {
    /// The Event that tells of it, beside `ImageGCFailed`.
    pub(crate) fn event(&self) -> Option<GarbageEvent> {
        let reason = match self {
            Self::NoCapacity => "InvalidDiskCapacity",
            Self::Insufficient { .. } => "FreeDiskSpaceFailed",
            _ => return None,
        };
        Some(GarbageEvent { reason, message: self.to_string() })
    }
}

/// Counts failures: the first of a row may be because the node has just started.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Failures {
    failed: bool,
}

impl Failures {
    /// The Event about how a collection ended, from the second failure in a row on.
    pub(crate) fn ended(&mut self, result: &Result<(), ImageGcError>) -> Option<GarbageEvent> {
        let before = std::mem::replace(&mut self.failed, result.is_err());
        let error = result.as_ref().err().filter(|_| before)?;
        Some(GarbageEvent { reason: "ImageGCFailed", message: error.to_string() })
    }
}

/// Removes images that are too old, and others if the disk is too full.
pub(crate) async fn collect_images(
    records: &mut ImageRecords,
    policy: &ImagePolicy,
    store: &impl ImageStore,
    agent_started: Timestamp,
    now: Timestamp,
) -> Result<(), ImageGcError> {
    note(records, store, now).await?;
    let mut problems = Vec::new();
    for image in records.too_old(policy, agent_started, now) {
        if let Err(why) = remove(records, store, &image).await {
            problems.push(why);
        }
    }
    if !problems.is_empty() {
        let age = policy.max_age.map(|age| format!("{age:#}")).unwrap_or_default();
        return Err(ImageGcError::Old { age, why: aggregate(&problems) });
    }
    let disk = store.disk().await.map_err(ImageGcError::Runtime)?;
    if disk.capacity <= 0 {
        return Err(ImageGcError::NoCapacity);
    }
    let Some(Need { bytes, usage_percent }) = policy.need(disk) else { return Ok(()) };
    tracing::info!(usage_percent, bytes, "the disk of images is too full");
    let freed = free(records, policy, store, bytes, now).await?;
    if freed < bytes {
        let capacity = size(disk.capacity);
        return Err(ImageGcError::Insufficient { usage_percent, capacity, freed });
    }
    Ok(())
}

/// Removes all images that nobody uses, as a node under pressure does. Says how many bytes they had.
pub(crate) async fn remove_unused_images(
    records: &mut ImageRecords,
    policy: &ImagePolicy,
    store: &impl ImageStore,
    now: Timestamp,
) -> Result<i64, ImageGcError> {
    note(records, store, now).await?;
    free(records, policy, store, i64::MAX, now).await
}

async fn note(
    records: &mut ImageRecords,
    store: &impl ImageStore,
    now: Timestamp,
) -> Result<(), ImageGcError> {
    let images = store.list().await.map_err(ImageGcError::Runtime)?;
    let used = store.used().await.map_err(ImageGcError::Runtime)?;
    records.note(&images, &used, now);
    Ok(())
}

/// Removes images until there is enough room; goes on after errors.
async fn free(
    records: &mut ImageRecords,
    policy: &ImagePolicy,
    store: &impl ImageStore,
    wanted: i64,
    now: Timestamp,
) -> Result<i64, ImageGcError> {
    let mut problems = Vec::new();
    let mut freed: i64 = 0;
    for image in records.expendable(policy, now) {
        if freed >= wanted {
            break;
        }
        match remove(records, store, &image).await {
            Ok(()) => freed = freed.saturating_add(image.size),
            Err(why) => problems.push(why),
        }
    }
    if problems.is_empty() {
        return Ok(freed);
    }
    Err(ImageGcError::Removal { wanted, freed, why: aggregate(&problems) })
}

async fn remove(
    records: &mut ImageRecords,
    store: &impl ImageStore,
    image: &Unused,
) -> Result<(), String> {
    tracing::info!(image = image.id, size = image.size, "removing an image");
    store.remove(&image.id).await?;
    records.removed(&image.id);
    Ok(())
}

/// Removes containers, sandboxes and logs; what cannot be removed is told and left for the next time.
/// Says how many things were removed.
pub(crate) async fn collect_containers(
    garbage: &ContainerGarbage,
    store: &impl ContainerStore,
) -> usize {
    let mut count = 0;
    let mut left: HashSet<&str> = HashSet::new();
    for DeadContainer { id, stop } in &garbage.containers {
        let stopped = if *stop { store.stop_container(id).await } else { Ok(()) };
        let removed = match stopped {
            Ok(()) => store.remove_container(id).await,
            Err(why) => Err(why),
        };
        if !done("container", id, removed, &mut count) {
            left.insert(id);
        }
    }
    for DeadSandbox { id, containers } in &garbage.sandboxes {
        if containers.iter().all(|container| !left.contains(container.as_str())) {
            done("sandbox", id, store.remove_sandbox(id).await, &mut count);
        }
    }
    for directory in &garbage.logs {
        done("logs", directory, store.remove_logs(directory).await, &mut count);
    }
    count
}

fn done(what: &str, id: &str, removed: Result<(), String>, count: &mut usize) -> bool {
    match removed {
        Ok(()) => *count += 1,
        Err(error) => {
            tracing::warn!(what, id, error, "cannot remove what is left over");
            return false;
        }
    }
    true
}

/// Errors as Go puts them together.
fn aggregate(problems: &[String]) -> String {
    match problems {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// A number of bytes for people.
fn size(bytes: i64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    // What is lost here is far behind the point.
    #[expect(clippy::cast_precision_loss, reason = "one digit behind the point is told")]
    let mut amount = bytes as f64 / 1024.0;
    let mut unit = 0;
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{amount:.1} {}", UNITS[unit])
}
