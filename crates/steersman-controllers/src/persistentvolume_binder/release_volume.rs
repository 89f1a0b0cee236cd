//! Does what is planned for one volume.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, Preconditions};
use steersman::events::{NewEvent, Reference};
use steersman::{Context, Next, ObjectKey, Result};

use super::bind::{in_phase, unbound_volume};
use super::reclaim::{Reclaim, migrated};
use super::volume::{VolumeStep, plan};
use super::{AGAIN, COMPONENT, claim_of};
use crate::claims::pods_using;
use crate::pod::is_terminal;

/// Brings one volume to where it should be.
pub(super) async fn reconcile(
    volume: Arc<PersistentVolume>,
    ctx: Context<PersistentVolume>,
) -> Result<Next> {
    let volume = match migrated(&volume) {
        Some(migrated) => Arc::new(ctx.update(&migrated).await?),
        None => volume,
    };
    let claim = find_claim(&volume, &ctx).await?;
    match plan(&volume, claim.as_deref()) {
        VolumeStep::Settled => {}
        VolumeStep::Phase(phase) => drop(bring(&volume, phase, "", &ctx).await?),
        VolumeStep::Mismatch => {
            if let Some(claim) = &claim {
                tell_mismatch(&volume, claim, &ctx);
            }
            return Ok(Next::After(AGAIN));
        }
        VolumeStep::Unbind => unbind(&volume, &ctx).await?,
        VolumeStep::Release(reclaim) => {
            let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
            let volume = match phase {
                // What went wrong stays to be seen.
                Some("Released" | "Failed") => PersistentVolume::clone(&volume),
                _ => bring(&volume, "Released", "", &ctx).await?,
            };
            return release(&volume, reclaim, claim.is_some(), &ctx).await;
        }
    }
    Ok(Next::Settled)
}

/// The claim that a volume names. The server is asked before a volume is taken to be free.
async fn find_claim(
    volume: &PersistentVolume,
    ctx: &Context<PersistentVolume>,
) -> Result<Option<Arc<PersistentVolumeClaim>>> {
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let uid = reference.and_then(|claim| claim.uid.as_ref()).filter(|uid| !uid.is_empty());
    let (Some(uid), Some(key)) = (uid, claim_of(volume)) else { return Ok(None) };
    let cached = ctx.cache::<PersistentVolumeClaim>()?.get(&key);
    if cached.as_ref().is_some_and(|claim| claim.metadata.uid.as_ref() == Some(uid)) {
        return Ok(cached);
    }
    Ok(ctx.live().get::<PersistentVolumeClaim>(key).await?.map(Arc::new))
}

async fn release(
    volume: &PersistentVolume,
    reclaim: Reclaim,
    has_claim: bool,
    ctx: &Context<PersistentVolume>,
) -> Result<Next> {
    match reclaim {
        Reclaim::Leave => {}
        Reclaim::Delete => {
            let uid = volume.metadata.uid.clone();
            let params = DeleteParams {
                preconditions: Some(Preconditions { uid, resource_version: None }),
                ..DeleteParams::default()
            };
            if volume.metadata.deletion_timestamp.is_none() {
                ctx.delete_with(volume, &params).await?;
            }
        }
        Reclaim::Recycle => {
            let users = users(volume, ctx)?;
            if !users.is_empty() && !has_claim {
                let note = format!("Volume is used by pods: {}", users.join(","));
                tell(ctx, NewEvent::normal("VolumeFailedRecycle").note(note));
                return Ok(Next::After(AGAIN));
            }
            // Nothing is on it.
            tell(ctx, NewEvent::normal("VolumeRecycled").note("Volume recycled"));
            unbind(volume, ctx).await?;
        }
        Reclaim::Fail(reason, why) => {
            if in_phase(volume, "Failed", &why).is_some() {
                bring(volume, "Failed", &why, ctx).await?;
                tell(ctx, NewEvent::warning(reason).note(why));
            }
        }
    }
    Ok(Next::Settled)
}

/// The Pods that use a volume.
fn users(volume: &PersistentVolume, ctx: &Context<PersistentVolume>) -> Result<Vec<String>> {
    let Some(claim) = claim_of(volume) else { return Ok(Vec::new()) };
    let using = pods_using(&ctx.cache::<Pod>()?, &claim);
    let using = using.iter().filter(|pod| !is_terminal(pod));
    Ok(using.map(|pod| ObjectKey::of(&**pod).to_string()).collect())
}

async fn unbind(volume: &PersistentVolume, ctx: &Context<PersistentVolume>) -> Result<()> {
    let unbound = ctx.update(&unbound_volume(volume)).await?;
    bring(&unbound, "Available", "", ctx).await.map(drop)
}

/// Writes the phase, unless it is that already.
async fn bring(
    volume: &PersistentVolume,
    phase: &str,
    message: &str,
    ctx: &Context<PersistentVolume>,
) -> Result<PersistentVolume> {
    match in_phase(volume, phase, message) {
        Some(changed) => ctx.live().update_status(&changed).await,
        None => Ok(volume.clone()),
    }
}

fn tell_mismatch(
    volume: &PersistentVolume,
    claim: &PersistentVolumeClaim,
    ctx: &Context<PersistentVolume>,
) {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let note = format!(
        "Cannot bind PersistentVolume to requested PersistentVolumeClaim {name:?} due to \
         incompatible volumeMode."
    );
    tell(ctx, NewEvent::warning("VolumeMismatch").note(note));
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let note = format!(
        "Cannot bind PersistentVolume {name:?} to requested PersistentVolumeClaim due to \
         incompatible volumeMode."
    );
    let event = NewEvent::warning("VolumeMismatch").note(note);
    ctx.recorder().reporting(COMPONENT).event(Reference::of(claim), event);
}

fn tell(ctx: &Context<PersistentVolume>, event: NewEvent) {
    let recorder = ctx.recorder().reporting(COMPONENT);
    recorder.event(Reference::of(&**ctx.object()), event);
}
