//! What is found out about a container before it is made: its variables, its command, its mounts.

use k8s_openapi::api::core::v1::{Container, Pod};
use steersman::Client;

use super::config::Prepared;
use super::security::ImageUser;
use super::{Shared, uid_of};
use crate::cri::wire::container::Mount;
use crate::cri::wire::image::Image;
use crate::runtime::{Start, StartError};

/// Where names are looked up in a container.
const HOSTS: &str = "/etc/hosts";

/// What is known already.
pub(super) struct Found<'a> {
    pub(super) image: Image,
    /// The container whose processes it is to see.
    pub(super) target: Option<String>,
    /// The Pod's addresses.
    pub(super) addresses: &'a [String],
}

/// Finds out the rest.
pub(super) async fn prepare(
    shared: &Shared,
    pod: &Pod,
    container: &Container,
    start: &Start,
    found: Found<'_>,
    _client: &Client,
) -> Result<Prepared, StartError> {
    let Found { image, target, .. } = found;
    if container.env_from.as_ref().is_some_and(|from| !from.is_empty()) {
        return Err(StartError::Config("envFrom is not supported by this node".into()));
    }
    let mut environment = std::collections::BTreeMap::new();
    for variable in container.env.iter().flatten() {
        if variable.value_from.is_some() {
            return Err(StartError::Config("valueFrom is not supported by this node".into()));
        }
        let value = variable.value.clone().unwrap_or_default();
        environment.insert(variable.name.clone(), value.into_bytes());
    }
    if container.volume_mounts.as_ref().is_some_and(|mounts| !mounts.is_empty()) {
        return Err(StartError::Volumes("volumes are not supported by this node".into()));
    }
    Ok(Prepared {
        environment,
        command: container.command.clone().unwrap_or_default(),
        args: container.args.clone().unwrap_or_default(),
        mounts: own_mounts(shared, pod, container, start),
        user: ImageUser { uid: image.uid.map(|uid| uid.value), name: image.username },
        image: image.id,
        target,
    })
}

/// What every container has: the Pod's names, and a place for its last words.
fn own_mounts(shared: &Shared, pod: &Pod, container: &Container, start: &Start) -> Vec<Mount> {
    let mount = |path: &str, host: std::path::PathBuf| Mount {
        container_path: path.to_owned(),
        host_path: host.display().to_string(),
        ..Mount::default()
    };
    let mut mounts = container.volume_mounts.iter().flatten();
    let own_hosts = mounts.any(|mount| mount.mount_path == HOSTS);
    let hosts = (!own_hosts).then(|| mount(HOSTS, shared.places.hosts(uid_of(pod))));
    let words = container.termination_message_path.as_deref().filter(|path| !path.is_empty());
    let words = words
        .map(|path| mount(path, shared.places.last_words(uid_of(pod), &start.name, start.attempt)));
    hosts.into_iter().chain(words).collect()
}
