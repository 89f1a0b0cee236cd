//! Three controllers that let go of what is deleted once nobody uses it: claims that no Pod uses,
//! volumes that are not bound, classes of volume attributes that nobody names.
//!
//! The admission plug-in `StorageObjectInUseProtection` holds each by a finalizer from the beginning;
//! what was made without it gets its finalizer here.

mod classes;
mod finalizer;
mod pods;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttributesClass;
use steersman::{Context, Controller, ListOptions, Next, Result};

use crate::claims::{claim_keys, pods_using};
use finalizer::{Step, concerns, step, with, without};

/// Holds claims.
const CLAIMS: &str = "kubernetes.io/pvc-protection";
/// Holds volumes.
const VOLUMES: &str = "kubernetes.io/pv-protection";
/// Holds classes of volume attributes.
const CLASSES: &str = "kubernetes.io/vac-protection";

/// The controllers.
pub(crate) fn controllers() -> [Controller; 3] {
    [claims(), volumes(), classes()]
}

fn claims() -> Controller {
    Controller::of::<PersistentVolumeClaim>()
        .named("persistentvolumeclaim-protection-controller")
        .only(|claim| concerns(&claim.metadata, CLAIMS))
        .watches(claim_keys)
        .reconcile(protect_claim)
}

fn volumes() -> Controller {
    Controller::of::<PersistentVolume>()
        .named("persistentvolume-protection-controller")
        .only(|volume| concerns(&volume.metadata, VOLUMES))
        .reconcile(protect_volume)
}

fn classes() -> Controller {
    Controller::of::<VolumeAttributesClass>()
        .named("volumeattributesclass-protection-controller")
        .only(|class| concerns(&class.metadata, CLASSES))
        .watches(classes::of_claim)
        .watches(classes::of_volume)
        .reconcile(protect_class)
}

async fn protect_claim(
    claim: Arc<PersistentVolumeClaim>,
    ctx: Context<PersistentVolumeClaim>,
) -> Result<Next> {
    let uses = |pod: &Pod| pods::uses(pod, &claim);
    let metadata = match step(&claim.metadata, CLAIMS) {
        Step::Settled => return Ok(Next::Settled),
        Step::Add => with(&claim.metadata, CLAIMS),
        Step::RemoveIfUnused => {
            let cached = pods_using(&ctx.cache::<Pod>()?, ctx.key());
            if cached.iter().any(|pod| uses(pod)) || any_live(&ctx, uses).await? {
                return Ok(Next::Settled);
            }
            without(&claim.metadata, CLAIMS)
        }
    };
    let changed = PersistentVolumeClaim { metadata, ..PersistentVolumeClaim::clone(&claim) };
    ctx.update(&changed).await?;
    Ok(Next::Settled)
}

/// Whether the server knows of a Pod of which the cache does not tell yet.
async fn any_live(
    ctx: &Context<PersistentVolumeClaim>,
    uses: impl Fn(&Pod) -> bool,
) -> Result<bool> {
    let namespace = ctx.key().namespace.as_deref().unwrap_or_default();
    let pods: Vec<Pod> = ctx.live().list(&ListOptions::namespace(namespace)).await?;
    Ok(pods.iter().any(uses))
}

async fn protect_volume(
    volume: Arc<PersistentVolume>,
    ctx: Context<PersistentVolume>,
) -> Result<Next> {
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    let metadata = match step(&volume.metadata, VOLUMES) {
        Step::Add => with(&volume.metadata, VOLUMES),
        Step::RemoveIfUnused if phase != Some("Bound") => without(&volume.metadata, VOLUMES),
        Step::Settled | Step::RemoveIfUnused => return Ok(Next::Settled),
    };
    let changed = PersistentVolume { metadata, ..PersistentVolume::clone(&volume) };
    ctx.update(&changed).await?;
    Ok(Next::Settled)
}

async fn protect_class(
    class: Arc<VolumeAttributesClass>,
    ctx: Context<VolumeAttributesClass>,
) -> Result<Next> {
    let metadata = match step(&class.metadata, CLASSES) {
        Step::Settled => return Ok(Next::Settled),
        Step::Add => with(&class.metadata, CLASSES),
        Step::RemoveIfUnused => {
            let name = ctx.key().name.to_string();
            let volumes = ctx.cache::<PersistentVolume>()?.list();
            let claims = ctx.cache::<PersistentVolumeClaim>()?.list();
            let is_used = volumes.iter().any(|it| classes::of_volume(it).contains(&name))
                || claims.iter().any(|it| classes::of_claim(it).contains(&name));
            if is_used {
                return Ok(Next::Settled);
            }
            without(&class.metadata, CLASSES)
        }
    };
    let changed = VolumeAttributesClass { metadata, ..VolumeAttributesClass::clone(&class) };
    ctx.update(&changed).await?;
    Ok(Next::Settled)
}
