//! Endpoints whose Service is gone.
//!
//! When a Service goes, its Endpoints go, whoever wrote them. What was missed because nobody looked
//! then, [`controller`] finds, which needs no Service to look at; it touches only what the Endpoints
//! controller wrote, since somebody may write Endpoints before their Service.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Endpoints, Service};
use kube::api::DeleteParams;
use steersman::{Client, Context, Controller, Next, ObjectKey, Result};

use super::plan::is_ours;

/// A part of the Endpoints controller with a queue of its own.
pub(crate) const NAME: &str = "leftover-endpoints-controller";

/// Deletes what the Endpoints controller wrote for Services that are gone.
pub(crate) fn controller() -> Controller {
    Controller::of::<Endpoints>()
        .named(NAME)
        .only(is_ours)
        .watches(|service: &Service| [ObjectKey::of_meta(&service.metadata)])
        .reconcile(reconcile)
}

async fn reconcile(endpoints: Arc<Endpoints>, ctx: Context<Endpoints>) -> Result<Next> {
    let name = endpoints.metadata.name.as_deref().unwrap_or_default();
    if ctx.get::<Service>(name)?.is_some() {
        return Ok(Next::Settled);
    }
    // The cache may be late: a Service may be newer than its Endpoints.
    if ctx.live().get::<Service>(ctx.key().clone()).await?.is_none() {
        ctx.delete(&endpoints).await?;
    }
    Ok(Next::Settled)
}

/// Deletes the Endpoints of a Service that is gone.
pub(super) async fn delete(service: ObjectKey, client: Client) -> Result<()> {
    client.delete::<Endpoints>(service, &DeleteParams::default()).await.map(drop)
}
