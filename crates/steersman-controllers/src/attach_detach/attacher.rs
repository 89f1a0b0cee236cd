//! Says that a volume is attached, as the driver of a real one would.

use std::sync::Arc;

use k8s_openapi::api::storage::v1::VolumeAttachment;
use steersman::{Context, Next, Result};

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
    let mut attached = VolumeAttachment::clone(&attachment);
    attached.status.get_or_insert_default().attached = true;
    ctx.live().update_status(&attached).await?;
    Ok(Next::Settled)
}
