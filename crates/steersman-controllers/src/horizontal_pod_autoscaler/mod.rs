//! The HorizontalPodAutoscaler controller: gives a target as many replicas as its metrics ask for.
//!
//! Every fifteen seconds, whatever happens in between, it reads the [scale](target) of a target and
//! the [metrics](metrics_api) that its autoscaler names. Each metric [proposes](proposal) a
//! [number of replicas](replicas); the largest proposal is [planned](plan), after it was
//! [stabilised and limited](limits) by what was recommended and done [before](history). What was
//! before is kept in [memory] only, as in Kubernetes; [what it does](metrics) is counted.

mod history;
mod limits;
mod memory;
mod metrics;
mod metrics_api;
mod plan;
mod proposal;
mod quantities;
mod reconcile;
mod replicas;
mod request;
mod settings;
mod status;
mod target;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Pod;
use steersman::workqueue::ExponentialBackoff;
use steersman::{Context, Controller, Metrics};

use memory::Memory;
use metrics::AutoscalerMetrics;
pub use settings::AutoscalerSettings;
use target::Kinds;

/// What all reconciles share.
struct Shared {
    memory: Memory,
    kinds: Kinds,
    metrics: AutoscalerMetrics,
    settings: AutoscalerSettings,
}

/// The HorizontalPodAutoscaler controller.
pub(crate) fn controller(metrics: &Metrics, settings: AutoscalerSettings) -> Controller {
    let (memory, kinds) = (Memory::new(settings), Kinds::default());
    let shared = Arc::new(Shared { memory, kinds, metrics: metrics.families(), settings });
    let observed = Arc::clone(&shared);
    Controller::of::<HorizontalPodAutoscaler>()
        .named("horizontal-pod-autoscaler-controller")
        .observes(move |event| {
            observed.memory.observe(event);
            observed.metrics.observe(event);
        })
        .reads::<Pod>()
        .concurrency(5)
        // What failed is tried again when it would have been its turn anyway.
        .rate_limit(ExponentialBackoff::new(settings.sync_period, settings.sync_period))
        .reconcile(
            move |autoscaler: Arc<HorizontalPodAutoscaler>,
                  ctx: Context<HorizontalPodAutoscaler>| {
                let shared = Arc::clone(&shared);
                async move { reconcile::reconcile(&autoscaler, &ctx, &shared).await }
            },
        )
}
