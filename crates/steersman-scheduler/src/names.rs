//! Names that others know the scheduler by.

/// The name in `spec.schedulerName` of the Pods that the scheduler of a cluster cares for.
pub const SCHEDULER_NAME: &str = "default-scheduler";

/// The name under which a manager runs a scheduler, and of which its writes are.
pub const PART: &str = "kube-scheduler";
