//! What the plug-in `PodSecurity` has decided.

use super::instrument::Counter;
use super::registry::{Family, Registry};

/// How often Pods were judged, and how often not.
pub(crate) struct PodSecurity {
    pub(crate) evaluations: Family<7, Counter>,
    pub(crate) exemptions: Family<3, Counter>,
    pub(crate) errors: Family<4, Counter>,
}

impl PodSecurity {
    pub(super) fn registered(registry: &Registry) -> Self {
        Self {
            evaluations: registry.counters(
                "pod_security_evaluations_total",
                "[ALPHA] Number of policy evaluations that occurred, not counting ignored or exempt requests.",
                [
                    "decision",
                    "mode",
                    "policy_level",
                    "policy_version",
                    "request_operation",
                    "resource",
                    "subresource",
                ],
            ),
            exemptions: registry.counters(
                "pod_security_exemptions_total",
                "[ALPHA] Number of exempt requests, not counting ignored or out of scope requests.",
                ["request_operation", "resource", "subresource"],
            ),
            errors: registry.counters(
                "pod_security_errors_total",
                "[ALPHA] Number of errors preventing normal evaluation. Non-fatal errors may result in the latest restricted profile being used for evaluation.",
                ["fatal", "request_operation", "resource", "subresource"],
            ),
        }
    }
}
