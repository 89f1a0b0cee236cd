//! What is to be attached to a node, and what is.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::AttachedVolume;
use k8s_openapi::api::storage::v1::{
    VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::detach::Detach;
use super::wanted::{Wanted, is_own, name, name_of};

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

fn is_attached(attachment: &VolumeAttachment) -> bool {
    attachment.status.as_ref().is_some_and(|status| status.attached)
}

fn is_leaving(attachment: &VolumeAttachment) -> bool {
    attachment.metadata.deletion_timestamp.is_some()
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
