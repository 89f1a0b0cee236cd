//! Says that a volume is attached, as the driver of a real one would. Of a volume that it does not
//! have, a driver would not say so.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use steersman::{Context, Next, ObjectKey, Result};

/// Whether a volume is still to be attached.
pub(super) fn concerns(attachment: &VolumeAttachment) -> bool {
    let is_attached = attachment.status.as_ref().is_some_and(|status| status.attached);
    !is_attached && attachment.metadata.deletion_timestamp.is_none()
}

/// Attaches one volume.
pub(super) async fn reconcile(
    attachment: Arc<VolumeAttachment>,
    ctx: Context<VolumeAttachment>,
) -> Result<Next> {
    let volume = attachment.spec.source.persistent_volume_name.as_deref().unwrap_or_default();
    let volume = ctx.cache::<PersistentVolume>()?.get(&ObjectKey::from(volume));
    let csi = volume.as_ref().and_then(|volume| volume.spec.as_ref()?.csi.as_ref());
    if csi.is_none_or(|csi| csi.driver != attachment.spec.attacher) {
        return Ok(Next::Settled);
    }
    let mut attached = VolumeAttachment::clone(&attachment);
    attached.status.get_or_insert_default().attached = true;
    ctx.live().update_status(&attached).await?;
    Ok(Next::Settled)
}
