//! What is reported, in which order, and what Steersman wants to reach.

use crate::report::{Metric, higher, lower};

/// By which factor more reconciles Steersman wants to make.
const THROUGHPUT: &[(&str, f64)] = &[("kube-runtime", 2.0), ("controller-runtime", 3.0)];
/// No later than the others.
const LATENCY: &[(&str, f64)] = &[("kube-runtime", 1.0), ("controller-runtime", 1.0)];

/// Every metric there is.
pub(super) const METRICS: &[Metric] = &[
    higher("reconciles_per_second", "/s", THROUGHPUT),
    higher("reconciles_per_second_1_worker", "/s", THROUGHPUT),
    lower("reconcile_cpu_us", "us", &[]),
    lower("reconcile_cpu_us_1_worker", "us", &[]),
    higher("event_reconciles_per_second", "/s", THROUGHPUT),
    lower("start_seconds", "s", &[]),
    higher("status_reconciles_per_second", "/s", THROUGHPUT),
    higher("status_reconciles_per_second_1_worker", "/s", THROUGHPUT),
    lower("status_cpu_us", "us", &[]),
    lower("latency_p50_ms", "ms", &[]),
    lower("latency_p99_ms", "ms", LATENCY),
    lower("status_latency_p50_ms", "ms", &[]),
    lower("status_latency_p99_ms", "ms", LATENCY),
    lower("idle_bytes", "B", &[("controller-runtime", 5.0)]),
];
