//! Where the agent keeps what belongs to Pods: under its own directory, and logs where people look.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;

/// The directories of one agent.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// What is mounted into containers.
    pub(crate) root: PathBuf,
    /// What containers wrote, as `NAMESPACE_NAME_UID/CONTAINER/ATTEMPT.log`.
    pub(crate) logs: PathBuf,
}

impl Places {
    /// Where the directories of all Pods are, by uid.
    pub(super) fn pods(&self) -> PathBuf {
        self.root.join("pods")
    }

    pub(super) fn of_pod(&self, uid: &str) -> PathBuf {
        self.pods().join(uid)
    }

    /// The Pod's `/etc/hosts`.
    pub(super) fn hosts(&self, uid: &str) -> PathBuf {
        self.of_pod(uid).join("etc-hosts")
    }

    /// Where a container leaves its last words.
    pub(super) fn last_words(&self, uid: &str, container: &str, attempt: i32) -> PathBuf {
        self.of_pod(uid).join("containers").join(container).join(attempt.to_string())
    }

    pub(super) fn logs_of(&self, pod: &Pod) -> PathBuf {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let meta = &pod.metadata;
        let name = [text(&meta.namespace), text(&meta.name), text(&meta.uid)].join("_");
        self.logs.join(name)
    }

    pub(super) fn log(&self, pod: &Pod, container: &str, attempt: i32) -> PathBuf {
        self.logs_of(pod).join(log_in(container, attempt))
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
