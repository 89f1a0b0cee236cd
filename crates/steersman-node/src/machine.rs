//! What this machine has and is: processors, memory, disk, addresses, kernel.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;

use k8s_openapi::api::core::v1::{NodeSwapStatus, NodeSystemInfo};

use crate::registration::{KUBELET_VERSION, architecture};

/// What this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resources {
    pub(crate) processors: usize,
    /// In bytes.
    pub(crate) memory: u64,
    /// The file system that Pods are on, in bytes.
    pub(crate) disk: u64,
    /// How many Pods are to run here at most.
    pub(crate) pods: u32,
}

/// What is kept free of Pods, in bytes: where a kubelet begins to evict them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) memory: u64,
    pub(crate) disk: u64,
}

impl Resources {
    /// What there is, with Pods in this directory.
    pub(crate) fn of_this_machine(root: &Path, pods: u32) -> io::Result<Self> {
        let memory = fs::read_to_string("/proc/meminfo")?;
        let disk = rustix::fs::statvfs(root.as_os_str().as_bytes()).map_err(system_error)?;
        Ok(Self {
            processors: thread::available_parallelism().map_or(1, NonZero::get),
            memory: total_memory(&memory).ok_or(io::ErrorKind::InvalidData)?,
            disk: disk.f_blocks * disk.f_frsize,
            pods,
        })
    }

    /// As a Node names it.
    pub(crate) fn capacity(self) -> BTreeMap<String, String> {
        list([
            ("cpu", self.processors.to_string()),
            ("memory", format!("{}Ki", self.memory / 1024)),
            ("ephemeral-storage", format!("{}Ki", self.disk / 1024)),
            ("pods", self.pods.to_string()),
        ])
    }

    /// What of it Pods can have.
    pub(crate) fn allocatable(self, kept: Kept) -> BTreeMap<String, String> {
        list([
            ("cpu", self.processors.to_string()),
            ("memory", format!("{}Ki", self.memory.saturating_sub(kept.memory) / 1024)),
            ("ephemeral-storage", self.disk.saturating_sub(kept.disk).to_string()),
            ("pods", self.pods.to_string()),
        ])
    }
}

fn system_error(error: rustix::io::Errno) -> io::Error {
    io::Error::from_raw_os_error(error.raw_os_error())
}

fn list<const N: usize>(resources: [(&str, String); N]) -> BTreeMap<String, String> {
    resources.map(|(name, amount)| (name.to_owned(), amount)).into()
}

fn total_memory(meminfo: &str) -> Option<u64> {
    bytes_of(meminfo, "MemTotal:")
}

/// The room for memory on disks, if there is any.
fn swap(meminfo: &str) -> Option<NodeSwapStatus> {
    let bytes = bytes_of(meminfo, "SwapTotal:").filter(|bytes| *bytes > 0)?;
    Some(NodeSwapStatus { capacity: i64::try_from(bytes).ok() })
}

fn bytes_of(meminfo: &str, what: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(what))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// What a file says in one line, or nothing.
fn line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// The name of this machine, as a Node can have it.
pub(crate) fn name() -> String {
    let name = line("/proc/sys/kernel/hostname").to_lowercase();
    if name.is_empty() { "localhost".into() } else { name }
}

/// The address by which others reach this machine: the one that packets to afar leave from.
pub(crate) fn address() -> IpAddr {
    let leaves_from = || -> io::Result<IpAddr> {
        let socket = UdpSocket::bind(("0.0.0.0", 0))?;
        socket.connect(("192.0.2.1", 9))?; // nothing is sent
        Ok(socket.local_addr()?.ip())
    };
    leaves_from().unwrap_or(IpAddr::from([127, 0, 0, 1]))
}

/// What this machine is, with this container runtime.
pub(crate) fn system(runtime: String) -> NodeSystemInfo {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    NodeSystemInfo {
        architecture: architecture().into(),
        operating_system: "linux".into(),
        os_image: pretty_name(&release).unwrap_or_else(|| "Linux".into()),
        kernel_version: line("/proc/sys/kernel/osrelease"),
        kubelet_version: KUBELET_VERSION.into(),
        container_runtime_version: runtime,
        machine_id: line("/etc/machine-id"),
        system_uuid: line("/sys/class/dmi/id/product_uuid"),
        boot_id: line("/proc/sys/kernel/random/boot_id"),
        swap: swap(&fs::read_to_string("/proc/meminfo").unwrap_or_default()),
        ..NodeSystemInfo::default()
    }
}

fn pretty_name(release: &str) -> Option<String> {
    let named = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(named.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_can_have_all_but_what_is_kept_free() {
        let resources = Resources { processors: 2, memory: 1 << 30, disk: 100 << 30, pods: 110 };
        assert_eq!(resources.capacity()["memory"], "1048576Ki");
        let allocatable = resources.allocatable(Kept { memory: 100 << 20, disk: 10 << 30 });
        assert_eq!(allocatable["memory"], "946176Ki");
        assert_eq!(allocatable["ephemeral-storage"], (90_u64 << 30).to_string());
        assert_eq!(allocatable["pods"], "110");
    }

    #[test]
    fn what_the_kernel_and_the_distribution_say_is_understood() {
        assert_eq!(total_memory("MemTotal:       24604160 kB\nMemFree: 1 kB\n"), Some(25194659840));
        assert_eq!(total_memory("nothing"), None);
        let of_swap = |text: &str| swap(text).map(|swap| swap.capacity);
        assert_eq!(of_swap("MemTotal: 1 kB\nSwapTotal:   1024 kB\n"), Some(Some(1 << 20)));
        assert_eq!(of_swap("MemTotal: 1 kB\nSwapTotal:   0 kB\n"), None, "there is none");
        let release = "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(pretty_name(release).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
    }
}
