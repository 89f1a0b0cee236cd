//! Mirrors one Endpoints object.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::DeleteParams;
use kube::core::Selector;
use steersman::events::{NewEvent, Reference};
use steersman::{Client, Context, Error, ListOptions, Next, ObjectKey, Reconciler, Result};
use tokio::time::Instant;

use super::MANAGER;
use super::metrics::Meters;
use super::plan::{MAX, Plan, is_mirrored, plan};
use crate::namespace::namespace_terminating;
use crate::service::{MANAGED_BY, SERVICE_NAME};

/// Who tells of Endpoints.
const COMPONENT: &str = "endpoint-slice-mirroring-controller";

/// Mirrors Endpoints.
pub(super) struct Mirror {
    pub(super) meters: Meters,
}

impl Reconciler<Endpoints> for Mirror {
    async fn reconcile(&self, endpoints: Arc<Endpoints>, ctx: Context<Endpoints>) -> Result<Next> {
        let started = Instant::now();
        let mirrored = self.mirror(&endpoints, &ctx).await;
        self.meters.looked(started.elapsed());
        mirrored.map(|()| Next::Settled)
    }
}

impl Mirror {
    /// Mirrors Endpoints, or takes away what mirrors them if that is not wanted.
    async fn mirror(&self, endpoints: &Endpoints, ctx: &Context<Endpoints>) -> Result<()> {
        let key = ctx.key();
        let service = ctx.get::<Service>(&key.name)?;
        let namespace = key.namespace.as_deref();
        let mut slices = ctx.cache::<EndpointSlice>()?.by_labels(namespace, &mirrors(&key.name));
        slices.retain(|slice| slice.metadata.deletion_timestamp.is_none());
        slices.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        if !is_mirrored(endpoints, service.as_deref()) {
            self.meters.forget(key);
            return write(Plan { delete: slices, ..Plan::default() }, |_| {}, ctx).await;
        }
        let plan = plan(endpoints, &slices);
        self.meters.planned(key, &plan);
        tell_of_skipped(&plan, ctx);
        write(plan, |operation| self.meters.wrote(operation), ctx).await
    }
}

/// The labels of slices that mirror Endpoints of this name.
fn mirrors(name: &str) -> Selector {
    let labels = [(SERVICE_NAME, name), (MANAGED_BY, MANAGER)];
    labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Writes what is planned, and says so of each write.
async fn write(plan: Plan, wrote: impl Fn(&'static str), ctx: &Context<Endpoints>) -> Result<()> {
    let failed = |what: &str, error: Error| {
        Error::message(format!(
            "failed to {what}EndpointSlice for Endpoints {}: {error}",
            ctx.key()
        ))
    };
    for slice in plan.create {
        match ctx.create(slice).await {
            Ok(_) => wrote("create"),
            Err(error) if namespace_terminating(&error) => return Ok(()),
            Err(error) => return Err(failed("create ", error)),
        }
    }
    for slice in &plan.update {
        let name = slice.metadata.name.as_deref().unwrap_or_default();
        let updated = ctx.update(slice).await;
        updated.map_err(|error| failed(&format!("update {name} "), error))?;
        wrote("update");
    }
    for slice in &plan.delete {
        let name = slice.metadata.name.as_deref().unwrap_or_default();
        let deleted = ctx.delete(slice).await;
        deleted.map_err(|error| failed(&format!("delete {name} "), error))?;
        wrote("delete");
    }
    Ok(())
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
