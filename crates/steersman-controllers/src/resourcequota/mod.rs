//! The resource quota controller: keeps what quotas say is used true.
//!
//! Whoever admits writes charges quotas for them; nobody gives back what is deleted, ends its work
//! or shrinks. This controller counts: what is limited is taken over from a quota's spec, what is
//! used from [tallies](tally) of the objects in its namespace. It counts when a quota changes, when
//! objects [go or use something else](monitors), and every five minutes.
//!
//! Nothing is watched but quotas until one asks for a resource, and no longer than one does.

mod document;
mod interest;
mod monitors;
mod plan;
mod reconcile;
mod tally;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::ResourceQuota;
use steersman::informer::Event;
use steersman::{Context, Controller, source};
use tokio::sync::mpsc;

use monitors::Monitors;

/// Quotas waiting to be counted between monitors and the queue.
const WOKEN_MAX: usize = 64;

/// The resource quota controller.
pub(crate) fn controller() -> Controller {
    let (wake, woken) = mpsc::channel(WOKEN_MAX);
    let monitors = Arc::new(Monitors::new(wake));
    let observed = Arc::clone(&monitors);
    Controller::of::<ResourceQuota>()
        .named("resourcequota-controller")
        .observes(move |event| observed.observe(event))
        .when(is_about_limits)
        .source(source::Source::channel(woken).named("replenishment"))
        .concurrency(5)
        .reconcile(move |quota: Arc<ResourceQuota>, ctx: Context<ResourceQuota>| {
            let monitors = Arc::clone(&monitors);
            async move { reconcile::reconcile(&quota, &ctx, &monitors).await }
        })
}

/// Whether a quota limits something else than before. What is used changes with every object that
/// is created, and is right then.
fn is_about_limits(event: &Event<ResourceQuota>) -> bool {
    match event {
        Event::Updated { old, new } => match (old.object(), new.object()) {
            (Some(old), Some(new)) => plan::limits_differ(&old, &new),
            _ => true,
        },
        _ => true,
    }
}
