//! The search for a node in which extenders have a say.

use std::sync::Arc;

use super::{Extenders, Filtered, NAME};
use crate::framework::{
    Cycle, Failure, Feasible, FitError, NodeInfo, Profile, Refusal, top_of_heap,
};

impl Extenders {
    /// Finds the best node for a Pod, as [`Profile::schedule`] does.
    pub(crate) async fn schedule(
        &self,
        profile: &Profile,
        cycle: &mut Cycle<'_>,
        start: &mut usize,
    ) -> Result<Arc<NodeInfo>, Failure> {
        if cycle.snapshot.is_empty() {
            return Err(Failure::NoNodes);
        }
        let mut found = profile.feasible(cycle, start)?;
        let is_nominated = found.nodes.len() == 1
            && cycle.info.nominated_node.as_deref() == Some(found.nodes[0].name());
        let mut nodes = match self.filter(cycle, &mut found).await {
            Err(_) if is_nominated => Vec::new(), // that node is only tried first
            filtered => filtered?,
        };
        if nodes.is_empty() && is_nominated {
            found = profile.search(cycle, start, found)?;
            nodes = self.filter(cycle, &mut found).await?;
        }
        match nodes.len() {
            0 => Err(Failure::Fit(found.error)),
            1 => Ok(nodes.remove(0)),
            _ => {
                let mut totals = profile.scores(cycle, &nodes).map_err(Failure::Error)?;
                self.score(cycle, &nodes, &mut totals).await;
                Ok(nodes.swap_remove(top_of_heap(&totals)))
            }
        }
    }

    /// The nodes that all extenders leave.
    async fn filter(
        &self,
        cycle: &Cycle<'_>,
        found: &mut Feasible,
    ) -> Result<Vec<Arc<NodeInfo>>, Failure> {
        let mut nodes = found.nodes.clone();
        for extender in &self.0 {
            if nodes.is_empty() {
                break;
            }
            if extender.configuration.filter_verb.is_empty() || !extender.is_interested(cycle.pod) {
                continue;
            }
            match extender.filter(cycle.pod, &nodes).await {
                Ok(filtered) => {
                    refuse(cycle, &mut found.error, &filtered);
                    nodes = filtered.nodes;
                }
                Err(why) if extender.configuration.ignorable => extender.skipped(&why),
                Err(why) => return Err(Failure::Error(why)),
            }
        }
        if nodes.len() != found.nodes.len() {
            // It cannot say what would help, so everything may.
            found.error.plugins.insert(NAME);
        }
        Ok(nodes)
    }

    /// Adds what extenders score; who fails to has no say.
    async fn score(&self, cycle: &Cycle<'_>, nodes: &[Arc<NodeInfo>], totals: &mut [i64]) {
        let asked = self.0.iter().filter(|it| {
            !it.configuration.prioritize_verb.is_empty() && it.is_interested(cycle.pod)
        });
        let asked = asked.map(|extender| extender.prioritize(cycle.pod, nodes));
        for scores in futures::future::join_all(asked).await {
            match scores {
                Ok(scores) => {
                    for (node, total) in nodes.iter().zip(&mut *totals) {
                        let score = scores.get(node.name()).copied().unwrap_or_default();
                        *total = total.saturating_add(score);
                    }
                }
                Err(why) => tracing::debug!(why, "extender gives no scores"),
            }
        }
    }
}

/// Notes why an extender refuses nodes.
fn refuse(cycle: &Cycle<'_>, error: &mut FitError, filtered: &Filtered) {
    let failed =
        filtered.failed.iter().map(|(node, why)| (node, Refusal::unschedulable(why.clone())));
    let unresolvable = filtered.unresolvable.iter();
    let unresolvable = unresolvable.map(|(node, why)| (node, Refusal::unresolvable(why.clone())));
    for (node, refusal) in failed.chain(unresolvable) {
        if let Some(place) = cycle.snapshot.place(node) {
            error.refusals.set(place, refusal);
        }
    }
}
