//! The persistent volume expander: tells of claims that ask for more that somebody else lets their
//! volumes grow. Kubernetes itself knows no kind of volume any more that it could.

mod plan;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use steersman::events::{NewEvent, Reference};
use steersman::volumes::volume_name;
use steersman::{Context, Controller, Error, Next, ObjectKey, Result, predicate};

use plan::{asks_for_more, wants_more, wording};

/// Who tells of claims.
const COMPONENT: &str = "volume_expand";

/// The persistent volume expander.
pub(crate) fn controller() -> Controller {
    Controller::of::<PersistentVolumeClaim>()
        .named("persistentvolume-expander-controller")
        .when(predicate::funcs().on_update(asks_for_more))
        .only(wants_more)
        .reads::<PersistentVolume>()
        .reconcile(reconcile)
}

async fn reconcile(
    claim: Arc<PersistentVolumeClaim>,
    ctx: Context<PersistentVolumeClaim>,
) -> Result<Next> {
    let name = volume_name(&claim);
    let Some(volume) = ctx.cache::<PersistentVolume>()?.get(&ObjectKey::from(name)) else {
        let why = format!("persistentvolumes {name:?} not found");
        return Err(Error::message(format!("failed to get PV {name:?}: {why}")));
    };
    let claimant = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    if claimant.is_none_or(|claimant| claimant.uid != claim.metadata.uid) {
        let key = ctx.key();
        return Err(Error::message(format!(
            "persistent Volume is not bound to PVC being updated : {key}"
        )));
    }
    let recorder = ctx.recorder().reporting(COMPONENT);
    let event = NewEvent::normal("ExternalExpanding").note(wording(&volume));
    recorder.event(Reference::of(&*claim), event);
    Ok(Next::Settled)
}
