//! Mirrors one Endpoints object.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::DeleteParams;
use kube::core::Selector;
use steersman::events::{NewEvent, Reference};
use steersman::{Client, Context, Error, ListOptions, Next, ObjectKey, Result};

use super::MANAGER;
use super::plan::{MAX, Plan, is_mirrored, plan};
use crate::namespace::namespace_terminating;
use crate::service::{MANAGED_BY, SERVICE_NAME};

/// Who tells of Endpoints.
const COMPONENT: &str = "endpoint-slice-mirroring-controller";

/// Mirrors Endpoints, or takes away what mirrors them if that is not wanted.
pub(super) async fn reconcile(endpoints: Arc<Endpoints>, ctx: Context<Endpoints>) -> Result<Next> {
    let service = ctx.get::<Service>(&ctx.key().name)?;
    let namespace = ctx.key().namespace.as_deref();
    let mut slices = ctx.cache::<EndpointSlice>()?.by_labels(namespace, &mirrors(&ctx.key().name));
    slices.retain(|slice| slice.metadata.deletion_timestamp.is_none());
    slices.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let plan = match is_mirrored(&endpoints, service.as_deref()) {
        true => plan(&endpoints, &slices),
        false => Plan { delete: slices, ..Plan::default() },
    };
    tell_of_skipped(&plan, &ctx);
    write(plan, &ctx).await
}

/// The labels of slices that mirror Endpoints of this name.
fn mirrors(name: &str) -> Selector {
    let labels = [(SERVICE_NAME, name), (MANAGED_BY, MANAGER)];
    labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

async fn write(plan: Plan, ctx: &Context<Endpoints>) -> Result<Next> {
    let failed = |what: &str, error: Error| {
        Error::message(format!(
            "failed to {what}EndpointSlice for Endpoints {}: {error}",
            ctx.key()
        ))
    };
    for slice in plan.create {
        match ctx.create(slice).await {
            Ok(_) => {}
            Err(error) if namespace_terminating(&error) => return Ok(Next::Settled),
            Err(error) => return Err(failed("create ", error)),
        }
    }
    for slice in &plan.update {
        let name = slice.metadata.name.as_deref().unwrap_or_default();
        let updated = ctx.update(slice).await;
        updated.map_err(|error| failed(&format!("update {name} "), error))?;
    }
    for slice in &plan.delete {
        let name = slice.metadata.name.as_deref().unwrap_or_default();
        let deleted = ctx.delete(slice).await;
        deleted.map_err(|error| failed(&format!("delete {name} "), error))?;
    }
    Ok(Next::Settled)
}

fn tell_of_skipped(plan: &Plan, ctx: &Context<Endpoints>) {
    let tell = |reason: &str, note: String| {
        let event = NewEvent::warning(reason).action("Sync").note(note);
        ctx.recorder().reporting(COMPONENT).event(Reference::of(&**ctx.object()), event);
    };
    let Plan { invalid, skipped, .. } = plan;
    if *invalid > 0 {
        let note =
            format!("Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices");
        tell("InvalidIPAddress", note);
    }
    if skipped > invalid {
        let note = format!(
            "A max of {MAX} addresses can be mirrored to EndpointSlices per Endpoints subset. \
             {skipped} addresses were skipped"
        );
        tell("TooManyAddressesToMirror", note);
    }
}

/// Deletes what mirrors Endpoints that are gone.
pub(super) async fn delete_all(endpoints: ObjectKey, client: Client) -> Result<()> {
    let namespace = endpoints.namespace.as_deref().unwrap_or_default();
    let labels = mirrors(&endpoints.name).to_string();
    let slices: Vec<EndpointSlice> =
        client.list(&ListOptions::namespace(namespace).labels(labels)).await?;
    for slice in slices {
        client.delete::<EndpointSlice>(ObjectKey::of(&slice), &DeleteParams::default()).await?;
    }
    Ok(())
}
