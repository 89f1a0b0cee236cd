//! What is counted about elections, under client-go's names.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::Families;

/// Which election.
type Named = [(&'static str, String); 1];

/// The families of all elections.
#[derive(Clone, Default)]
pub(crate) struct ElectionFamilies {
    master_status: Family<Named, Gauge>,
    slowpath: Family<Named, Counter>,
}

/// The metrics of one election.
pub(super) struct ElectionMetrics {
    /// 1 while this process leads, otherwise 0.
    pub(super) master_status: Gauge,
    /// Renewals that had to look at the Lease first.
    pub(super) slowpath: Counter,
}

impl Families for ElectionFamilies {
    fn register(registry: &mut Registry) -> Self {
        let families = Self::default();
        registry.register(
            "leader_election_master_status",
            "Whether this process is the leader: 1, or on standby: 0",
            families.master_status.clone(),
        );
        registry.register(
            "leader_election_slowpath",
            "Renewals of the leader lease that had to read it first",
            families.slowpath.clone(),
        );
        families
    }
}

impl ElectionFamilies {
    /// The metrics of the election of this name.
    pub(super) fn of(&self, name: &str) -> ElectionMetrics {
        let labels = [("name", name.to_owned())];
        let metrics = ElectionMetrics {
            master_status: self.master_status.get_or_create(&labels).clone(),
            slowpath: self.slowpath.get_or_create(&labels).clone(),
        };
        metrics.master_status.set(0);
        metrics
    }
}
