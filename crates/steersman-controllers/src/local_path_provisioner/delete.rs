//! Takes away one volume that nobody needs any more.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{DeleteParams, Preconditions};
use steersman::{Context, Next, Result};

/// Deletes a volume that is over.
pub(super) async fn reconcile(
    volume: Arc<PersistentVolume>,
    ctx: Context<PersistentVolume>,
) -> Result<Next> {
    let uid = volume.metadata.uid.clone();
    let params = DeleteParams {
        preconditions: Some(Preconditions { uid, resource_version: None }),
        ..DeleteParams::default()
    };
    ctx.delete_with(&volume, &params).await?;
    Ok(Next::Settled)
}
