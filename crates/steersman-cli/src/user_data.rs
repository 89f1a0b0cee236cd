//! The user's data directory, where a cluster and its kubeconfig are unless said otherwise.

use std::path::PathBuf;

/// The directory of this program in it, if the user has one.
pub(crate) fn directory() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let data = variable("XDG_DATA_HOME").map(PathBuf::from);
    let home = variable("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    data.or(home).map(|directory| directory.join("steersman"))
}

/// Where a cluster is kept: in the directory asked for, or the user's.
pub(crate) fn cluster(asked: Option<PathBuf>) -> Result<PathBuf, String> {
    let usual = || directory().map(|directory| directory.join("data"));
    asked.or_else(usual).ok_or_else(|| {
        "there is no HOME to keep the cluster in; choose a directory with --data-dir".to_owned()
    })
}
