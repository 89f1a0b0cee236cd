//! What the node IPAM controller counts, under Kubernetes' names.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use steersman::metrics::Families;

use crate::cidr::Cidr;

type Label = [(&'static str, String); 1];

/// How much of a range is taken.
#[derive(Clone)]
pub(super) struct RangeMetrics {
    allocations: Family<Label, Counter>,
    releases: Family<Label, Counter>,
    size: Family<Label, Gauge>,
    usage: Family<Label, Gauge<f64, AtomicU64>>,
    tries: Family<Label, Histogram>,
}

impl Families for RangeMetrics {
    /// Under these names with `_total`, which the encoder appends to counters. One has a slip of the
    /// pen, there as here.
    fn register(registry: &mut Registry) -> Self {
        let tries: fn() -> Histogram = || Histogram::new(exponential_buckets(1.0, 5.0, 5));
        let metrics = Self {
            allocations: Family::default(),
            releases: Family::default(),
            size: Family::default(),
            usage: Family::default(),
            tries: Family::new_with_constructor(tries),
        };
        let registry = registry.sub_registry_with_prefix("node_ipam_controller");
        let it = metrics.clone();
        let help = "Counter measuring total number of CIDR allocations";
        registry.register("cidrset_cidrs_allocations", help, it.allocations);
        let help = "Counter measuring total number of CIDR releases";
        registry.register("cidrset_cidrs_releases", help, it.releases);
        let help = "Maximum number of CIDRs that can be allocated";
        registry.register("cirdset_max_cidrs", help, it.size);
        let help = "Gauge measuring percentage of allocated CIDRs";
        registry.register("cidrset_usage_cidrs", help, it.usage);
        let help = "Number of endpoints added on each Service sync";
        registry.register("cidrset_allocation_tries_per_request", help, it.tries);
        metrics
    }
}

impl RangeMetrics {
    /// A range has so many parts.
    pub(super) fn size(&self, cidr: &Cidr, parts: u32) {
        self.size.get_or_create(&label(cidr)).set(parts.into());
    }

    /// A part was chosen after so many were found to be taken.
    pub(super) fn allocated(&self, cidr: &Cidr, tried: usize) {
        self.occupied(cidr);
        let tried = u32::try_from(tried).unwrap_or(u32::MAX);
        self.tries.get_or_create(&label(cidr)).observe(tried.into());
    }

    /// A part is taken.
    pub(super) fn occupied(&self, cidr: &Cidr) {
        self.allocations.get_or_create(&label(cidr)).inc();
    }

    /// A part is free again.
    pub(super) fn released(&self, cidr: &Cidr) {
        self.releases.get_or_create(&label(cidr)).inc();
    }

    /// So many of the parts are taken.
    pub(super) fn used(&self, cidr: &Cidr, taken: usize, parts: u32) {
        let taken = u32::try_from(taken).unwrap_or(u32::MAX);
        self.usage.get_or_create(&label(cidr)).set(f64::from(taken) / f64::from(parts.max(1)));
    }
}

fn label(cidr: &Cidr) -> Label {
    [("clusterCIDR", cidr.to_string())]
}
