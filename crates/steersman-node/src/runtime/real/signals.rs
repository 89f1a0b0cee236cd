//! How much of everything that can run out there is on this machine.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use jiff::Timestamp;

use super::Shared;
use crate::eviction::{Disks, Observation, Observations, Signal};

/// What was looked at, and where images are.
pub(super) struct Signals {
    pub(super) observed: Observations,
    pub(super) disks: Disks,
}

/// Looks. What cannot be found out is left out, and calls for nothing.
pub(super) async fn look(shared: &Shared, now: Timestamp) -> Signals {
    let root = shared.places.root.as_path();
    let images = shared.cri.image_disk().await.unwrap_or_else(|error| {
        tracing::debug!(%error, "where images are cannot be asked; taking the node's disk");
        None
    });
    let images = images.map(std::path::PathBuf::from);
    let images = images.as_deref().filter(|path| path.exists()).unwrap_or(root);
    let mut observed = Observations::new();
    let mut note = |signal, found: Option<(i64, i64)>| {
        if let Some((available, capacity)) = found {
            observed.insert(signal, Observation { available, capacity, time: now });
        }
    };
    let memory = shared.ground.host.memory;
    let left = |used: Option<i64>| used.map(|used| ((memory - used).max(0), memory));
    note(Signal::MemoryAvailable, left(used_memory(shared)));
    let pods = shared.cgroups.working_set(shared.cgroups.root());
    note(Signal::AllocatableMemoryAvailable, left(pods));
    for (path, bytes, inodes) in [
        (root, Signal::NodeFsAvailable, Signal::NodeFsInodesFree),
        (images, Signal::ImageFsAvailable, Signal::ImageFsInodesFree),
    ] {
        let Some(room) = Room::of(path) else { continue };
        note(bytes, Some(room.bytes));
        note(inodes, Some(room.inodes));
    }
    note(Signal::PidAvailable, process_ids());
    let apart = device(root).is_some() && device(root) != device(images);
    let disks = if apart { Disks::ImagesApart } else { Disks::One };
    Signals { observed, disks }
}

/// What is free of a file system, and what it has.
struct Room {
    bytes: (i64, i64),
    inodes: (i64, i64),
}

impl Room {
    fn of(path: &Path) -> Option<Self> {
        let found = rustix::fs::statvfs(path.as_os_str().as_bytes()).ok()?;
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let bytes = |blocks: u64| number(blocks.saturating_mul(found.f_frsize));
        Some(Self {
            bytes: (bytes(found.f_bavail), bytes(found.f_blocks)),
            inodes: (number(found.f_ffree), number(found.f_files)),
        })
    }
}

fn device(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    Some(fs::metadata(path).ok()?.dev())
}

/// The memory that is in use and cannot be given up at once. The root of the second version of
/// cgroups does not say.
fn used_memory(shared: &Shared) -> Option<i64> {
    let all = shared.cgroups.working_set("/");
    all.or_else(|| used(&fs::read_to_string("/proc/meminfo").ok()?))
}

fn used(meminfo: &str) -> Option<i64> {
    let amount = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        let kilobytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes * 1024)
    };
    Some(amount("MemTotal:")? - amount("MemFree:")? - amount("Inactive(file):")?)
}

/// How many process ids are free, and how many there are.
fn process_ids() -> Option<(i64, i64)> {
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<i64>().ok();
    let limits = ["/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"];
    let capacity = limits.into_iter().filter_map(number).min()?;
    let used = threads(&fs::read_to_string("/proc/loadavg").ok()?)?;
    Some(((capacity - used).max(0), capacity))
}

/// How many threads there are, which the kernel says together with the load.
fn threads(load: &str) -> Option<i64> {
    load.split_whitespace().nth(3)?.split('/').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_understood() {
        let meminfo = "MemTotal:  1000 kB\nMemFree:  300 kB\nInactive(file):  100 kB\n";
        assert_eq!(used(meminfo), Some(600 * 1024));
        assert_eq!(used("MemTotal: 1 kB\n"), None);
        assert_eq!(threads("0.20 0.18 0.12 1/80 11206\n"), Some(80));
        assert!(process_ids().is_some_and(|(free, all)| 0 < free && free < all));
    }
}
