//! Better are nodes whose resources are taken evenly with the Pod.

use std::sync::Arc;

use super::strategy::Weighted;
use super::{Taken, counts_devices, look_at_devices, taken};
use crate::framework::{Cycle, Interest, NodeInfo, Plugin, Points, PreScore, Refusal, SCORE_MAX};
use crate::plugins::handle::Handle;

/// Compares the shares of several resources that are taken.
pub(crate) struct BalancedAllocation {
    /// Which resources; their weights do not matter.
    pub(crate) resources: Vec<Weighted>,
    /// Knows devices.
    pub(crate) handle: Arc<Handle>,
}

impl Default for BalancedAllocation {
    fn default() -> Self {
        let weighted = |name: &str| Weighted { name: name.to_owned(), weight: 1 };
        Self { resources: vec![weighted("cpu"), weighted("memory")], handle: Arc::default() }
    }
}

impl Plugin for BalancedAllocation {
    fn name(&self) -> &'static str {
        "NodeResourcesBalancedAllocation"
    }

    fn points(&self) -> Points {
        Points::PRE_SCORE | Points::SCORE
    }

    fn interests(&self) -> &[Interest] {
        &[]
    }

    fn pre_score(&self, cycle: &mut Cycle<'_>, _: &[Arc<NodeInfo>]) -> Result<PreScore, Refusal> {
        if counts_devices(&self.resources, cycle) {
            look_at_devices(cycle, &self.handle);
        }
        let asked = &cycle.info.requests.asked;
        Ok(match self.resources.iter().any(|it| asked.get(&it.name) != 0) {
            true => PreScore::Score,
            false => PreScore::Skip,
        })
    }

    /// Which devices are taken is not known of a node.
    fn scores_locally(&self, cycle: &Cycle<'_>) -> bool {
        !counts_devices(&self.resources, cycle)
    }

    fn score(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
        let asked = &cycle.info.requests.asked;
        let devices = cycle.state.get();
        let resources = self.resources.iter();
        let resources = resources.filter_map(|Weighted { name, .. }| {
            taken(name, &node.requested, asked.get(name), node, devices)
        });
        let resources: Vec<Taken> = resources.collect();
        let with = evenness(&resources, |it| it.after);
        let without = evenness(&resources, |it| it.before);
        SCORE_MAX / 2 + (SCORE_MAX / 2 + with - without) / 2
    }
}

/// The more the shares that are taken differ, the less.
fn evenness(resources: &[Taken], of: impl Fn(&Taken) -> i64) -> i64 {
    let share = |it: &Taken| (of(it) as f64 / it.allocatable as f64).min(1.0);
    let shares: Vec<f64> = resources.iter().map(share).collect();
    let deviation = match shares[..] {
        [] | [_] => 0.0,
        [a, b] => ((a - b) / 2.0).abs(),
        _ => {
            let count = shares.len() as f64;
            let mean = shares.iter().sum::<f64>() / count;
            let squares: f64 = shares.iter().map(|it| (it - mean) * (it - mean)).sum();
            (squares / count).sqrt()
        }
    };
    ((1.0 - deviation) * SCORE_MAX as f64) as i64
}
