//! A volume that Pods on a node use, and what its attachment to the node is called.

use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::api::storage::v1::VolumeAttachment;

/// How the names of attachments begin that this controller makes.
const PREFIX: &str = "csi-";
/// How the names of volumes begin in the status of a node.
const UNIQUE: &str = "kubernetes.io/csi/";

/// A volume that Pods on a node use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The name of its PersistentVolume.
    pub(super) volume: String,
    /// Its driver.
    pub(super) driver: String,
    /// How its driver calls it.
    pub(super) handle: String,
    /// Whether only one node at a time can have it.
    pub(super) exclusive: bool,
}

impl Wanted {
    /// What a volume needs; nothing if there is nothing to attach.
    pub(super) fn of(volume: &PersistentVolume) -> Option<Self> {
        let spec = volume.spec.as_ref()?;
        let csi = spec.csi.as_ref()?;
        let (driver, handle) = (csi.driver.clone(), csi.volume_handle.clone());
        let modes = spec.access_modes.as_deref().unwrap_or_default();
        let exclusive = !modes.is_empty() && !modes.iter().any(|mode| mode.ends_with("Many"));
        Some(Self { volume: volume.metadata.name.clone()?, driver, handle, exclusive })
    }

    /// As the status of a node calls it.
    pub(super) fn unique_name(&self) -> String {
        format!("{UNIQUE}{}^{}", self.driver, self.handle)
    }

    /// The volume that the status of a node calls so.
    pub(super) fn named(volume: &str, unique_name: &str) -> Option<Self> {
        let (driver, handle) = unique_name.strip_prefix(UNIQUE)?.split_once('^')?;
        let (driver, handle) = (driver.to_owned(), handle.to_owned());
        Some(Self { volume: volume.to_owned(), driver, handle, exclusive: false })
    }
}

/// The name of an attachment, as Kubernetes makes it: a hash of what it is about.
pub(super) fn name(wanted: &Wanted, node: &str) -> String {
    let about = format!("{}{}{node}", wanted.handle, wanted.driver);
    let hash = ring::digest::digest(&ring::digest::SHA256, about.as_bytes());
    hash.as_ref().iter().fold(PREFIX.to_owned(), |name, byte| format!("{name}{byte:02x}"))
}

/// The name of an attachment that has one.
pub(super) fn name_of(attachment: &VolumeAttachment) -> &str {
    attachment.metadata.name.as_deref().unwrap_or_default()
}

/// Whether this controller has made an attachment.
pub(super) fn is_own(attachment: &VolumeAttachment) -> bool {
    attachment.metadata.name.as_deref().is_some_and(|name| name.starts_with(PREFIX))
}
