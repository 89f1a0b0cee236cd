//! Makes a volume for one claim.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use steersman::events::{NewEvent, Reference};
use steersman::volumes::{SELECTED_NODE, claim_class};
use steersman::{Context, Next, ObjectKey, Result};

use super::PROVISIONER;
use super::plan::{Step, plan};

/// Makes the volume that a claim asks for. Its name is that of the claim, so that there is never a
/// second one.
pub(super) async fn reconcile(
    claim: Arc<PersistentVolumeClaim>,
    ctx: Context<PersistentVolumeClaim>,
) -> Result<Next> {
    let class = ctx.cache::<StorageClass>()?.get(&ObjectKey::from(claim_class(&claim)));
    let nodes = ctx.cache::<Node>()?;
    let node = |name: &str| nodes.get(&ObjectKey::from(name)).map(|node| Node::clone(&node));
    match plan(&claim, class.as_deref(), node) {
        Step::Wait => {}
        Step::Create(volume) => create(&volume, &ctx).await?,
        Step::Fail(why) => tell(&ctx, NewEvent::warning("ProvisioningFailed").note(why)),
        Step::Reschedule(why) => {
            tell(&ctx, NewEvent::warning("ProvisioningFailed").note(why));
            let mut anew = PersistentVolumeClaim::clone(&claim);
            anew.metadata.annotations.get_or_insert_default().remove(SELECTED_NODE);
            ctx.update(&anew).await?;
        }
    }
    Ok(Next::Settled)
}

async fn create(volume: &PersistentVolume, ctx: &Context<PersistentVolumeClaim>) -> Result<()> {
    let note = format!("External provisioner is provisioning volume for claim \"{}\"", ctx.key());
    match ctx.live().create(volume).await {
        Ok(_) => {}
        Err(error) if error.is_already_exists() => return Ok(()),
        Err(error) => {
            let class = claim_class(ctx.object());
            let note = format!("failed to provision volume with StorageClass {class:?}: {error}");
            tell(ctx, NewEvent::warning("ProvisioningFailed").note(note));
            return Err(error);
        }
    }
    tell(ctx, NewEvent::normal("Provisioning").note(note));
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let note = format!("Successfully provisioned volume {name}");
    tell(ctx, NewEvent::normal("ProvisioningSucceeded").note(note));
    Ok(())
}

fn tell(ctx: &Context<PersistentVolumeClaim>, event: NewEvent) {
    let recorder = ctx.recorder().reporting(PROVISIONER);
    recorder.event(Reference::of(&**ctx.object()), event);
}
