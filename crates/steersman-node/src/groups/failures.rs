//! When nodes of a group are lost, and come back: once, or again and again.

use std::time::Duration;

use futures::future::join_all;
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};

use super::{NodeGroup, optional_time, time};
use crate::outages::Outages;

/// Nothing is heard of some nodes from a time on, counted from the start of the cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeFailure {
    /// The numbers of the nodes; all of the group if there are none.
    #[serde(default)]
    pub nodes: Vec<usize>,
    /// Instead, so many from the first on.
    #[serde(default)]
    pub first: Option<usize>,
    /// When they are lost.
    #[serde(deserialize_with = "time")]
    pub lost_at: Duration,
    /// When they come back, if they do.
    #[serde(default, deserialize_with = "optional_time")]
    pub back_at: Option<Duration>,
    /// How long after that it happens again: they flap.
    #[serde(default, deserialize_with = "optional_time")]
    pub every: Option<Duration>,
}

impl NodeFailure {
    pub(super) fn check(&self, count: usize) -> Result<(), String> {
        if let Some(number) = self.nodes.iter().find(|number| **number >= count) {
            return Err(format!("there is no node {number} that could be lost"));
        }
        match (self.back_at, self.every) {
            (Some(back), _) if back <= self.lost_at => {
                Err("nodes are back before they are lost".to_owned())
            }
            (None, Some(_)) => Err("nodes that are never back cannot be lost again".to_owned()),
            (Some(back), Some(every)) if every < back.saturating_sub(self.lost_at) => {
                Err("nodes are lost again before they are back".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn nodes_of(&self, group: &NodeGroup) -> Vec<String> {
        let chosen: Vec<usize> = match (&*self.nodes, self.first) {
            ([], first) => group.numbers().take(first.unwrap_or(usize::MAX)).collect(),
            (nodes, _) => nodes.to_vec(),
        };
        chosen.into_iter().map(|number| group.name(number)).collect()
    }

    /// Lets nodes be lost and come back as it says.
    async fn run(&self, nodes: &[String], outages: &Outages, mut start: Instant) {
        loop {
            sleep_until(start + self.lost_at).await;
            tracing::info!(nodes = nodes.len(), "simulated nodes are lost");
            nodes.iter().for_each(|name| outages.named(name).lost());
            let Some(back_at) = self.back_at else { return };
            sleep_until(start + back_at).await;
            tracing::info!(nodes = nodes.len(), "simulated nodes are back");
            nodes.iter().for_each(|name| outages.named(name).back());
            let Some(every) = self.every else { return };
            start += every;
        }
    }
}

/// Lets the nodes of all groups fail as these say.
pub(crate) async fn run(groups: Vec<NodeGroup>, outages: Outages) {
    let start = Instant::now();
    let failures = groups.iter().flat_map(|group| {
        let (outages, all) = (&outages, group.failures.iter());
        all.map(move |failure| async move {
            failure.run(&failure.nodes_of(group), outages, start).await;
        })
    });
    join_all(failures).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nodes_are_lost_come_back_and_flap() {
        let text = "
- count: 3
  prefix: n-
  failures:
  - {nodes: [0], lostAt: 10s}
  - {first: 1, lostAt: 1h}
  - {nodes: [1], lostAt: 10s, backAt: 20s, every: 30s}
";
        let outages = Outages::default();
        let groups = NodeGroup::parse(text).unwrap();
        tokio::spawn(run(groups, outages.clone()));
        let is_lost = |number: usize| outages.since(&format!("n-{number}")).is_some();
        let mut seen = Vec::new();
        for second in 0..60 {
            tokio::time::advance(Duration::from_secs(1)).await;
            tokio::task::yield_now().await;
            if second % 10 == 4 {
                seen.push([is_lost(0), is_lost(1), is_lost(2)]);
            }
        }
        let expected = [
            [false, false, false],
            [true, true, false],
            [true, false, false],
            [true, false, false],
            [true, true, false],
            [true, false, false],
        ];
        assert_eq!(seen, expected);
    }
}
