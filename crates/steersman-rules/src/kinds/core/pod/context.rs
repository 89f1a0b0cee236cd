//! What the rules for parts of a pod need of the whole: what is known of it, and all its containers.

use std::collections::HashMap;

use serde_json::Value;

use crate::rules::at::At;

/// What the rules of containers know of their pod.
pub(super) struct Pod<'v> {
    /// Whether this is a pod, not the template of one.
    pub(super) is_pod: bool,
    /// The valid volumes, by name.
    pub(super) volumes: HashMap<&'v str, &'v Value>,
    /// The names in `resourceClaims`.
    pub(super) claims: Vec<&'v str>,
    /// `terminationGracePeriodSeconds`
    pub(super) grace: Option<i64>,
    /// The name of the operating system; empty where none is given.
    pub(super) os: &'v str,
    /// `restartPolicy`
    pub(super) restart_policy: &'v str,
    /// Whether containers run as users of the host.
    pub(super) host_users: bool,
}

/// Every container with its place, of all three lists.
pub(super) fn each_container<'v>(spec: &At<'v, '_>, mut work: impl FnMut(&At<'v, '_>)) {
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        spec.at(list).items().for_each(|container| work(&container));
    }
}
