//! What is to be attached to a node, and what is.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{AttachedVolume, PersistentVolume};
use k8s_openapi::api::storage::v1::{
    VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// How the names of attachments begin that this controller makes.
const PREFIX: &str = "csi-";

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
        format!("kubernetes.io/csi/{}^{}", self.driver, self.handle)
    }
}

/// What is to be done.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) create: Vec<VolumeAttachment>,
    /// The names of attachments.
    pub(super) delete: Vec<String>,
    /// What the node has, if it says otherwise.
    pub(super) attached: Option<Vec<AttachedVolume>>,
    /// What it has.
    pub(super) has: Vec<Wanted>,
    /// What of that it did not say before.
    pub(super) new: Vec<Wanted>,
}

/// What is to be done for a node, which gets of what is not attached to it what it is `granted`.
pub(super) fn plan(
    node: &str,
    wanted: &[Wanted],
    attachments: &[Arc<VolumeAttachment>],
    says: &[AttachedVolume],
    mut granted: impl FnMut(&Wanted) -> bool,
) -> Plan {
    let mut plan = Plan::default();
    let by_name: BTreeMap<String, &Wanted> = wanted.iter().map(|it| (name(it, node), it)).collect();
    let of = |attachment: &VolumeAttachment| attachment.metadata.name.clone().unwrap_or_default();
    for (name, wanted) in &by_name {
        if !attachments.iter().any(|attachment| of(attachment) == *name) && granted(wanted) {
            plan.create.push(attachment(name, wanted, node));
        }
    }
    for attachment in attachments {
        let is_attached = attachment.status.as_ref().is_some_and(|status| status.attached);
        let is_leaving = attachment.metadata.deletion_timestamp.is_some();
        match by_name.get(&of(attachment)) {
            Some(wanted) if is_attached && !is_leaving => plan.has.push((*wanted).clone()),
            None if !is_leaving && is_own(attachment) => {
                plan.delete.push(of(attachment));
            }
            _ => {}
        }
    }
    let said = |wanted: &Wanted| says.iter().any(|it| it.name == wanted.unique_name());
    plan.new = plan.has.iter().filter(|it| !said(it)).cloned().collect();
    let mut names: Vec<String> = plan.has.iter().map(Wanted::unique_name).collect();
    names.sort();
    let attached: Vec<AttachedVolume> =
        names.into_iter().map(|name| AttachedVolume { name, device_path: String::new() }).collect();
    plan.attached = (attached != says).then_some(attached);
    plan
}

/// Whether this controller has made an attachment.
pub(super) fn is_own(attachment: &VolumeAttachment) -> bool {
    attachment.metadata.name.as_deref().is_some_and(|name| name.starts_with(PREFIX))
}

fn attachment(name: &str, wanted: &Wanted, node: &str) -> VolumeAttachment {
    VolumeAttachment {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: VolumeAttachmentSpec {
            attacher: wanted.driver.clone(),
            node_name: node.to_owned(),
            source: VolumeAttachmentSource {
                persistent_volume_name: Some(wanted.volume.clone()),
                ..VolumeAttachmentSource::default()
            },
        },
        status: None,
    }
}

/// The name of an attachment, as Kubernetes makes it: a hash of what it is about.
pub(super) fn name(wanted: &Wanted, node: &str) -> String {
    let about = format!("{}{}{node}", wanted.handle, wanted.driver);
    let hash = ring::digest::digest(&ring::digest::SHA256, about.as_bytes());
    hash.as_ref().iter().fold(PREFIX.to_owned(), |name, byte| format!("{name}{byte:02x}"))
}
