//! The attach/detach controller: a VolumeAttachment for each CSI volume that a Pod on a node uses, and
//! in the Node's status those that are attached. [`detach`] says when a volume that nobody needs any
//! more is taken from a node.
//!
//! Whoever runs the driver would attach them. On simulated nodes there is nothing to attach to, so
//! [`mod@attacher`] says that it is done.

mod attacher;
mod detach;
mod holders;
mod metrics;
mod plan;
mod reconcile;
#[cfg(test)]
mod tests;
mod wanted;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSIDriver, VolumeAttachment};
use steersman::informer::Event;
use steersman::volumes::claims_of;
use steersman::{Controller, Metrics, ObjectKey};

use detach::Unneeded;
use holders::Holders;
use metrics::VolumeMetrics;

/// The controller.
pub(crate) const NAME: &str = "persistentvolume-attach-detach-controller";
/// What stands for the drivers of volumes.
pub(crate) const ATTACHER: &str = "simulated-csi-attacher";
/// The index of attachments by the names of their volumes.
const BY_VOLUME: &str = "by-volume";
/// Who tells of Pods.
const COMPONENT: &str = "attachdetach-controller";

/// The attach/detach controller, and what stands for the drivers.
pub(crate) fn controllers(metrics: &Metrics) -> [Controller; 2] {
    [controller(metrics), attacher()]
}

/// Looks at a node when a Pod with claims, or what is attached, changes there: nodes without any cost
/// nothing.
fn controller(metrics: &Metrics) -> Controller {
    let metrics: VolumeMetrics = metrics.families();
    let forgetful = metrics.clone();
    let holders = Holders::default();
    let (waiting, leaving) = (holders.clone(), holders.clone());
    let unneeded = Unneeded::default();
    let left = unneeded.clone();
    Controller::of::<Node>()
        .named(NAME)
        .when(|_: &Event<Node>| false)
        .watches(node_of_pod)
        .watches(move |attachment: &VolumeAttachment| {
            let nodes = waiting.waiting_for(attachment).into_iter();
            nodes
                .chain([attachment.spec.node_name.clone()])
                .map(ObjectKey::from)
                .collect::<Vec<_>>()
        })
        .reads::<PersistentVolumeClaim>()
        .reads::<PersistentVolume>()
        .reads::<CSIDriver>()
        .on_deleted(move |gone, _| {
            forgetful.forget(&gone.key.name);
            leaving.forget(&gone.key.name);
            left.forget(&gone.key.name, gone.last.as_deref());
            std::future::ready(Ok(()))
        })
        .reconcile(reconcile::Attachments { metrics, holders, unneeded })
}

fn attacher() -> Controller {
    Controller::of::<VolumeAttachment>()
        .named(ATTACHER)
        .only(attacher::concerns)
        .index(BY_VOLUME, |attachment: &VolumeAttachment| {
            attachment.spec.source.persistent_volume_name.clone()
        })
        .watches_indexed(BY_VOLUME, |volume: &PersistentVolume| volume.metadata.name.clone())
        .reconcile(attacher::reconcile)
}

/// The node of a Pod that has claims.
fn node_of_pod(pod: &Pod) -> Option<ObjectKey> {
    let node = pod.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())?;
    claims_of(pod).next().map(|_| ObjectKey::from(node))
}
