//! What is found out about a container before it is made: its variables, its command, its mounts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use steersman::{Client, clock};

use super::config::Prepared;
use super::pulls::IF_NOT_PRESENT;
use super::reading::{self, Read};
use super::{Shared, uid_of};
use crate::cri::wire::container::{Mount, MountPropagation};
use crate::cri::wire::image::Image;
use crate::downward::{Addresses, Defaults};
use crate::environment::{self, command, environment};
use crate::runtime::user::ImageUser;
use crate::runtime::{Start, StartError};
use crate::volumes::{
    self, Backing, ContainerMount, LinuxMounter, MountSource, MountedPart, Mounting, Ownership,
    Propagation, VolumePlan, failed, mounts, read_below, resolve, set_up,
};

/// Where names are looked up in a container.
const HOSTS: &str = "/etc/hosts";

/// The volumes of a Pod, and what they and its variables are made of.
pub(super) struct Volumes {
    plans: Vec<VolumePlan>,
    read: Read,
    allocatable: BTreeMap<String, Quantity>,
}

/// A volume that is an image.
pub(super) struct ImageVolume<'a> {
    pub(super) name: &'a str,
    pub(super) path: &'a Path,
    pub(super) reference: &'a str,
    pub(super) policy: &'a str,
}

impl Volumes {
    pub(super) fn images(&self) -> impl Iterator<Item = ImageVolume<'_>> {
        self.plans.iter().filter_map(|plan| match &plan.backing {
            Backing::Image { reference, pull_policy } => Some(ImageVolume {
                name: &plan.name,
                path: &plan.path,
                reference,
                policy: pull_policy.as_deref().unwrap_or(IF_NOT_PRESENT),
            }),
            _ => None,
        })
    }
}

/// Sets up the volumes of a Pod, or brings them up to date.
pub(super) async fn volumes(
    shared: &Shared,
    pod: &Pod,
    client: &Client,
) -> Result<Volumes, StartError> {
    let read = reading::read(pod, &shared.tokens, client).await;
    let read = read.map_err(|error| StartError::Volumes(error.to_string()))?;
    let allocatable: BTreeMap<String, Quantity> = shared
        .allocatable
        .iter()
        .map(|(name, text)| (name.clone(), Quantity(text.clone())))
        .collect();
    let planned = volumes::plan(&volumes::Inputs {
        pod,
        directory: &shared.places.of_pod(uid_of(pod)),
        objects: &read.objects,
        tokens: &read.tokens,
        allocatable: &allocatable,
        persistent: &read.persistent,
    });
    let mut plans = Vec::new();
    for (name, planned) in planned {
        let plan = planned.map_err(|error| StartError::Volumes(failed(&name, &error)))?;
        set_up(&plan, Ownership::of(pod), &LinuxMounter, clock::now())
            .map_err(|error| StartError::Volumes(failed(&name, &error)))?;
        plans.push(plan);
    }
    Ok(Volumes { plans, read, allocatable })
}

/// What is known already.
pub(super) struct Found<'a> {
    pub(super) image: Image,
    /// The container whose processes it is to see.
    pub(super) target: Option<String>,
    /// The Pod's addresses.
    pub(super) addresses: &'a [String],
    pub(super) volumes: &'a Volumes,
    /// Whether the runtime can make what is mounted below a mount read-only.
    pub(super) recursively: bool,
}

/// Finds out the rest.
pub(super) fn prepare(
    shared: &Shared,
    pod: &Pod,
    container: &Container,
    start: &Start,
    found: Found<'_>,
) -> Result<Prepared, StartError> {
    let Found { image, target, addresses, volumes, recursively } = found;
    let Volumes { plans, read, allocatable } = volumes;
    let on_host = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
    let addresses = if on_host { &shared.addresses } else { addresses };
    let of = |volume: &str| plans.iter().find(|plan| plan.name == volume);
    let variables = environment(&environment::Inputs {
        pod,
        container,
        objects: &read.objects,
        services: &read.services,
        addresses: Addresses { pod: addresses, host: &shared.addresses },
        defaults: Defaults { allocatable, pod_limits: true },
        files: &|volume, path| Some(read_below(&of(volume)?.path, path)),
    })
    .map_err(|error| StartError::Config(error.to_string()))?;
    let filled = command(container, &variables);
    let mounting = Mounting {
        container,
        volumes: plans,
        environment: &variables,
        recursive_read_only: recursively,
    };
    let all = mounts(&mounting).map_err(|error| StartError::Config(error.to_string()))?;
    let mut mounts = own_mounts(shared, pod, container, start);
    for mount in &all {
        mounts.push(told(shared, pod, container, mount)?);
    }
    Ok(Prepared {
        environment: variables,
        command: filled.command,
        args: filled.args,
        mounts,
        user: ImageUser { uid: image.uid.map(|uid| uid.value), name: image.username },
        image: image.id,
        target,
    })
}

/// A mount as the runtime is told of it.
fn told(
    shared: &Shared,
    pod: &Pod,
    container: &Container,
    mount: &ContainerMount,
) -> Result<Mount, StartError> {
    let host: PathBuf = match &mount.source {
        MountSource::Path(path) => path.clone(),
        MountSource::SubPath(part) => {
            let directory = shared.places.of_pod(uid_of(pod));
            let of = MountedPart { volume: &mount.name, container: &container.name };
            resolve(part, of, &directory, &LinuxMounter)
                .map_err(|error| StartError::Config(error.to_string()))?
        }
    };
    let propagation = match mount.propagation {
        Propagation::Private => MountPropagation::Private,
        Propagation::HostToContainer => MountPropagation::HostToContainer,
        Propagation::Bidirectional => MountPropagation::Bidirectional,
    };
    Ok(Mount {
        container_path: mount.container_path.display().to_string(),
        host_path: host.display().to_string(),
        readonly: mount.read_only,
        propagation: propagation.into(),
        recursive_read_only: mount.recursive_read_only,
    })
}

/// What every container has: the Pod's names, and a place for its last words.
fn own_mounts(shared: &Shared, pod: &Pod, container: &Container, start: &Start) -> Vec<Mount> {
    let mount = |path: &str, host: PathBuf| Mount {
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
