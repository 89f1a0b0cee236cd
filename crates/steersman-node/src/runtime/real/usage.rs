//! What Pods use of this machine: memory and processes by their cgroups, disks by the runtime and by
//! counting what is in their directories.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod, Volume};

use super::labels::{self, CONTAINER_NAME, NODE};
use super::places::Owner;
use super::{Shared, uid_of};
use crate::cri::wire::container::ContainerStats;
use crate::eviction::{ContainerUsage, FsUsage, PodUsage, Usages};

/// The size of the blocks that files are counted in.
const BLOCK: u64 = 512;

/// Whether what a Pod has on disks is limited, so that somebody has to look.
pub(super) fn is_limited(pod: &Pod) -> bool {
    const STORAGE: &str = "ephemeral-storage";
    let Some(spec) = &pod.spec else { return false };
    let volume = |volume: &Volume| {
        volume.empty_dir.as_ref().is_some_and(|source| source.size_limit.is_some())
    };
    let container = |container: &Container| {
        let limits = container.resources.as_ref().and_then(|all| all.limits.as_ref());
        limits.is_some_and(|limits| limits.contains_key(STORAGE))
    };
    spec.volumes.iter().flatten().any(volume)
        || spec.containers.iter().chain(spec.init_containers.iter().flatten()).any(container)
}

/// What these Pods use. What the runtime does not tell is left out.
pub(super) async fn of(shared: &Shared, pods: &[Arc<Pod>]) -> Usages {
    if pods.is_empty() {
        return Usages::new();
    }
    let own = Some((NODE, shared.ground.node.as_str()));
    let stats = shared.cri.container_stats(own).await.unwrap_or_else(|error| {
        tracing::debug!(%error, "what containers use cannot be asked");
        Vec::new()
    });
    let measured = pods.iter().map(|pod| {
        let uid = uid_of(pod);
        let own = stats.iter().filter(|one| {
            one.attributes.as_ref().and_then(|it| labels::uid(&it.labels)) == Some(uid)
        });
        let parent = shared.cgroups.parent(pod);
        Measured {
            uid: uid.to_owned(),
            memory: shared.cgroups.working_set(&parent).unwrap_or(0),
            processes: shared.cgroups.processes(&parent).unwrap_or(0),
            stats: own.cloned().collect(),
            logs: shared.places.logs_of(&Owner::of(pod)),
            hosts: shared.places.hosts(uid),
            volumes: volumes(pod, &shared.places.of_pod(uid)),
        }
    });
    let measured: Vec<Measured> = measured.collect();
    // There may be many files to count.
    let counted = tokio::task::spawn_blocking(move || {
        measured.into_iter().map(|one| (one.uid.clone(), one.count())).collect()
    });
    counted.await.unwrap_or_default()
}

/// One Pod before its files are counted.
struct Measured {
    uid: String,
    memory: i64,
    processes: i64,
    stats: Vec<ContainerStats>,
    logs: PathBuf,
    hosts: PathBuf,
    volumes: Vec<(String, PathBuf)>,
}

impl Measured {
    fn count(self) -> PodUsage {
        let container = |stats: &ContainerStats| {
            let labels = stats.attributes.as_ref().map(|all| &all.labels);
            let name = labels.and_then(|all| all.get(CONTAINER_NAME)).cloned().unwrap_or_default();
            let logs = Some(disk_usage(&self.logs.join(&name)));
            let memory = stats.memory.as_ref().and_then(|it| it.working_set_bytes);
            let root = stats.writable_layer.as_ref().map(|layer| FsUsage {
                bytes: layer.used_bytes.map_or(0, |it| number(it.value)),
                inodes: layer.inodes_used.map_or(0, |it| number(it.value)),
            });
            ContainerUsage { name, memory: memory.map(|it| number(it.value)), root, logs }
        };
        let containers: Vec<ContainerUsage> = self.stats.iter().map(container).collect();
        let volumes: HashMap<String, FsUsage> =
            self.volumes.iter().map(|(name, path)| (name.clone(), disk_usage(path))).collect();
        let roots = containers.iter().filter_map(|it| it.root).map(|it| it.bytes);
        let files = [disk_usage(&self.logs), disk_usage(&self.hosts)].map(|it| it.bytes);
        let all = roots.chain(files).chain(volumes.values().map(|it| it.bytes));
        let ephemeral_storage = all.sum();
        let Self { memory, processes, .. } = self;
        PodUsage { memory, processes, containers, volumes, ephemeral_storage }
    }
}

/// The volumes of a Pod that are on the node's disk, with where they are.
fn volumes(pod: &Pod, directory: &Path) -> Vec<(String, PathBuf)> {
    let all = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    let plugin = |volume: &Volume| match volume {
        Volume { empty_dir: Some(source), .. }
            if source.medium.as_deref().unwrap_or_default().is_empty() =>
        {
            Some("empty-dir")
        }
        Volume { config_map: Some(_), .. } => Some("configmap"),
        _ => None,
    };
    let place = |volume: &Volume| {
        let path = directory.join("volumes").join(format!("kubernetes.io~{}", plugin(volume)?));
        Some((volume.name.clone(), path.join(&volume.name)))
    };
    all.into_iter().flatten().filter_map(place).collect()
}

/// What a file or a directory with all in it takes on its disk. What has two names counts once.
fn disk_usage(path: &Path) -> FsUsage {
    let Ok(root) = fs::symlink_metadata(path) else { return FsUsage::default() };
    let (mut blocks, mut seen) = (0_u64, HashSet::new());
    let mut rest = vec![(path.to_owned(), root.clone())];
    while let Some((path, found)) = rest.pop() {
        if found.dev() != root.dev() || !seen.insert(found.ino()) {
            continue;
        }
        blocks = blocks.saturating_add(found.blocks());
        if found.is_dir() {
            let inside = fs::read_dir(&path).into_iter().flatten().flatten();
            // What is gone by now takes nothing.
            let inside = inside.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)));
            rest.extend(inside);
        }
    }
    FsUsage { bytes: number(blocks.saturating_mul(BLOCK)), inodes: number(seen.len() as u64) }
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_two_names_is_counted_once() {
        let directory = std::env::temp_dir().join(format!("steersman-du-{}", std::process::id()));
        fs::create_dir_all(directory.join("inside")).unwrap();
        let empty = disk_usage(&directory);
        assert_eq!(empty.inodes, 2);
        let file = directory.join("inside/file");
        fs::write(&file, vec![1; 64 << 10]).unwrap();
        fs::hard_link(&file, directory.join("other")).unwrap();
        std::os::unix::fs::symlink("/", directory.join("out")).unwrap();
        let full = disk_usage(&directory);
        assert_eq!(full.inodes, 4);
        let grown = full.bytes - empty.bytes;
        assert!((64 << 10..128 << 10).contains(&grown), "{grown}");
        assert_eq!(disk_usage(&directory.join("absent")), FsUsage::default());
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn who_is_limited_is_looked_at() {
        let of = |spec| -> Pod { serde_json::from_value(json!({"spec": spec})).unwrap() };
        assert!(!is_limited(&of(json!({"containers": [{"name": "c"}]}))));
        let limits = json!({"limits": {"ephemeral-storage": "1Mi"}});
        assert!(is_limited(&of(json!({"containers": [{"name": "c", "resources": limits}]}))));
        let volumes = json!([{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}]);
        let limited = of(json!({"containers": [], "volumes": volumes}));
        assert!(is_limited(&limited));
        let found = volumes_of(&limited);
        assert_eq!(found, [("v".into(), PathBuf::from("/p/volumes/kubernetes.io~empty-dir/v"))]);
    }

    fn volumes_of(pod: &Pod) -> Vec<(String, PathBuf)> {
        volumes(pod, Path::new("/p"))
    }
}
