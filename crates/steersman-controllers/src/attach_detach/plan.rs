//! What is to be attached to a node, and what is.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{AttachedVolume, PersistentVolume};
use k8s_openapi::api::storage::v1::{
    VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::detach::Detach;

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

/// What is to be done for a node, which gets of what is not attached to it what it is `granted`. Of
/// what nobody there needs any more, that stays which is judged so.
pub(super) fn plan(
    node: &str,
    wanted: &[Wanted],
    attachments: &[Arc<VolumeAttachment>],
    says: &[AttachedVolume],
    judged: &BTreeMap<String, Detach>,
    mut granted: impl FnMut(&Wanted) -> bool,
) -> Plan {
    let mut plan = Plan::default();
    let by_name = by_name(node, wanted);
    for (name, wanted) in &by_name {
        if !attachments.iter().any(|attachment| name_of(attachment) == *name) && granted(wanted) {
            plan.create.push(attachment(name, wanted, node));
        }
    }
    for attachment in attachments {
        if let Some(wanted) = by_name.get(name_of(attachment))
            && is_attached(attachment)
            && !is_leaving(attachment)
        {
            plan.has.push((*wanted).clone());
        }
    }
    for attachment in unneeded(node, wanted, attachments) {
        match judged.get(name_of(attachment)) {
            Some(Detach::Wait(volume)) if is_attached(attachment) => plan.has.push(volume.clone()),
            Some(Detach::Wait(_)) => {}
            _ => plan.delete.push(name_of(attachment).to_owned()),
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

/// What a node wants, by the names of the attachments.
fn by_name<'w>(node: &str, wanted: &'w [Wanted]) -> BTreeMap<String, &'w Wanted> {
    wanted.iter().map(|it| (name(it, node), it)).collect()
}

/// The attachments of a node, made by this controller, that nobody there needs any more.
pub(super) fn unneeded<'a>(
    node: &str,
    wanted: &[Wanted],
    attachments: &'a [Arc<VolumeAttachment>],
) -> Vec<&'a VolumeAttachment> {
    let by_name = by_name(node, wanted);
    let is_unneeded = |it: &&VolumeAttachment| {
        is_own(it) && !is_leaving(it) && !by_name.contains_key(name_of(it))
    };
    attachments.iter().map(AsRef::as_ref).filter(is_unneeded).collect()
}

/// The name of an attachment that has one.
pub(super) fn name_of(attachment: &VolumeAttachment) -> &str {
    attachment.metadata.name.as_deref().unwrap_or_default()
}

fn is_attached(attachment: &VolumeAttachment) -> bool {
    attachment.status.as_ref().is_some_and(|status| status.attached)
}

fn is_leaving(attachment: &VolumeAttachment) -> bool {
    attachment.metadata.deletion_timestamp.is_some()
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
