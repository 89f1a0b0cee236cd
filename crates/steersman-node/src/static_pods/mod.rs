//! Static Pods: those that a machine runs because a file says so, whatever the API server says.
//!
//! [`source`] reads the files of a directory, [`mirror`] says what the API server is shown of them.
//! They are run by workers of their own, `pods::static_pod`.

pub(crate) mod mirror;
pub(crate) mod mirrors;
pub(crate) mod source;
#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::Pod;

/// Where a Pod comes from: `file`, or `api` if nothing is said.
const SOURCE: &str = "kubernetes.io/config.source";
/// What a static Pod is known by: the hash of what its file says.
const HASH: &str = "kubernetes.io/config.hash";
/// When the file was read first.
const SEEN: &str = "kubernetes.io/config.seen";
/// Which static Pod a mirror shows, by its hash.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Whether a Pod only shows a static one.
pub(crate) fn is_mirror(pod: &Pod) -> bool {
    annotation(pod, MIRROR).is_some()
}

/// Whether a Pod is there because a file says so.
pub(crate) fn is_static(pod: &Pod) -> bool {
    annotation(pod, SOURCE).is_some_and(|source| source != "api")
}

fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}
