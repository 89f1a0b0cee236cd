//! The part of the machine that one agent has, and what its Pods have left there.

use std::fs;
use std::path::{Path, PathBuf};

use super::Containerd;

/// What an agent has of the machine.
pub(crate) struct Room {
    containerd: &'static Containerd,
    /// The name of its Node.
    pub node: String,
    /// Where it keeps what is mounted.
    pub root: PathBuf,
    pub logs: PathBuf,
    /// Where the links to the logs are.
    pub links: PathBuf,
    /// Below which cgroup its Pods are.
    pub cgroup: String,
}

impl Room {
    /// That of the agent of a Node.
    pub(crate) fn of(containerd: &'static Containerd, node: &str) -> Self {
        let room = containerd.room(node);
        Self {
            containerd,
            node: node.to_owned(),
            root: room.join("root"),
            logs: room.join("logs"),
            links: room.join("links"),
            cgroup: format!("/{}/{node}", containerd.name),
        }
    }

    /// Who runs its containers.
    pub(crate) fn containerd(&self) -> &'static Containerd {
        self.containerd
    }

    /// What Pods of this node have left on the machine.
    pub(crate) fn left(&self) -> Vec<String> {
        let own = format!("labels.\"steersman.dev/node\"=={}", self.node);
        let Ok(containers) = self.containerd.try_ctr(&["containers", "ls", "-q", &own]) else {
            return vec!["a containerd that does not answer".to_owned()];
        };
        let mut left: Vec<String> =
            containers.lines().map(|id| format!("container or sandbox {id}")).collect();
        for directory in [self.root.join("pods"), self.logs.clone(), self.links.clone()] {
            left.extend(entries(&directory).into_iter().map(|name| format!("file {name}")));
        }
        for hierarchy in entries(Path::new("/sys/fs/cgroup")) {
            for class in ["", "besteffort", "burstable"] {
                let path =
                    Path::new(&hierarchy).join(self.cgroup.trim_start_matches('/')).join(class);
                let pods = entries(&path).into_iter().filter(|name| name.contains("/pod"));
                left.extend(pods.map(|name| format!("cgroup {name}")));
            }
        }
        let room = self.containerd.room(&self.node).display().to_string();
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let own = |line: &&str| line.contains(&room) && !line.starts_with(super::DISK);
        let mounts = mounts.lines().filter(own);
        left.extend(mounts.map(|line| format!("mount {line}")));
        left
    }
}

impl Containerd {
    /// The addresses that nobody has any more: those of sandboxes that are gone.
    pub(crate) fn left_addresses(&self) -> Vec<String> {
        let Ok(containers) = self.try_ctr(&["containers", "ls", "-q"]) else {
            return vec!["a containerd that does not answer".to_owned()];
        };
        let given = entries(&self.directory.join("addresses").join(&self.name));
        let is_address = |path: &String| {
            let name = Path::new(path).file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.parse::<std::net::IpAddr>().is_ok())
        };
        let of_nobody = |path: &String| {
            let sandbox = fs::read_to_string(path).unwrap_or_default();
            let sandbox = sandbox.lines().next().unwrap_or_default().trim().to_owned();
            !sandbox.is_empty() && !containers.lines().any(|id| id == sandbox)
        };
        let given = given.into_iter().filter(is_address).filter(of_nobody);
        given.map(|path| format!("address {path}")).collect()
    }
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().display().to_string()).collect()
}
