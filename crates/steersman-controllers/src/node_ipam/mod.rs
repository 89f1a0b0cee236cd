//! The node IPAM controller: gives each node a part of the cluster's range for the addresses of its
//! Pods, or of both where there is one of each family, unless it has one.
//!
//! It runs only where somebody says which range that is, as with `--allocate-node-cidrs` and
//! `--cluster-cidr` in Kubernetes.

mod metrics;
mod ranges;
mod reconcile;

use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Node;
use steersman::informer::Event;
use steersman::{Controller, Metrics};

use crate::cidr::Cidr;
use metrics::RangeMetrics;
use ranges::Ranges;
use reconcile::Allocator;

/// Where nodes get the addresses of their Pods from, of one family. With ranges of both, a node gets a
/// part of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeCidrs {
    /// The range of the cluster, as by `--cluster-cidr`.
    pub cluster_cidr: Cidr,
    /// How long the prefix of a node's part is, as by `--node-cidr-mask-size`; 24 unless said
    /// otherwise, or 64 of a range of the sixth version.
    pub mask_size: u32,
    /// What no node gets, as by `--service-cluster-ip-range`.
    pub service_cidr: Option<Cidr>,
}

impl NodeCidrs {
    /// Parts of the usual size of a range.
    pub fn of(cluster_cidr: Cidr) -> Self {
        let mask_size = if cluster_cidr.is_ipv4() { 24 } else { 64 };
        Self { cluster_cidr, mask_size, service_cidr: None }
    }
}

/// The node IPAM controller.
pub(crate) fn controller(metrics: &Metrics, cidrs: &[NodeCidrs]) -> Controller {
    let metrics: RangeMetrics = metrics.families();
    let ranges = cidrs.iter().map(|cidrs| Ranges::new(*cidrs, metrics.clone()));
    let ranges = Arc::new(Mutex::new(ranges.collect::<Vec<_>>()));
    let observed = Arc::clone(&ranges);
    Controller::of::<Node>()
        .named("node-ipam-controller")
        .observes(move |event| {
            let Some(node) = event.object().object() else { return };
            let mut ranges = observed.lock().unwrap_or_else(PoisonError::into_inner);
            for cidr in pod_cidrs(&node) {
                for range in &mut *ranges {
                    match event {
                        Event::Deleted { .. } => range.release(&cidr),
                        _ => range.occupy(&cidr),
                    }
                }
            }
        })
        .only(|node| pod_cidrs(node).is_empty() && node.metadata.deletion_timestamp.is_none())
        .reconcile(Allocator { ranges })
}

/// The ranges that a Node has.
fn pod_cidrs(node: &Node) -> Vec<Cidr> {
    let cidrs = node.spec.as_ref().and_then(|spec| spec.pod_cidrs.as_ref());
    cidrs.into_iter().flatten().filter_map(|text| text.parse().ok()).collect()
}
