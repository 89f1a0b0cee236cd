//! Plays the scenarios on both sides, in rounds: each does its next steps, then all is quiet, then
//! everything is read.

use std::time::Duration;

use futures::future::{join_all, try_join_all};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::scenario::{Scenario, Step};
use super::snapshot::{REFUSED, Resource, Snapshot, World, resources};
use crate::api::Api;

/// Nothing moves if nothing was written for so long.
const QUIET: Duration = Duration::from_secs(3);
/// How long to wait for that.
const PATIENCE: Duration = Duration::from_secs(25);
/// After so many looks a namespace should be usable, though the controllers may have just started.
const LOOKS: usize = 300;
/// How long it is until the next look.
const LOOKED_EVERY: Duration = Duration::from_millis(200);

/// One of the two clusters.
pub(super) struct Side {
    api: Api,
    resources: Vec<Resource>,
}

/// Plays the scenarios on both sides at once.
pub(super) async fn both(
    sides: &[Side; 2],
    scenarios: &[Scenario],
) -> Result<[Vec<Snapshot>; 2], String> {
    let [theirs, ours] = sides;
    let (theirs, ours) = tokio::try_join!(theirs.play(scenarios), ours.play(scenarios))?;
    Ok([theirs, ours])
}

impl Side {
    pub(super) async fn of(api: Api) -> Result<Self, String> {
        let resources = resources(&api).await?;
        Ok(Self { api, resources })
    }

    async fn play(&self, scenarios: &[Scenario]) -> Result<Vec<Snapshot>, String> {
        try_join_all(scenarios.iter().map(|scenario| self.namespace(scenario))).await?;
        self.quiet().await?;
        let mut snapshots = Vec::new();
        for round in 0.. {
            let steps = scenarios.iter().map(|scenario| (scenario, scenario.rounds().nth(round)));
            let steps: Vec<_> = steps.filter_map(|(s, steps)| Some((s, steps?))).collect();
            if steps.is_empty() {
                break;
            }
            let refused = join_all(steps.iter().map(|(_, steps)| self.steps(steps))).await;
            self.quiet().await?;
            let world = World::read(&self.api, &self.resources).await?;
            for ((scenario, _), refused) in steps.iter().zip(refused) {
                let mut snapshot = world.of(&scenario.name, round);
                snapshot.objects.extend(refused);
                snapshots.push(snapshot);
            }
        }
        Ok(snapshots)
    }

    /// Makes the namespace of a scenario, until Pods can be made in it.
    async fn namespace(&self, scenario: &Scenario) -> Result<(), String> {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": scenario.name}});
        self.api.create(&namespace).await?;
        let account = format!("/api/v1/namespaces/{}/serviceaccounts/default", scenario.name);
        for _ in 0..LOOKS {
            if self.api.get(&account).await?.is_some() {
                return Ok(());
            }
            sleep(LOOKED_EVERY).await;
        }
        Err(format!("namespace {} gets no ServiceAccount: do controllers run?", scenario.name))
    }

    /// Does these steps; what is refused is told, so that it is compared as well.
    async fn steps(&self, steps: &[Step]) -> Vec<Value> {
        let mut refused = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            if let Err(why) = self.step(step).await {
                let name = format!("step {}", number + 1);
                refused.push(json!({"kind": REFUSED, "metadata": {"name": name}, "why": why}));
            }
            sleep(step.lasts()).await;
        }
        refused
    }

    async fn step(&self, step: &Step) -> Result<(), String> {
        match step {
            Step::Create(object) => self.api.create(object).await.map(drop),
            Step::Patch(object) => self.api.patch(object, "").await.map(drop),
            Step::PatchStatus(object) => self.api.patch(object, "/status").await.map(drop),
            Step::Delete(delete) => {
                let options = match &delete.propagation {
                    Some(policy) => json!({"propagationPolicy": policy}),
                    None => json!({}),
                };
                self.api.delete(&delete.object, &options).await
            }
            Step::Wait(_) | Step::Settle => Ok(()),
        }
    }

    /// Waits until nothing is written any more, but not for ever: some controllers never rest.
    async fn quiet(&self) -> Result<(), String> {
        let begun = Instant::now();
        let mut since = begun;
        let mut revision = Value::Null;
        while since.elapsed() < QUIET && begun.elapsed() < PATIENCE {
            sleep(LOOKED_EVERY).await;
            let list = self.api.get("/api/v1/namespaces?limit=1").await?.unwrap_or_default();
            let now = &list["metadata"]["resourceVersion"];
            if *now != revision {
                revision = now.clone();
                since = Instant::now();
            }
        }
        Ok(())
    }
}
