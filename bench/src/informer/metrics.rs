//! What is reported, in which order, and what Steersman wants to reach.

use crate::report::{Metric, higher, lower};

/// Every metric there is.
pub(crate) const METRICS: &[Metric] = &[
    lower("sync_seconds", "s", &[("client-go", 2.0), ("client-go-list", 2.0)]),
    lower("sync_cpu_seconds", "s", &[]),
    lower("peak_bytes", "B", &[]),
    lower("bytes_per_object", "B", &[("kube-runtime", 10.0), ("client-go", 3.0)]),
    higher("updates_per_second", "/s", &[]),
    lower("update_p50_ms", "ms", &[]),
    lower("update_p99_ms", "ms", &[("kube-runtime", 1.0), ("client-go", 1.0)]),
    lower("index_list_us", "us", &[]),
    lower("index_items_us", "us", &[]),
    lower("cold_get_ns", "ns", &[]),
    // A read that checks more than a bare map may take a little longer, not another order.
    lower("get_ns", "ns", &[("hash-map", 0.5)]),
    higher("queue_ops_per_second", "/s", &[("client-go", 3.0)]),
    higher("queue_flood_per_second", "/s", &[]),
    lower("queue_delayed_seconds", "s", &[]),
];
