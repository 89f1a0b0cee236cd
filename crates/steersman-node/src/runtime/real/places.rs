//! Where the agent keeps what belongs to Pods: under its own directory, and logs where people look.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;

use super::labels;

/// How long the name of a file can be.
const NAME_MAX: usize = 255;

/// The directories of one agent.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// What is mounted into containers.
    pub(crate) root: PathBuf,
    /// What containers wrote, as `NAMESPACE_NAME_UID/CONTAINER/ATTEMPT.log`.
    pub(crate) logs: PathBuf,
    /// Links to them, as `NAME_NAMESPACE_CONTAINER-ID.log`, for those who collect logs.
    pub(crate) links: PathBuf,
}

/// The Pod that something belongs to, as directories are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
}

impl Owner {
    pub(super) fn of(pod: &Pod) -> Self {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let meta = &pod.metadata;
        Self { namespace: text(&meta.namespace), name: text(&meta.name), uid: text(&meta.uid) }
    }

    /// The one that a part of it names.
    pub(super) fn of_labels(labels: &HashMap<String, String>) -> Option<Self> {
        let key = labels::pod(labels)?;
        let uid = labels::uid(labels)?.to_owned();
        let namespace = key.namespace.as_ref().map(ToString::to_string).unwrap_or_default();
        Some(Self { namespace, name: key.name.to_string(), uid })
    }
}

impl Places {
    /// Where the directories of all Pods are, by uid.
    pub(super) fn pods(&self) -> PathBuf {
        self.root.join("pods")
    }

    pub(super) fn of_pod(&self, uid: &str) -> PathBuf {
        self.pods().join(uid)
    }

    /// The machine's own profiles of seccomp, which its administrator puts there.
    pub(super) fn profiles(&self) -> PathBuf {
        self.root.join("seccomp")
    }

    /// Where it is kept who may use which image.
    pub(super) fn permits(&self) -> PathBuf {
        self.root.join("images")
    }

    /// The Pod's `/etc/hosts`.
    pub(super) fn hosts(&self, uid: &str) -> PathBuf {
        self.of_pod(uid).join("etc-hosts")
    }

    /// Where a container leaves its last words.
    pub(super) fn last_words(&self, uid: &str, container: &str, attempt: i32) -> PathBuf {
        self.of_pod(uid).join("containers").join(container).join(attempt.to_string())
    }

    /// Where it is noted that a container is being started.
    pub(super) fn starting(&self, uid: &str, container: &str, attempt: i32) -> PathBuf {
        self.of_pod(uid).join("containers").join(container).join(format!("{attempt}.starting"))
    }

    /// Where it is kept what a Pod was given.
    pub(super) fn allocation(&self, uid: &str) -> PathBuf {
        self.of_pod(uid).join("allocation.json")
    }

    pub(super) fn logs_of(&self, Owner { namespace, name, uid }: &Owner) -> PathBuf {
        self.logs.join([namespace.as_str(), name, uid].join("_"))
    }

    pub(super) fn log(&self, pod: &Pod, container: &str, attempt: i32) -> PathBuf {
        self.logs_of(&Owner::of(pod)).join(log_in(container, attempt))
    }

    /// Where the log of the container with this id is linked to.
    pub(super) fn link(&self, owner: &Owner, container: &str, id: &str) -> PathBuf {
        let suffix = format!("-{id}.log");
        let mut name = format!("{}_{}_{container}", owner.name, owner.namespace);
        name.truncate(NAME_MAX.saturating_sub(suffix.len())); // such names are ASCII
        self.links.join(name + &suffix)
    }
}

/// Where a container's log is in the directory of its Pod.
pub(super) fn log_in(container: &str, attempt: i32) -> String {
    format!("{container}/{attempt}.log")
}

/// The uid in the name of a directory of logs.
pub(super) fn uid_of_logs(directory: &Path) -> Option<&str> {
    let (_, uid) = directory.file_name()?.to_str()?.rsplit_once('_')?;
    Some(uid)
}

/// What is in a directory, if it is one.
pub(super) fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

pub(super) fn remove_directory(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
