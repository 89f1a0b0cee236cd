//! Whether a node takes a Pod that is bound to it, as a kubelet decides: whoever has bound it may not
//! have looked, or may have looked at what is over.
//!
//! [`pods`] says what can be told of a Pod alone, its [standing](crate::standing) what its Node says, and the ledger of
//! [`addresses`](crate::addresses) what room there is beside others. A Pod that was taken once is not
//! looked at again, whatever its Node says later.

mod pods;
mod sysctls;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use steersman::{Client, ListOptions, Result, clock};

use crate::addresses::{Addresses, Room};
use crate::eviction::is_critical;
use crate::preemption::{Lack, victims};
use crate::registration::Machine;
use crate::rejection::Rejection;
use crate::standing::Standing;
use crate::static_pods::is_static;

/// A Pod that a node takes.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) address: Ipv4Addr,
    /// Those who have to go before it begins.
    pub(crate) victims: Vec<Pod>,
}

impl Addresses {
    /// The address that a machine gives a Pod, if it takes it, and who has to go for it.
    ///
    /// What is heard of others may be late: before a Pod is refused for what they have or for what the
    /// Node says, both are read anew, so that nobody is refused whom the scheduler was right to place.
    pub(crate) async fn admit(
        &self,
        pod: &Pod,
        machine: &Machine,
        client: &Client,
    ) -> Result<Result<Admitted, Rejection>> {
        let critical = is_critical(pod) && !is_static(pod);
        if critical && !self.lacks_of(pod, machine).is_empty() {
            return self.make_way(pod, machine, client).await;
        }
        let reserved = self.reserved(pod, machine, client).await?;
        Ok(reserved.map(|address| Admitted { address, victims: Vec::new() }))
    }

    /// The address alone.
    async fn reserved(
        &self,
        pod: &Pod,
        machine: &Machine,
        client: &Client,
    ) -> Result<Result<Ipv4Addr, Rejection>> {
        let reserved = self.try_admit(pod, machine);
        // The server may be a static Pod itself: those do not wait for it.
        if !reserved.as_ref().is_err_and(Rejection::may_be_late) || is_static(pod) {
            return Ok(reserved);
        }
        self.catch_up(machine, client).await?;
        Ok(self.try_admit(pod, machine))
    }

    /// The same by what is known.
    fn try_admit(&self, pod: &Pod, machine: &Machine) -> Result<Ipv4Addr, Rejection> {
        if let Some(address) = self.given(pod, &machine.name) {
            return Ok(address);
        }
        pods::check(pod, machine)?;
        let standing = self.standing_of(machine);
        self.reserve(pod, room(machine, &standing))
    }

    /// Takes a Pod for which others have to go, unless it is refused for something else or nobody can.
    /// A static one is taken as it is: the server, of which one would have to ask who is there, may be one.
    async fn make_way(
        &self,
        pod: &Pod,
        machine: &Machine,
        client: &Client,
    ) -> Result<Result<Admitted, Rejection>> {
        let there = self.catch_up(machine, client).await?;
        let lacks = self.lacks_of(pod, machine);
        let address = match self.try_admit(pod, machine) {
            Ok(address) => address,
            Err(rejection) => return Ok(Err(rejection)),
        };
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let others: Vec<Pod> = there
            .into_iter()
            .filter(|other| other.metadata.uid != pod.metadata.uid)
            .filter(|other| self.holds(&machine.name, other.metadata.uid.as_deref().unwrap_or("")))
            .collect();
        match victims(pod, &others, &lacks) {
            Ok(victims) => {
                let victims = victims.into_iter().cloned().collect();
                Ok(Ok(Admitted { address, victims }))
            }
            Err(why) => {
                self.release(uid);
                Ok(Err(Rejection::NobodyHelps(why)))
            }
        }
    }

    fn lacks_of(&self, pod: &Pod, machine: &Machine) -> Vec<Lack> {
        let standing = self.standing_of(machine);
        self.lacks(pod, room(machine, &standing))
    }

    /// Takes in what the Node of a machine says.
    pub(crate) fn take_in_node(&self, node: &Node, machine: &Machine) {
        let standing = Standing::of(node, machine.real_amounts());
        self.standings.take_in(&machine.name, standing);
    }

    /// What the Node of a machine says; as long as nobody has seen it, what it was to say.
    fn standing_of(&self, machine: &Machine) -> Arc<Standing> {
        self.standings.get(&machine.name).unwrap_or_else(|| {
            let node = machine.node(&clock::now_time());
            Arc::new(Standing::of(&node, machine.real_amounts()))
        })
    }

    /// Reads what a Node says, and which of its Pods are there.
    async fn catch_up(&self, machine: &Machine, client: &Client) -> Result<Vec<Pod>> {
        let name = machine.name.as_str();
        if let Some(node) = client.get::<Node>(name).await? {
            self.take_in_node(&node, machine);
        }
        let before = self.heard_of(name);
        let fields = Some(format!("spec.nodeName={name}"));
        let bound = ListOptions { fields, ..ListOptions::default() };
        let there = client.list::<Pod>(&bound).await?;
        self.correct(name, &before, &there);
        Ok(there)
    }
}

/// The room on a machine whose Node says this.
fn room<'a>(machine: &'a Machine, standing: &'a Standing) -> Room<'a> {
    Room {
        node: &machine.name,
        block: machine.pod_addresses(),
        capacity: machine.max_pods(),
        standing,
    }
}
