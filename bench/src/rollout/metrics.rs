//! What is reported, in which order, and what Steersman wants to reach.

use crate::report::{Metric, lower};

/// The name of the rival in reports.
pub(super) const RIVAL: &str = "kubernetes";
const FIFTYFOLD: &[(&str, f64)] = &[(RIVAL, 50.0)];

/// How much the whole control plane may take with a thousand Pods, in megabytes.
pub(super) const MEMORY_MAX: f64 = 150.0;
/// The line that this is about.
pub(super) const MEMORY: &str = "resident with 1,000 Pods";

/// Every metric there is.
pub(super) const METRICS: &[Metric] = &[
    lower("Deployment of 100, available", "ms", FIFTYFOLD),
    lower("Deployment of 100, rolling update", "ms", FIFTYFOLD),
    lower("Deployment of 100, scaled to 0", "ms", FIFTYFOLD),
    lower("Deployment of 100, deleted, foreground", "ms", FIFTYFOLD),
    lower("Deployment of 100, deleted, background", "ms", FIFTYFOLD),
    lower("Deployment of 100, deleted, orphan", "ms", FIFTYFOLD),
    lower("Deployment of 1,000, available", "ms", FIFTYFOLD),
    lower("Deployment of 1,000, rolling update", "ms", FIFTYFOLD),
    lower("Deployment of 1,000, scaled to 0", "ms", FIFTYFOLD),
    lower("StatefulSet of 50, in order", "ms", FIFTYFOLD),
    lower("Job of 1,000, 100 at once", "ms", FIFTYFOLD),
    lower(MEMORY, "MB", &[]),
    lower("resident, peak", "MB", &[]),
    lower("resident, in the end", "MB", &[]),
];
