//! What the attach/detach controller tells of volumes, under Kubernetes' names.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use steersman::metrics::Families;

use super::wanted::Wanted;

type Labels = [(&'static str, String); 2];

/// How many volumes there are on each node, by driver. Clones share them.
#[derive(Clone)]
pub(super) struct VolumeMetrics {
    in_use: Family<Labels, Gauge>,
    total: Family<Labels, Gauge>,
    // Kubernetes' name of these does not end in `_total`, as that of a counter would here.
    forced: Family<[(&'static str, &'static str); 1], Gauge>,
    known: Arc<Mutex<HashMap<String, Counts>>>,
}

/// How many volumes of a node there are, by driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Those that Pods use, each as often as they do.
    in_use: BTreeMap<String, i64>,
    desired: BTreeMap<String, i64>,
    actual: BTreeMap<String, i64>,
}

impl Families for VolumeMetrics {
    fn register(registry: &mut Registry) -> Self {
        let (in_use, total, forced) = (Family::default(), Family::default(), Family::default());
        let metrics = Self { in_use, total, forced, known: Arc::default() };
        let it = metrics.clone();
        let help = "Measure number of volumes in use";
        registry.register("storage_count_attachable_volumes_in_use", help, it.in_use);
        let help = "Number of volumes in A/D Controller";
        registry.register("attachdetach_controller_total_volumes", help, it.total);
        let help = "Number of times the A/D Controller performed a forced detach";
        let name = "attach_detach_controller_attachdetach_controller_forced_detaches";
        registry.register(name, help, it.forced);
        metrics
    }
}

impl VolumeMetrics {
    /// Pods of a node use these volumes, one or more of them several times, and these are attached.
    pub(super) fn node<'a>(
        &self,
        node: &str,
        used: impl IntoIterator<Item = &'a Wanted>,
        attached: impl IntoIterator<Item = &'a Wanted>,
    ) {
        let used: Vec<&Wanted> = used.into_iter().collect();
        let mut distinct = used.clone();
        distinct.sort_by_key(|wanted| wanted.unique_name());
        distinct.dedup();
        let counts = Counts {
            in_use: by_driver(used),
            desired: by_driver(distinct),
            actual: by_driver(attached),
        };
        self.replace(node, counts);
    }

    /// A volume was taken from a node for this reason, whether that was safe or not.
    pub(super) fn forced(&self, reason: &'static str) {
        self.forced.get_or_create(&[("reason", reason)]).inc();
    }

    /// A node is gone.
    pub(super) fn forget(&self, node: &str) {
        self.replace(node, Counts::default());
    }

    fn replace(&self, node: &str, counts: Counts) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let old = match counts == Counts::default() {
            true => known.remove(node),
            false => known.insert(node.to_owned(), counts.clone()),
        };
        drop(known);
        for (counts, sign) in [(old.unwrap_or_default(), -1), (counts, 1)] {
            for (plugin, count) in counts.in_use {
                let labels = [("node", node.to_owned()), ("volume_plugin", plugin)];
                if self.in_use.get_or_create(&labels).inc_by(sign * count) + sign * count == 0 {
                    self.in_use.remove(&labels);
                }
            }
            for (state, counts) in [("desired", counts.desired), ("actual", counts.actual)] {
                for (plugin, count) in counts {
                    let state = format!("{state}_state_of_world");
                    let labels = [("plugin_name", plugin), ("state", state)];
                    self.total.get_or_create(&labels).inc_by(sign * count);
                }
            }
        }
    }
}

fn by_driver<'a>(volumes: impl IntoIterator<Item = &'a Wanted>) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for volume in volumes {
        *counts.entry(format!("kubernetes.io/csi:{}", volume.driver)).or_default() += 1;
    }
    counts
}
