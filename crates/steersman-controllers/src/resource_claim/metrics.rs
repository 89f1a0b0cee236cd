//! What the ResourceClaim controller counts, under Kubernetes' names.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use steersman::metrics::Families;

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// How many claims there are, and were made.
#[derive(Clone)]
pub(super) struct ClaimMetrics {
    creates: Family<Labels<2>, Counter>,
    claims: Family<Labels<3>, Gauge>,
}

/// What is told of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sort {
    pub(super) is_allocated: bool,
    pub(super) has_admin_access: bool,
    pub(super) source: &'static str,
}

impl Families for ClaimMetrics {
    /// Under these names with `_total`, which the encoder appends to counters.
    fn register(registry: &mut Registry) -> Self {
        let metrics = Self { creates: Family::default(), claims: Family::default() };
        let registry = registry.sub_registry_with_prefix("resourceclaim_controller");
        let it = metrics.clone();
        let help = "Number of ResourceClaims creation requests, categorized by creation status and \
                    admin access";
        registry.register("creates", help, it.creates);
        let help = "Number of ResourceClaims, categorized by allocation status, admin access, and \
                    source. Source can be 'resource_claim_template' (created from a template), \
                    'extended_resource' (extended resources), or empty (manually created by a user)";
        registry.register("resource_claims", help, it.claims);
        metrics
    }
}

impl ClaimMetrics {
    /// A claim was to be made.
    pub(super) fn created(&self, has_admin_access: bool, succeeded: bool) {
        let status = if succeeded { "success" } else { "failure" };
        let labels = [("status", status), ("admin_access", shown(has_admin_access))];
        self.creates.get_or_create(&labels).inc();
    }

    /// There is a claim of this sort more.
    pub(super) fn more(&self, sort: Sort) {
        self.claims.get_or_create(&labels(sort)).inc();
    }

    /// There is a claim of this sort less.
    pub(super) fn less(&self, sort: Sort) {
        self.claims.get_or_create(&labels(sort)).dec();
    }
}

fn labels(sort: Sort) -> Labels<3> {
    [
        ("allocated", shown(sort.is_allocated)),
        ("admin_access", shown(sort.has_admin_access)),
        ("source", sort.source),
    ]
}

fn shown(is: bool) -> &'static str {
    if is { "true" } else { "false" }
}
