//! A set of simulated nodes: how many there are, what each offers, and how they run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use steersman::Manager;
use steersman::events::EventForm;
use steersman::manager::Group;

use crate::families::IpFamilies;
use crate::groups::{NodeGroup, run_failures};
use crate::heartbeats::Heartbeats;
use crate::outages::Outages;
use crate::pods::{self, Machines, Signals};
use crate::registration::Machine;
use crate::runtime::Simulated;
use crate::script::Scripts;

/// Nodes that exist only as objects: Pods bound to them run at once and cost nothing. What else
/// their containers do, [`Scripts`], annotations and names of images say.
///
/// They are named `node-0`, `node-1` and so on, unless the prefix is changed. Each reads and writes
/// as its kubelet would, `system:node:node-0` in the group `system:nodes`, which the manager's
/// clients must be allowed to impersonate; all of them share one cache of Pods and one of Nodes.
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
    /// What containers do otherwise than to run for ever and to be ready at once.
    pub scripts: Scripts,
    /// Which of them are out of reach.
    pub outages: Outages,
    /// Of which families their addresses are, and those of their Pods.
    pub families: IpFamilies,
    /// More nodes, of other kinds. What these do not say is as of those above.
    pub groups: Vec<NodeGroup>,
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
            scripts: Scripts::default(),
            outages: Outages::default(),
            families: IpFamilies::default(),
            groups: Vec::new(),
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

    /// Lets containers do what these rules say.
    #[must_use]
    pub fn with_scripts(mut self, scripts: Scripts) -> Self {
        self.scripts = scripts;
        self
    }

    /// Lets whoever holds these lose nodes.
    #[must_use]
    pub fn with_outages(mut self, outages: Outages) -> Self {
        self.outages = outages;
        self
    }

    /// Gives nodes and Pods addresses of these families.
    #[must_use]
    pub fn with_families(mut self, families: IpFamilies) -> Self {
        self.families = families;
        self
    }

    /// Adds nodes of other kinds.
    #[must_use]
    pub fn with_groups(mut self, groups: Vec<NodeGroup>) -> Self {
        self.scripts.use_profiles(&groups);
        self.groups = groups;
        self
    }

    /// Adds these nodes to a manager. Their hearts beat all the time.
    #[must_use]
    pub fn install(self, manager: Manager) -> Manager {
        let heartbeats = Heartbeats::always(self.machines(), &self.outages);
        self.install_with(manager, heartbeats)
    }

    /// Hearts for [these nodes](Self::install_with) that beat while somebody looks, which they are to
    /// be told.
    pub fn heartbeats_on_demand(&self) -> Arc<Heartbeats> {
        Heartbeats::on_demand(self.machines(), &self.outages)
    }

    /// Adds these nodes to a manager, with hearts that were made for them.
    #[must_use]
    pub fn install_with(self, manager: Manager, heartbeats: Arc<Heartbeats>) -> Manager {
        let by_name = self.machines().into_iter().map(|machine| (machine.name.clone(), machine));
        let machines: Machines = Arc::new(by_name.collect());
        let scripts = self.scripts.changes();
        let runtime = Simulated::new(self.termination, self.scripts);
        let signals = Signals { scripts, outages: self.outages.clone() };
        let pods = pods::controller(machines, runtime, signals);
        let (groups, outages) = (self.groups, self.outages);
        let manager = match groups.iter().all(|group| group.failures.is_empty()) {
            true => manager,
            false => manager.with_runnable_in(
                Group::LeaderElected,
                "node-failures",
                |_, shutdown| async move {
                    shutdown.run_until_cancelled(run_failures(groups, outages)).await;
                    shutdown.cancelled().await;
                    Ok(())
                },
            ),
        };
        let recorder = manager.recorder().form(EventForm::Counted);
        let recorder = recorder.reporting("kubelet").field_manager("kubelet");
        heartbeats.tell_by(&recorder);
        manager.with(pods).with_runnable_in(
            Group::LeaderElected,
            "node-heartbeat",
            |client, shutdown| async move {
                tokio::select! {
                    () = heartbeats.run(client.with_field_manager("kubelet")) => {}
                    () = shutdown.cancelled() => {}
                }
                Ok(())
            },
        )
    }

    fn machines(&self) -> Vec<Machine> {
        let machine = |index| {
            let name = format!("{}{index}", self.prefix);
            Machine::simulated(name, index, self.capacity.clone(), self.families)
        };
        let mut machines: Vec<Machine> = (0..u32::MAX).take(self.count).map(machine).collect();
        for group in &self.groups {
            let mut capacity = self.capacity.clone();
            capacity.extend(group.capacity.clone());
            for (number, index) in group.numbers().zip((0..u32::MAX).skip(machines.len())) {
                let name = group.name(number);
                let machine = Machine::simulated(name, index, capacity.clone(), self.families);
                machines.push(Machine { shape: group.shape(number), ..machine });
            }
        }
        let pods = machines.iter().map(Machine::max_pods).max().unwrap_or_default();
        machines.iter_mut().for_each(|machine| machine.make_room(pods));
        machines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_and_have_the_capacity_asked_for() {
        let machines = SimulatedNodes::new(3).with_capacity("cpu", "64").machines();
        let names: Vec<_> = machines.iter().map(|machine| machine.name.as_str()).collect();
        assert_eq!(names, ["node-0", "node-1", "node-2"]);
        assert_eq!(machines[2].capacity["cpu"], "64");
        assert_eq!(machines[2].capacity["pods"], "110");
    }

    #[test]
    fn groups_follow_and_share_what_they_do_not_say() {
        let groups = NodeGroup::parse(
            "- {count: 2, prefix: big-, capacity: {cpu: 64}, claims: {cpu: 128}, labels: {size: big}}",
        );
        let nodes = SimulatedNodes::new(1).with_groups(groups.unwrap());
        let machines = nodes.machines();
        let names: Vec<_> = machines.iter().map(|machine| machine.name.as_str()).collect();
        assert_eq!(names, ["node-0", "big-0", "big-1"]);
        let mut addresses: Vec<_> = machines.iter().map(|it| it.addresses[0].clone()).collect();
        addresses.dedup();
        assert_eq!(addresses.len(), 3);
        let node = machines[2].node(&steersman::clock::now_time());
        assert_eq!(node.metadata.labels.unwrap()["size"], "big");
        let status = node.status.unwrap();
        let amount = |of: &str| status.allocatable.as_ref().unwrap()[of].0.clone();
        assert_eq!((amount("cpu"), amount("pods")), ("128".to_owned(), "110".to_owned()));
        assert_eq!(machines[2].capacity["cpu"], "64");
    }
}
