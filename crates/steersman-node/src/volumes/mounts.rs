//! What of a Pod's volumes a container gets, and where.

use std::collections::BTreeSet;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{Container, VolumeMount};

use super::plan::{VolumePlan, steps_back};
use crate::environment::{Environment, expand_names};

/// A mount of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerMount {
    /// The volume.
    pub(crate) name: String,
    /// Where the container sees it.
    pub(crate) container_path: PathBuf,
    pub(crate) source: MountSource,
    pub(crate) read_only: bool,
    pub(crate) recursive_read_only: bool,
    pub(crate) propagation: Propagation,
}

/// What is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MountSource {
    /// A path of the node.
    Path(PathBuf),
    /// A part of a volume, which is to be resolved before; see [`resolve`](super::resolve).
    SubPath(SubPath),
}

/// A part of a volume that is mounted by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubPath {
    /// Where the volume is on the node.
    pub(crate) volume: PathBuf,
    /// What of it, relative and without steps back. Links in the volume may still lead anywhere.
    pub(crate) path: PathBuf,
    /// Where it is bound to, below the Pod's directory:
    /// `volume-subpaths/{volume}/{container}/{number of the mount}`.
    pub(crate) target: PathBuf,
}

/// Whether mounts made later are seen on the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Private,
    HostToContainer,
    Bidirectional,
}

/// Why a container cannot have its mounts; shown with the reason `CreateContainerConfigError`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MountError {
    #[error("cannot find volume {volume:?} to mount into container {container:?}")]
    Volume { volume: String, container: String },
    #[error("missing value for {0}")]
    Variables(String),
    #[error("error SubPath `{0}` must not be an absolute path")]
    Absolute(String),
    #[error("unable to provision SubPath `{0}`: must not contain '..'")]
    StepsBack(String),
    #[error("invalid MountPropagation mode: {0:?}")]
    Propagation(String),
    #[error(
        "failed to resolve recursive read-only mode: volume {0:?} requested recursive read-only \
         mode, but it is not read-only"
    )]
    Writable(String),
    #[error(
        "failed to resolve recursive read-only mode: volume {volume:?} requested recursive \
         read-only mode, but it is not compatible with propagation {propagation:?}"
    )]
    Propagated { volume: String, propagation: String },
    #[error(
        "failed to resolve recursive read-only mode: volume {0:?} requested recursive read-only \
         mode, but it is not supported by the runtime"
    )]
    RuntimeLacks(String),
    #[error("failed to resolve recursive read-only mode: unknown recursive read-only mode {0:?}")]
    ReadOnlyMode(String),
}

/// What decides about the mounts of a container.
#[derive(Clone, Copy)]
pub(crate) struct Mounting<'a> {
    pub(crate) container: &'a Container,
    pub(crate) volumes: &'a [VolumePlan],
    pub(crate) environment: &'a Environment,
    /// Whether the runtime can make mounts below a mount read-only.
    pub(crate) recursive_read_only: bool,
}

/// The mounts of a container, in its order.
pub(crate) fn mounts(mounting: &Mounting<'_>) -> Result<Vec<ContainerMount>, MountError> {
    let mounts = mounting.container.volume_mounts.iter().flatten().enumerate();
    mounts.map(|(number, mount)| mounting.one(number, mount)).collect()
}

impl Mounting<'_> {
    fn one(&self, number: usize, mount: &VolumeMount) -> Result<ContainerMount, MountError> {
        let named = |volume: &&VolumePlan| volume.name == mount.name;
        let volume = self.volumes.iter().find(named).ok_or_else(|| MountError::Volume {
            volume: mount.name.clone(),
            container: self.container.name.clone(),
        })?;
        let sub_path = self.sub_path(mount)?;
        let source = if sub_path.is_empty() {
            MountSource::Path(volume.path.clone())
        } else {
            MountSource::SubPath(SubPath {
                volume: volume.path.clone(),
                path: PathBuf::from(sub_path),
                target: ["volume-subpaths", &mount.name, &self.container.name, &number.to_string()]
                    .iter()
                    .collect(),
            })
        };
        Ok(ContainerMount {
            name: mount.name.clone(),
            container_path: PathBuf::from("/").join(&mount.mount_path),
            source,
            read_only: mount.read_only.unwrap_or(false) || volume.read_only,
            recursive_read_only: self.recursively(mount)?,
            propagation: propagation(mount)?,
        })
    }

    /// The part of the volume that is asked for; empty for all of it.
    fn sub_path(&self, mount: &VolumeMount) -> Result<String, MountError> {
        let path = match mount.sub_path_expr.as_deref().filter(|text| !text.is_empty()) {
            Some(text) => filled(text, self.environment)?,
            None => mount.sub_path.clone().unwrap_or_default(),
        };
        if path.starts_with('/') {
            return Err(MountError::Absolute(path));
        }
        if steps_back(&path) {
            return Err(MountError::StepsBack(path));
        }
        Ok(path)
    }

    fn recursively(&self, mount: &VolumeMount) -> Result<bool, MountError> {
        let mode = mount.recursive_read_only.as_deref().unwrap_or("Disabled");
        if mode == "Disabled" {
            return Ok(false);
        }
        let volume = mount.name.clone();
        if mount.read_only != Some(true) {
            return Err(MountError::Writable(volume));
        }
        if let Some(propagation) = mount.mount_propagation.clone().filter(|mode| mode != "None") {
            return Err(MountError::Propagated { volume, propagation });
        }
        match mode {
            "IfPossible" => Ok(self.recursive_read_only),
            "Enabled" if self.recursive_read_only => Ok(true),
            "Enabled" => Err(MountError::RuntimeLacks(volume)),
            _ => Err(MountError::ReadOnlyMode(mode.to_owned())),
        }
    }
}

/// A path with variables filled in, all of which must have a value.
fn filled(text: &str, environment: &Environment) -> Result<String, MountError> {
    let mut missing = BTreeSet::new();
    for name in expand_names(text) {
        if environment.get(&name).is_none_or(Vec::is_empty) {
            missing.insert(name);
        }
    }
    if missing.is_empty() {
        return Ok(crate::environment::expand_text(text, environment));
    }
    Err(MountError::Variables(missing.into_iter().collect::<Vec<_>>().join(", ")))
}

fn propagation(mount: &VolumeMount) -> Result<Propagation, MountError> {
    match mount.mount_propagation.as_deref() {
        None | Some("None") => Ok(Propagation::Private),
        Some("HostToContainer") => Ok(Propagation::HostToContainer),
        Some("Bidirectional") => Ok(Propagation::Bidirectional),
        Some(other) => Err(MountError::Propagation(other.to_owned())),
    }
}
