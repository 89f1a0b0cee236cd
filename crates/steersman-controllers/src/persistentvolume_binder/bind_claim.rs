//! Does what is planned for one claim.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use steersman::events::Reference;
use steersman::volumes::{
    STORAGE_PROVISIONER, STORAGE_PROVISIONER_BETA, bound_to_claim, volume_name,
};
use steersman::{Context, Error, Next, Reconciler, Result};

use super::bind::{bound_claim, claim_status, in_phase};
use super::claim::{ClaimStep, Note, Surroundings, plan};
use super::metrics::BinderMetrics;
use super::provision::waiting_for;
use super::{AGAIN, COMPONENT, SEARCHED};
use crate::claims::pods_using;
use crate::pod::is_terminal;

/// Binds claims.
pub(super) struct Claims {
    pub(super) metrics: BinderMetrics,
}

impl Reconciler<PersistentVolumeClaim> for Claims {
    async fn reconcile(
        &self,
        claim: Arc<PersistentVolumeClaim>,
        ctx: Context<PersistentVolumeClaim>,
    ) -> Result<Next> {
        match step(&claim, &ctx)? {
            ClaimStep::Bind(volume) => bind(&claim, &volume, &ctx).await?,
            ClaimStep::AssignClass(class) => {
                let assigned = assign_class(&claim, class, &ctx).await;
                self.metrics.class_assigned(assigned.is_ok());
                assigned?;
            }
            ClaimStep::Provision { provisioner } => {
                provision(&claim, &provisioner, &ctx).await?;
                return again(&ctx);
            }
            ClaimStep::CannotProvision(note) => {
                tell(&ctx, &note);
                return again(&ctx);
            }
            ClaimStep::Pending(None) => write_status(&claim, "Pending", None, &ctx).await?,
            ClaimStep::Pending(Some(note)) => {
                tell(&ctx, &note);
                write_status(&claim, "Pending", None, &ctx).await?;
                return again(&ctx);
            }
            ClaimStep::Lost(note) => {
                let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
                if phase != Some("Lost") {
                    write_status(&claim, "Lost", None, &ctx).await?;
                    tell(&ctx, &note);
                }
            }
            ClaimStep::Misbound(note) => {
                tell(&ctx, &note);
                let (key, volume) = (ctx.key(), volume_name(&claim));
                return Err(Error::message(format!(
                    "invalid binding of claim \"{key}\" to volume {volume:?}: volume already claimed"
                )));
            }
        }
        Ok(Next::Settled)
    }
}

/// When a claim that waits is looked at again.
fn again(ctx: &Context<PersistentVolumeClaim>) -> Result<Next> {
    let volumes = u32::try_from(ctx.cache::<PersistentVolume>()?.len()).unwrap_or(u32::MAX);
    Ok(Next::After(AGAIN.saturating_mul(1 + volumes / SEARCHED)))
}

fn step(claim: &PersistentVolumeClaim, ctx: &Context<PersistentVolumeClaim>) -> Result<ClaimStep> {
    let volumes = ctx.cache::<PersistentVolume>()?.list();
    let classes = ctx.cache::<StorageClass>()?.list();
    let pods = ctx.cache::<Pod>()?;
    let waiting_pods = || {
        let waits = |pod: &&Arc<Pod>| {
            let has_node = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
            !has_node && !is_terminal(pod)
        };
        let using = pods_using(&pods, ctx.key());
        using.iter().filter(waits).filter_map(|pod| pod.metadata.name.clone()).collect()
    };
    let around = Surroundings { volumes: &volumes, classes: &classes, waiting_pods: &waiting_pods };
    Ok(plan(claim, &around))
}

/// Binds both to each other, the volume first: what is begun, the next reconcile ends.
async fn bind(
    claim: &PersistentVolumeClaim,
    volume: &Arc<PersistentVolume>,
    ctx: &Context<PersistentVolumeClaim>,
) -> Result<()> {
    let mut volume = PersistentVolume::clone(volume);
    if let Some(bound) = bound_to_claim(&volume, claim) {
        volume = ctx.update(&bound).await?;
    }
    if let Some(bound) = in_phase(&volume, "Bound", "") {
        volume = ctx.live().update_status(&bound).await?;
    }
    let claim = match bound_claim(claim, &volume) {
        Some(bound) => ctx.update(&bound).await?,
        None => claim.clone(),
    };
    write_status(&claim, "Bound", Some(&volume), ctx).await
}

async fn assign_class(
    claim: &PersistentVolumeClaim,
    class: String,
    ctx: &Context<PersistentVolumeClaim>,
) -> Result<()> {
    let mut assigned = claim.clone();
    assigned.spec.get_or_insert_default().storage_class_name = Some(class);
    ctx.update(&assigned).await.map(drop)
}

/// Asks for a volume: whoever is named by the annotation makes one.
async fn provision(
    claim: &PersistentVolumeClaim,
    provisioner: &str,
    ctx: &Context<PersistentVolumeClaim>,
) -> Result<()> {
    let mut asking = claim.clone();
    let annotations = asking.metadata.annotations.get_or_insert_default();
    for name in [STORAGE_PROVISIONER_BETA, STORAGE_PROVISIONER] {
        annotations.insert(name.to_owned(), provisioner.to_owned());
    }
    if asking != *claim {
        ctx.update(&asking).await?;
    }
    tell(ctx, &Note::external(waiting_for(provisioner)));
    Ok(())
}

async fn write_status(
    claim: &PersistentVolumeClaim,
    phase: &str,
    volume: Option<&PersistentVolume>,
    ctx: &Context<PersistentVolumeClaim>,
) -> Result<()> {
    let Some(status) = claim_status(claim, phase, volume) else { return Ok(()) };
    let changed = PersistentVolumeClaim { status: Some(status), ..claim.clone() };
    ctx.live().update_status(&changed).await.map(drop)
}

fn tell(ctx: &Context<PersistentVolumeClaim>, note: &Note) {
    let recorder = ctx.recorder().reporting(COMPONENT);
    recorder.event(Reference::of(&**ctx.object()), note.event());
}
