//! Lets the volume of one claim grow, with the Events of who does so elsewhere: an external resizer,
//! and the kubelet of the node where a Pod uses it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use steersman::events::{NewEvent, Reference};
use steersman::volumes::volume_name;
use steersman::{Context, Next, ObjectKey, Result, clock};

use super::resize_plan::{Step, plan, runs};
use crate::claims::pods_using;

/// Who tells that a volume grows.
const COMPONENT: &str = "external-resizer-steersman.dev/local-path";

/// Goes as far as it can, one write after the other.
pub(super) async fn reconcile(
    claim: Arc<PersistentVolumeClaim>,
    ctx: Context<PersistentVolumeClaim>,
) -> Result<Next> {
    let name = volume_name(&claim).to_owned();
    let Some(volume) = ctx.cache::<PersistentVolume>()?.get(&ObjectKey::from(name.as_str())) else {
        return Ok(Next::Settled);
    };
    let using = pods_using(&ctx.cache::<Pod>()?, ctx.key());
    let user = using.iter().find(|pod| runs(pod));
    let mut claim = PersistentVolumeClaim::clone(&claim);
    let mut volume = PersistentVolume::clone(&volume);
    loop {
        match plan(&claim, &volume, user.is_some(), clock::now_time()) {
            Step::Settled => return Ok(Next::Settled),
            Step::Begin(status) => {
                let note = format!("External resizer is resizing volume {name}");
                tell(&ctx, NewEvent::normal("Resizing").note(note));
                claim.status = Some(*status);
                claim = ctx.live().update_status(&claim).await?;
            }
            Step::Grow(larger) => volume = ctx.update(&*larger).await?,
            Step::Await(status) => {
                claim.status = Some(*status);
                claim = ctx.live().update_status(&claim).await?;
                let note = "Require file system resize of volume on node";
                tell(&ctx, NewEvent::normal("FileSystemResizeRequired").note(note));
            }
            Step::Finish(status) => {
                claim.status = Some(*status);
                claim = ctx.live().update_status(&claim).await?;
                user.iter().for_each(|user| tell_of_node(&name, user, &ctx));
            }
        }
    }
}

fn tell(ctx: &Context<PersistentVolumeClaim>, event: NewEvent) {
    let recorder = ctx.recorder().reporting(COMPONENT);
    recorder.event(Reference::of(&**ctx.object()), event);
}

/// What the kubelet says when the file system has grown, of the Pod and of the claim.
fn tell_of_node(volume: &str, pod: &Arc<Pod>, ctx: &Context<PersistentVolumeClaim>) {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    let note = format!("MountVolume.NodeExpandVolume succeeded for volume {volume:?} {node}");
    let recorder = ctx.recorder().reporting("kubelet").instance(node).field_manager("kubelet");
    let event = || NewEvent::normal("FileSystemResizeSuccessful").note(note.clone());
    recorder.event(Reference::of(&**pod), event());
    recorder.event(Reference::of(&**ctx.object()), event());
}
