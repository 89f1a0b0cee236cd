//! What each volume of a Pod is made of, and where it is on the node.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, HostPathVolumeSource, PersistentVolume, Pod, PodSpec, Volume,
    VolumeMount,
};
use steersman_values::Quantity;

use super::payload::{Keys, MODE, Payload, PayloadError, Sources};
use super::token::Tokens;
use crate::downward::Defaults;
use crate::objects::Objects;

/// The plug-in of images.
const IMAGE: &str = "image";

/// What the volumes of a Pod are planned with.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) pod: &'a Pod,
    /// The Pod's own directory on the node, which `tear_down` removes.
    pub(crate) directory: &'a Path,
    pub(crate) objects: &'a Objects,
    pub(crate) tokens: &'a Tokens,
    /// What the node can allocate; its memory bounds volumes in memory.
    pub(crate) allocatable:
        &'a BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>,
    /// The `PersistentVolume`s behind claims, by the name of the Pod's volume; or why there is none.
    pub(crate) persistent: &'a HashMap<String, Result<PersistentVolume, String>>,
}

/// A volume that can be set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumePlan {
    pub(crate) name: String,
    /// Where it is on the node.
    pub(crate) path: PathBuf,
    pub(crate) backing: Backing,
    /// Whether containers can only read it, whatever their mounts say.
    pub(crate) read_only: bool,
}

/// What a volume is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    /// An empty directory that lasts as long as the Pod.
    Empty(Medium),
    /// Files made of objects, in a directory of their own.
    Files {
        medium: Medium,
        payload: Payload,
        /// Directories on which containers mount other volumes.
        nested: Vec<PathBuf>,
    },
    /// A path of the node, of a type that is checked, or made if it is missing.
    Host { kind: String },
    /// A directory of the node behind a `PersistentVolume`, which must be there.
    Local,
    /// The content of an image, which whoever has it mounts.
    Image { reference: String, pull_policy: Option<String> },
}

/// Where a directory is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// On the node's disk. A limit is held by eviction.
    Disk,
    /// In memory, up to this many bytes.
    Memory { size: Option<i64> },
    /// In huge pages of this size.
    HugePages { page: String },
}

/// Why a volume cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VolumeError {
    #[error(transparent)]
    Payload(#[from] PayloadError),
    #[error("unknown storage medium {0:?}")]
    Medium(String),
    #[error(
        "medium {0}: hugePages storage requested, but there is no resource request for huge pages"
    )]
    NoHugePages(String),
    #[error("medium: {0} can't be used if container requests multiple huge page sizes")]
    HugePages(String),
    #[error("invalid HostPath `{0}`: must not contain '..'")]
    HostPath(String),
    #[error("invalid path: {0} must not contain '..'")]
    LocalPath(String),
    #[error("{0}")]
    Claim(String),
    #[error("no volume plugin matched")]
    Unsupported,
}

/// The volumes of a Pod, in its order, each with what it is made of or why it cannot be had.
pub(crate) fn plan(inputs: &Inputs<'_>) -> Vec<(String, Result<VolumePlan, VolumeError>)> {
    let volumes = inputs.pod.spec.iter().filter_map(|spec| spec.volumes.as_ref()).flatten();
    volumes.map(|volume| (volume.name.clone(), inputs.volume(volume))).collect()
}

impl Inputs<'_> {
    fn volume(&self, volume: &Volume) -> Result<VolumePlan, VolumeError> {
        let files = |plugin, medium, payload| self.files(volume, plugin, medium, payload);
        let memory = || Medium::Memory { size: self.memory(None) };
        let sources = self.sources();
        if let Some(source) = &volume.empty_dir {
            let medium = self.medium(source)?;
            Ok(self.own(volume, "empty-dir", Backing::Empty(medium)))
        } else if let Some(source) = &volume.config_map {
            let mode = source.default_mode.unwrap_or(MODE);
            let keys = Keys { items: source.items.as_deref(), mode, optional: source.optional };
            files("configmap", Medium::Disk, sources.config_map(&source.name, keys)?)
        } else if let Some(source) = &volume.secret {
            let mode = source.default_mode.unwrap_or(MODE);
            let keys = Keys { items: source.items.as_deref(), mode, optional: source.optional };
            let name = source.secret_name.as_deref().unwrap_or_default();
            files("secret", memory(), sources.secret(name, keys)?)
        } else if let Some(source) = &volume.downward_api {
            let mode = source.default_mode.unwrap_or(MODE);
            let payload = sources.downward(source.items.as_deref(), mode)?;
            files("downward-api", memory(), payload)
        } else if let Some(source) = &volume.projected {
            files("projected", memory(), sources.projected(source)?)
        } else if let Some(source) = &volume.host_path {
            host(&volume.name, source)
        } else if let Some(source) = &volume.image {
            let reference = source.reference.clone().unwrap_or_default();
            let pull_policy = source.pull_policy.clone();
            Ok(self.own(volume, IMAGE, Backing::Image { reference, pull_policy }))
        } else if volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some() {
            self.persistent(volume)
        } else {
            Err(VolumeError::Unsupported)
        }
    }

    fn sources(&self) -> Sources<'_> {
        let Self { pod, objects, tokens, .. } = *self;
        let defaults = Defaults { allocatable: self.allocatable, pod_limits: false };
        let has_group = fs_group(pod).is_some();
        Sources { pod, objects, tokens, defaults, owner: fs_user(pod), has_group }
    }

    /// A volume in the Pod's directory.
    fn own(&self, volume: &Volume, plugin: &str, backing: Backing) -> VolumePlan {
        let path = self.directory.join(directory_of(plugin)).join(&volume.name);
        let read_only = matches!(backing, Backing::Files { .. } | Backing::Image { .. });
        VolumePlan { name: volume.name.clone(), path, backing, read_only }
    }

    fn files(
        &self,
        volume: &Volume,
        plugin: &str,
        medium: Medium,
        payload: Payload,
    ) -> Result<VolumePlan, VolumeError> {
        let nested = nested_mounts(self.pod, &volume.name);
        Ok(self.own(volume, plugin, Backing::Files { medium, payload, nested }))
    }

    fn medium(&self, source: &EmptyDirVolumeSource) -> Result<Medium, VolumeError> {
        match source.medium.as_deref().unwrap_or_default() {
            "" => Ok(Medium::Disk),
            "Memory" => {
                let limit = source.size_limit.as_ref();
                let limit = limit.and_then(|text| Quantity::parse(&text.0).ok());
                Ok(Medium::Memory { size: self.memory(limit) })
            }
            medium if medium.starts_with("HugePages") => huge_pages(self.pod, medium),
            medium => Err(VolumeError::Medium(medium.to_owned())),
        }
    }

    /// How much memory a volume may take: what the node has, the Pod may use, or the volume itself,
    /// whichever is the least.
    fn memory(&self, own: Option<Quantity>) -> Option<i64> {
        let node = self.allocatable.get("memory").and_then(|text| Quantity::parse(&text.0).ok());
        let pod = self.pod.spec.as_ref().and_then(memory_limit);
        let bounds = [node, pod, own].into_iter().flatten();
        bounds.filter(|bound| bound.is_positive()).min().map(Quantity::value)
    }

    fn persistent(&self, volume: &Volume) -> Result<VolumePlan, VolumeError> {
        let found = match self.persistent.get(&volume.name) {
            Some(Ok(found)) => found,
            Some(Err(why)) => return Err(VolumeError::Claim(why.clone())),
            None => return Err(VolumeError::Claim("its claim was not read".into())),
        };
        let claim = volume.persistent_volume_claim.as_ref();
        let read_only = claim.and_then(|claim| claim.read_only).unwrap_or(false);
        let spec = found.spec.as_ref().ok_or(VolumeError::Unsupported)?;
        if let Some(source) = &spec.host_path {
            return Ok(VolumePlan { read_only, ..host(&volume.name, source)? });
        }
        let source = spec.local.as_ref().ok_or(VolumeError::Unsupported)?;
        if steps_back(&source.path) {
            return Err(VolumeError::LocalPath(source.path.clone()));
        }
        let path = PathBuf::from(&source.path);
        Ok(VolumePlan { name: volume.name.clone(), path, backing: Backing::Local, read_only })
    }
}

/// The group that owns the Pod's volumes.
pub(crate) fn fs_group(pod: &Pod) -> Option<u32> {
    let group = pod.spec.as_ref()?.security_context.as_ref()?.fs_group?;
    u32::try_from(group).ok()
}

/// The user of all containers, if it is the same for all of them: to it tokens are given.
fn fs_user(pod: &Pod) -> Option<u32> {
    let spec = pod.spec.as_ref()?;
    let of_pod = spec.security_context.as_ref().and_then(|context| context.run_as_user);
    let of_container = |container: &Container| {
        let own = container.security_context.as_ref().and_then(|context| context.run_as_user);
        own.or(of_pod)
    };
    let mut users = spec.init_containers.iter().flatten().chain(&spec.containers).map(of_container);
    let first = users.next()??;
    let same = users.all(|user| user == Some(first));
    same.then_some(first).and_then(|user| u32::try_from(user).ok())
}

fn host(name: &str, source: &HostPathVolumeSource) -> Result<VolumePlan, VolumeError> {
    if steps_back(&source.path) {
        return Err(VolumeError::HostPath(source.path.clone()));
    }
    let kind = source.type_.clone().unwrap_or_default();
    let path = PathBuf::from(&source.path);
    Ok(VolumePlan {
        name: name.to_owned(),
        path,
        backing: Backing::Host { kind },
        read_only: false,
    })
}

/// Where the volumes of a plug-in are in a Pod's directory.
fn directory_of(plugin: &str) -> PathBuf {
    Path::new("volumes").join(format!("kubernetes.io~{plugin}"))
}

/// Where the images that are volumes are in a Pod's directory, by the name of the volume.
pub(crate) fn images() -> PathBuf {
    directory_of(IMAGE)
}

pub(super) fn steps_back(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// What all containers together may use, if each has a limit; or what the Pod as a whole may.
fn memory_limit(spec: &PodSpec) -> Option<Quantity> {
    let parse = |text: &k8s_openapi::apimachinery::pkg::api::resource::Quantity| {
        Quantity::parse(&text.0).ok()
    };
    let whole = spec.resources.as_ref().and_then(|it| it.limits.as_ref()?.get("memory"));
    if let Some(whole) = whole.and_then(parse) {
        return Some(whole);
    }
    let limit = |container: &Container| {
        container.resources.as_ref()?.limits.as_ref()?.get("memory").and_then(parse)
    };
    let is_sidecar = |c: &&Container| c.restart_policy.as_deref() == Some("Always");
    let init = || spec.init_containers.iter().flatten();
    let add = |sum: Quantity, container: &Container| sum.checked_add(limit(container)?);
    let running = init().filter(is_sidecar).chain(&spec.containers);
    let running = running.into_iter().try_fold(Quantity::ZERO, add)?;
    // An init container runs beside the companions that were started before it.
    let (mut beside, mut most) = (Quantity::ZERO, running);
    for container in init() {
        let together = beside.checked_add(limit(container)?)?;
        if is_sidecar(&container) {
            beside = together;
        }
        most = most.max(together);
    }
    Some(most)
}

/// The page size of a volume in huge pages, which some container must have asked for.
fn huge_pages(pod: &Pod, medium: &str) -> Result<Medium, VolumeError> {
    let spec = pod.spec.iter();
    let containers =
        spec.clone().flat_map(|s| s.containers.iter().chain(s.init_containers.iter().flatten()));
    let of_containers = containers.filter_map(|container| container.resources.as_ref());
    let lists = spec
        .filter_map(|spec| spec.resources.as_ref())
        .chain(of_containers)
        .filter_map(|resources| resources.requests.as_ref());
    let mut found: Option<&str> = None;
    for page in lists.flat_map(BTreeMap::keys).filter_map(|name| name.strip_prefix("hugepages-")) {
        match medium.strip_prefix("HugePages-") {
            Some(wanted) if wanted != page => {}
            None if found.is_some_and(|found| found != page) => {
                return Err(VolumeError::HugePages(medium.to_owned()));
            }
            _ => found = Some(page),
        }
    }
    let page = found.ok_or_else(|| VolumeError::NoHugePages(medium.to_owned()))?;
    Ok(Medium::HugePages { page: page.to_owned() })
}

/// Where containers mount other volumes inside this one, which they could not do without a directory
/// there; what is inside of such a mount is not listed.
fn nested_mounts(pod: &Pod, name: &str) -> Vec<PathBuf> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let own = spec.init_containers.iter().flatten().chain(&spec.containers);
    let ephemeral = spec.ephemeral_containers.iter().flatten();
    let lists = own.map(|c| &c.volume_mounts).chain(ephemeral.map(|c| &c.volume_mounts));
    let mut found = Vec::new();
    for mounts in lists.flatten() {
        let clean = |mount: &VolumeMount| -> PathBuf {
            Path::new(&mount.mount_path).components().collect()
        };
        let mut all: Vec<PathBuf> = mounts.iter().map(clean).collect();
        all.sort();
        for base in mounts.iter().filter(|mount| mount.name == name).map(clean) {
            let mut inside: Vec<&Path> = Vec::new();
            for path in all.iter().filter_map(|path| path.strip_prefix(&base).ok()) {
                let double = inside.iter().any(|outer| path.starts_with(outer));
                if path != Path::new("") && !double && !steps_back(&path.to_string_lossy()) {
                    inside.push(path);
                }
            }
            found.extend(inside.into_iter().map(Path::to_owned));
        }
    }
    found.sort();
    found.dedup();
    found
}
