//! A set of simulated nodes: how many there are, what each offers, and how they run.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use steersman::manager::Group;
use steersman::{Client, Error, Manager, Result};
use tokio::time::{MissedTickBehavior, interval_at, sleep};

use crate::heartbeat::{Heartbeat, INTERVAL};
use crate::pods::{self, Machines};
use crate::registration::Machine;
use crate::runtime::Simulated;

/// How long to wait before a failed registration is tried again.
const REGISTER_RETRY: Duration = Duration::from_millis(100);

/// Nodes that exist only as objects: Pods bound to them run at once and cost nothing.
///
/// They are named `node-0`, `node-1` and so on, unless the prefix is changed.
#[derive(Clone, Debug)]
pub struct SimulatedNodes {
    /// How many nodes.
    pub count: usize,
    /// What their names begin with; a number follows.
    pub prefix: String,
    /// What each node offers, by resource name, as quantities.
    pub capacity: BTreeMap<String, String>,
    /// How long containers take to end when their Pod is deleted, or less if its grace period is
    /// shorter.
    pub termination: Duration,
}

impl Default for SimulatedNodes {
    /// One node with 8 cpus, 32 GiB of memory and room for 110 Pods, which end at once.
    fn default() -> Self {
        let capacity = [
            ("cpu", "8"),
            ("memory", "32Gi"),
            ("ephemeral-storage", "100Gi"),
            ("hugepages-2Mi", "0"),
            ("pods", "110"),
        ];
        Self {
            count: 1,
            prefix: "node-".into(),
            capacity: capacity.map(|(name, amount)| (name.into(), amount.into())).into(),
            termination: Duration::ZERO,
        }
    }
}

impl SimulatedNodes {
    /// So many nodes of the default size.
    pub fn new(count: usize) -> Self {
        Self { count, ..Self::default() }
    }

    /// Changes how much of a resource each node offers.
    #[must_use]
    pub fn with_capacity(mut self, resource: impl Into<String>, amount: impl Into<String>) -> Self {
        self.capacity.insert(resource.into(), amount.into());
        self
    }

    /// Lets containers take so long to end.
    #[must_use]
    pub fn with_termination(mut self, termination: Duration) -> Self {
        self.termination = termination;
        self
    }

    /// Adds these nodes to a manager.
    #[must_use]
    pub fn install(self, manager: Manager) -> Manager {
        let machines = self.machines();
        let heartbeats: Vec<_> = machines.iter().cloned().map(Heartbeat::new).collect();
        let by_name = machines.into_iter().map(|machine| (machine.name.clone(), machine));
        let machines: Machines = Arc::new(by_name.collect());
        let runtime = Simulated::new(self.termination);
        manager.with(pods::controller(machines, runtime)).with_runnable_in(
            Group::LeaderElected,
            "node-heartbeat",
            |client, shutdown| async move {
                tokio::select! {
                    () = keep_alive(heartbeats, client.with_field_manager("kubelet")) => {}
                    () = shutdown.cancelled() => {}
                }
                Ok(())
            },
        )
    }

    fn machines(&self) -> Vec<Machine> {
        let machine = |index| Machine {
            name: format!("{}{index}", self.prefix),
            index,
            capacity: self.capacity.clone(),
        };
        (0..u32::MAX).take(self.count).map(machine).collect()
    }
}

/// Registers all nodes, then keeps them alive for ever.
async fn keep_alive(mut heartbeats: Vec<Heartbeat>, client: Client) {
    join_all(heartbeats.iter_mut().map(|heartbeat| register(heartbeat, &client))).await;
    let mut ticks = interval_at(tokio::time::Instant::now() + INTERVAL, INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let beats = heartbeats.iter_mut().map(|heartbeat| caught(heartbeat.beat(&client)));
        for beat in join_all(beats).await {
            report(beat);
        }
    }
}

/// Tries until it succeeds: without its Node an agent can do nothing.
async fn register(heartbeat: &mut Heartbeat, client: &Client) {
    while let Err(error) = caught(heartbeat.register(client)).await {
        tracing::warn!(%error, "node registration failed; retrying");
        sleep(REGISTER_RETRY).await;
    }
}

/// A panic is an error like others, so that one node's heart does not stop all the others.
async fn caught(beat: impl Future<Output = Result<()>>) -> Result<()> {
    let caught = AssertUnwindSafe(beat).catch_unwind().await;
    caught.unwrap_or_else(|_| Err(Error::message("the heartbeat panicked")))
}

fn report(beat: Result<()>) {
    if let Err(error) = beat {
        tracing::warn!(%error, "node heartbeat failed; retrying");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_heartbeat_that_panics_has_only_failed() {
        async fn broken() -> Result<()> {
            panic!("as a broken heartbeat does")
        }
        assert!(caught(broken()).await.is_err());
        assert!(caught(async { Ok(()) }).await.is_ok());
    }

    #[test]
    fn nodes_are_numbered_and_have_the_capacity_asked_for() {
        let machines = SimulatedNodes::new(3).with_capacity("cpu", "64").machines();
        let names: Vec<_> = machines.iter().map(|machine| machine.name.as_str()).collect();
        assert_eq!(names, ["node-0", "node-1", "node-2"]);
        assert_eq!(machines[2].capacity["cpu"], "64");
        assert_eq!(machines[2].capacity["pods"], "110");
    }
}
