//! What Pods use of a node.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Pod, Volume};

use super::signal::{Disks, Signal};

/// What is used of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FsUsage {
    pub(crate) bytes: i64,
    pub(crate) inodes: i64,
}

/// What a container uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContainerUsage {
    pub(crate) name: String,
    /// Its working set, in bytes.
    pub(crate) memory: Option<i64>,
    /// What it wrote into its own file system.
    pub(crate) root: Option<FsUsage>,
    pub(crate) logs: Option<FsUsage>,
}

/// What a Pod uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodUsage {
    /// Its working set, in bytes.
    pub(crate) memory: i64,
    pub(crate) processes: i64,
    pub(crate) containers: Vec<ContainerUsage>,
    /// Its volumes on the node's disk, by name.
    pub(crate) volumes: HashMap<String, FsUsage>,
    /// All that it has on the node's disks, in bytes.
    pub(crate) ephemeral_storage: i64,
}

/// What is known of Pods, by uid. Of some nothing may be known.
pub(crate) type Usages = HashMap<String, PodUsage>;

impl PodUsage {
    /// What it uses of what is short.
    pub(super) fn of(&self, pod: &Pod, signal: Signal, disks: Disks) -> i64 {
        match signal {
            Signal::MemoryAvailable | Signal::AllocatableMemoryAvailable => self.memory,
            Signal::PidAvailable => self.processes,
            Signal::NodeFsAvailable | Signal::ImageFsAvailable => {
                self.files(pod, signal, disks).map(|usage| usage.bytes).sum()
            }
            Signal::NodeFsInodesFree | Signal::ImageFsInodesFree => {
                self.files(pod, signal, disks).map(|usage| usage.inodes).sum()
            }
        }
    }

    /// What it has on the disk of a signal.
    fn files<'a>(
        &'a self,
        pod: &'a Pod,
        signal: Signal,
        disks: Disks,
    ) -> impl Iterator<Item = FsUsage> + 'a {
        let image_fs = matches!(signal, Signal::ImageFsAvailable | Signal::ImageFsInodesFree);
        let roots = disks == Disks::One || image_fs;
        let rest = disks == Disks::One || !image_fs;
        let containers = self.containers.iter();
        let root = containers.clone().filter_map(move |it| it.root.filter(|_| roots));
        let logs = containers.filter_map(move |it| it.logs.filter(|_| rest));
        let volumes = pod.spec.iter().filter_map(|spec| spec.volumes.as_ref()).flatten();
        let local = volumes.filter(move |volume| rest && is_local(volume));
        root.chain(logs).chain(local.filter_map(|volume| self.volumes.get(&volume.name).copied()))
    }
}

/// Whether a volume is on the node's disk.
fn is_local(volume: &Volume) -> bool {
    let on_disk = |it: &k8s_openapi::api::core::v1::EmptyDirVolumeSource| {
        it.medium.as_deref().unwrap_or_default().is_empty()
    };
    volume.host_path.is_some()
        || volume.git_repo.is_some()
        || volume.empty_dir.as_ref().is_some_and(on_disk)
        || volume.config_map.is_some()
}
