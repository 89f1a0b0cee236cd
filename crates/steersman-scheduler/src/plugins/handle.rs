//! What plug-ins of all profiles share, and what they are given when the scheduler begins.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use steersman::Client;

use super::allocations::Allocations;
use super::chosen_volumes::ChosenVolumes;
use super::device_selectors::Selectors;
use super::under_way::UnderWay;
use crate::framework::Lister;
use crate::metrics::SchedulerMetrics;

/// What plug-ins of all profiles share.
#[derive(Default)]
pub(crate) struct Handle {
    /// Pods whose victims are being deleted.
    pub(crate) preempting: UnderWay,
    /// Devices that were taken, and are not seen in their claims yet.
    pub(crate) allocations: Allocations,
    /// Expressions that select devices, ready to be asked.
    pub(crate) selectors: Arc<Selectors>,
    /// Volumes that were chosen, and are not seen bound yet.
    pub(crate) chosen_volumes: ChosenVolumes,
    /// Whether somebody beside plug-ins has a say in who has to go.
    pub(crate) lists_candidates: AtomicBool,
    cluster: OnceLock<Cluster>,
    metrics: OnceLock<SchedulerMetrics>,
}

/// The cluster, once there is one.
struct Cluster {
    lister: Arc<dyn Lister>,
    client: Option<Client>,
}

impl Handle {
    /// From now on there is a cluster; only tests have none to write to.
    pub(crate) fn begin(&self, lister: Arc<dyn Lister>, client: Option<Client>) {
        let _ = self.cluster.set(Cluster { lister, client });
    }

    /// From now on it is told what is done.
    pub(crate) fn measure(&self, metrics: SchedulerMetrics) {
        let _ = self.metrics.set(metrics);
    }

    /// Where that is told, if somebody wants to know.
    pub(crate) fn metrics(&self) -> Option<&SchedulerMetrics> {
        self.metrics.get()
    }

    /// Objects as the caches have them.
    pub(crate) fn lister(&self) -> Option<&Arc<dyn Lister>> {
        self.cluster.get().map(|cluster| &cluster.lister)
    }

    /// Writes.
    pub(crate) fn client(&self) -> Option<&Client> {
        self.cluster.get()?.client.as_ref()
    }
}
