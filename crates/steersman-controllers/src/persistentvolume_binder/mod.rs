//! The persistent volume binder: finds volumes for claims, binds both to each other, asks for volumes
//! that there are not yet, and gives back those whose claims are gone.
//!
//! A claim and a volume each have a queue of their own. [`claim`] and [`volume`] decide, [`bind`] says
//! what objects that are bound look like, and each write is one after which the next reconcile of
//! either goes on.

mod bind;
mod bind_claim;
mod claim;
mod collector;
mod metrics;
mod provision;
mod reclaim;
mod release_volume;
#[cfg(test)]
mod tests;
mod volume;

use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use steersman::volumes::{claim_class, is_fully_bound, volume_class, volume_name};
use steersman::{Controller, Metrics, ObjectKey};

use crate::claims::claim_keys;
use bind_claim::Claims;
use collector::Collector;

/// The part of the binder that looks after volumes, with a queue of its own.
pub(crate) const VOLUMES: &str = "persistentvolume-reclaim-controller";
/// Who tells of claims and volumes.
const COMPONENT: &str = "persistentvolume-controller";
/// How long until what waits is looked at again, and people are told again why: Events expire.
const AGAIN: Duration = Duration::from_secs(15);
/// Among how many volumes a claim is looked for that often, since each look reads all of them. With more
/// it waits longer.
const SEARCHED: u32 = 256;
/// Claims that may want a volume that is free, by their class.
const UNBOUND: &str = "unbound-by-class";
/// Claims by the volume that they name.
const NAMING: &str = "by-volume-name";

/// Binds claims.
pub(crate) fn claims(metrics: &Metrics) -> Controller {
    let collector: Collector = metrics.families();
    Controller::of::<PersistentVolumeClaim>()
        .named("persistentvolume-binder-controller")
        .observes(move |event| collector.claim(event))
        .index(UNBOUND, |claim: &PersistentVolumeClaim| {
            let is_unbound = !is_fully_bound(claim) && volume_name(claim).is_empty();
            is_unbound.then(|| claim_class(claim).to_owned())
        })
        .index(NAMING, |claim: &PersistentVolumeClaim| {
            Some(volume_name(claim).to_owned()).filter(|name| !name.is_empty())
        })
        .watches_indexed(NAMING, |volume: &PersistentVolume| volume.metadata.name.clone())
        .watches_indexed(UNBOUND, |volume: &PersistentVolume| {
            let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
            let is_free = claim_of(volume).is_none() && phase == Some("Available");
            is_free.then(|| volume_class(volume).to_owned())
        })
        .watches(|volume: &PersistentVolume| claim_of(volume))
        .watches_indexed(UNBOUND, |class: &StorageClass| {
            // Claims that name no class may get this one.
            [class.metadata.name.clone().unwrap_or_default(), String::new()]
        })
        .watches(|pod: &Pod| if is_unschedulable(pod) { claim_keys(pod) } else { Vec::new() })
        .reconcile(Claims { metrics: metrics.families() })
}

/// Looks after volumes.
pub(crate) fn volumes(metrics: &Metrics) -> Controller {
    let collector: Collector = metrics.families();
    Controller::of::<PersistentVolume>()
        .named(VOLUMES)
        .observes(move |event| collector.volume(event))
        .watches_referenced::<PersistentVolumeClaim, _>(|volume: &PersistentVolume| {
            claim_of(volume)
        })
        .reads::<Pod>()
        .reconcile(release_volume::reconcile)
}

/// The claim that a volume is bound to or reserved for.
fn claim_of(volume: &PersistentVolume) -> Option<ObjectKey> {
    let claim = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(ObjectKey::namespaced(claim.namespace.as_deref()?, claim.name.as_deref()?))
}

/// Whether a Pod waits for a node that it does not find.
fn is_unschedulable(pod: &Pod) -> bool {
    let has_node = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    !has_node && conditions.any(|it| it.type_ == "PodScheduled" && it.status == "False")
}
