//! The heartbeat of one machine: its Lease is renewed, its status reported when it has changed and
//! now and then anyway. When it beats is decided in [`heartbeats`](crate::heartbeats).
//!
//! Like a kubelet, it registers its Node once, with a CSINode beside it. A Node that somebody deletes
//! stays deleted; if somebody creates it again, the heartbeats go on.

mod csi_node;
mod events;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Node, NodeStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::Patch;
use serde_json::{Value, json};
use steersman::{Client, ObjectKey, Result, clock};
use tokio::time::Instant;

use crate::outages::Outages;
use crate::registration::{Machine, says_the_same};
pub(crate) use events::Voice;
use events::{Seen, rebooted, turns};

/// How often the Lease is renewed and the status looked at.
const INTERVAL: Duration = Duration::from_secs(10);
/// How often an unchanged status is reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(300);
/// For how long a renewal counts.
const LEASE_DURATION_SECONDS: i32 = 40;
/// How often a status is reported anew that somebody else has changed meanwhile.
const REPORT_TRIES: usize = 5;
/// Where the Leases of nodes are.
pub(crate) const LEASE_NAMESPACE: &str = "kube-node-lease";

/// How many watch where heartbeats show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    pub(crate) leases: usize,
    pub(crate) nodes: usize,
}

/// The heartbeat of one machine.
pub(crate) struct Heartbeat {
    machine: Machine,
    /// When it last beat.
    beaten: Option<Instant>,
    /// When the status was last written.
    reported: Option<Instant>,
    /// Somebody else has written to the Node or its Lease since.
    stirred: bool,
    outages: Outages,
    /// It has beaten for the last time before its machine was lost.
    silent: bool,
    /// What was known of the Node when it last beat.
    seen: Seen,
    voice: Voice,
}

impl Heartbeat {
    /// The heartbeat of a machine that has not registered yet.
    pub(crate) fn new(machine: Machine, outages: Outages, voice: Voice) -> Self {
        let (beaten, reported, seen) = (None, None, Seen::default());
        Self { machine, beaten, reported, stirred: false, outages, silent: false, seen, voice }
    }

    /// Notes that somebody else has written to the Node or its Lease: there may be something to
    /// put right.
    pub(crate) fn stir(&mut self) {
        self.stirred = true;
    }

    /// When it is to beat next, even if nobody asks, for those who watch.
    pub(crate) fn due(&self, watched: Watched) -> Option<Instant> {
        let next = self.beaten.filter(|_| !self.silent)? + INTERVAL;
        if watched.leases > 0 || self.stirred {
            return Some(next);
        }
        let report = self.reported.map_or(next, |reported| reported + REPORT_INTERVAL);
        (watched.nodes > 0).then_some(next.max(report))
    }

    /// Registers the Node if there is none of its name.
    pub(crate) async fn register(&mut self, client: &Client) -> Result<()> {
        let now = Instant::now();
        let client = &self.acting(client);
        match client.create(&self.machine.node(&clock::time_at(now))).await {
            // What it says about itself is in it.
            Ok(node) => {
                self.seen.openness(&node);
                csi_node::ensure(&node, client).await?;
                self.renew(&node, now, client).await?;
                self.reported = Some(now);
            }
            Err(error) if error.is_already_exists() => {
                if self.outages.since(&self.machine.name).is_none() {
                    self.put_right(now, client).await?;
                    self.beat(now, client).await?;
                }
            }
            Err(error) => return Err(error),
        }
        self.beaten = Some(now);
        // Who has only an object has no agent that could have started.
        if self.machine.health.is_some() {
            self.voice.started(&self.machine);
            let status = self.machine.status(None, &clock::time_at(now));
            for reason in turns(None, &status) {
                self.voice.is_now(&self.machine, reason);
            }
        }
        Ok(())
    }

    /// Puts right what a Node of before says of its machine, and makes what there is to be beside it.
    async fn put_right(&self, now: Instant, client: &Client) -> Result<()> {
        let name = self.machine.name.as_str();
        let Some(node) = client.get::<Node>(name).await? else { return Ok(()) };
        csi_node::ensure(&node, client).await?;
        let Some(correction) = self.machine.correction(&node, &clock::time_at(now)) else {
            return Ok(());
        };
        let patch = Patch::Merge(json!({"metadata": correction}));
        client.patch_status::<Node, _>(name, &patch).await.map(drop)
    }

    /// Beats as it should have by now: nobody can tell when it was written.
    pub(crate) async fn catch_up(&mut self, client: &Client) -> Result<()> {
        if self.silent {
            return Ok(());
        }
        let now = self.outages.since(&self.machine.name).unwrap_or_else(Instant::now);
        let last = self.beaten.map_or(now, |beaten| last_of(beaten, INTERVAL, now));
        if self.beaten == Some(last) {
            return Ok(());
        }
        self.beat_as_of(last, client).await
    }

    /// Beats for the last time when its machine is lost, and at once when it is back.
    pub(crate) async fn turn(&mut self, client: &Client) -> Result<()> {
        let was_silent = self.silent;
        match self.outages.since(&self.machine.name) {
            Some(_) if !was_silent => {
                let beat = self.catch_up(client).await;
                self.silent = true;
                beat
            }
            None if was_silent => {
                self.silent = false;
                self.beat_as_of(Instant::now(), client).await
            }
            _ => Ok(()),
        }
    }

    /// The client as that of the machine's agent.
    fn acting(&self, client: &Client) -> Client {
        match &self.machine.agent {
            Some(agent) => client.acting_as(agent),
            None => client.clone(),
        }
    }

    async fn beat_as_of(&mut self, moment: Instant, client: &Client) -> Result<()> {
        let client = self.acting(client);
        let beat = self.beat(moment, &client).await;
        self.beaten = Some(moment);
        self.stirred = beat.is_err(); // there is something to put right
        beat
    }

    /// Reports and renews once, as of a moment.
    async fn beat(&mut self, now: Instant, client: &Client) -> Result<()> {
        for attempt in 1.. {
            let Some(node) = client.get::<Node>(self.machine.name.as_str()).await? else {
                return Ok(());
            };
            if attempt == 1 {
                if let Some(reason) = self.seen.openness(&node) {
                    self.voice.is_now(&self.machine, reason);
                }
                self.renew(&node, now, client).await?;
            }
            match self.report(&node, now, client).await {
                Err(error) if error.is_conflict() && attempt < REPORT_TRIES => {}
                reported => return reported,
            }
        }
        Ok(())
    }

    /// Reports what has changed now, and what has not when that was due last.
    async fn report(&mut self, node: &Node, now: Instant, client: &Client) -> Result<()> {
        let current = node.status.as_ref();
        let as_of = |moment| self.machine.status(current, &clock::time_at(moment));
        let unchanged = current.is_some_and(|current| says_the_same(current, &as_of(now)));
        let due = self.reported.map_or(now, |reported| last_of(reported, REPORT_INTERVAL, now));
        if unchanged && self.reported == Some(due) {
            return Ok(());
        }
        let moment = if unchanged { due } else { now };
        let status = as_of(moment);
        // Its conditions are one list with others', so only the version seen is changed.
        let version = &node.metadata.resource_version;
        let mut patch = json!({"metadata": {"resourceVersion": version}, "status": status});
        for name in withdrawn(current, &status) {
            patch["status"]["allocatable"][name] = Value::Null;
        }
        // What a machine had before, and has not any more.
        if status.runtime_handlers.is_none() {
            patch["status"]["runtimeHandlers"] = Value::Null;
        }
        if status.node_info.as_ref().is_some_and(|info| info.swap.is_none()) {
            patch["status"]["nodeInfo"]["swap"] = Value::Null;
        }
        let patch = Patch::Merge(patch);
        client.patch_status::<Node, _>(self.machine.name.as_str(), &patch).await?;
        self.reported = Some(moment);
        for reason in turns(current, &status) {
            self.voice.is_now(&self.machine, reason);
        }
        if rebooted(current, &status) {
            self.voice.rebooted(&self.machine);
        }
        Ok(())
    }

    async fn renew(&self, node: &Node, now: Instant, client: &Client) -> Result<()> {
        let key = ObjectKey::namespaced(LEASE_NAMESPACE, self.machine.name.as_str());
        let patch = Patch::Merge(json!({"spec": {
            "holderIdentity": self.machine.name,
            "leaseDurationSeconds": LEASE_DURATION_SECONDS,
            "renewTime": clock::micro_time_at(now),
        }}));
        match client.patch::<Lease, _>(&key, &patch).await {
            Err(error) if error.is_not_found() => {
                client.create(&self.lease(node, now)).await.map(drop)
            }
            renewed => renewed.map(drop),
        }
    }

    /// The Lease of this machine, which goes when its Node goes.
    fn lease(&self, node: &Node, now: Instant) -> Lease {
        let name = self.machine.name.clone();
        Lease {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(LEASE_NAMESPACE.into()),
                owner_references: node.owner_ref(&()).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(name),
                lease_duration_seconds: Some(LEASE_DURATION_SECONDS),
                renew_time: Some(clock::micro_time_at(now)),
                ..LeaseSpec::default()
            }),
        }
    }
}

/// The resources that Pods could have before, and cannot any more.
fn withdrawn<'a>(
    before: Option<&'a NodeStatus>,
    after: &NodeStatus,
) -> impl Iterator<Item = &'a str> {
    let names = before.and_then(|before| before.allocatable.as_ref()).into_iter().flatten();
    let names = names.map(|(name, _)| name.as_str());
    let left = |name: &&str| after.allocatable.as_ref().is_some_and(|all| all.contains_key(*name));
    names.filter(move |name| !left(name))
}

/// When something that happens at intervals since then happened last.
fn last_of(since: Instant, interval: Duration, now: Instant) -> Instant {
    let passed = now.saturating_duration_since(since).as_nanos() / interval.as_nanos();
    since + interval.saturating_mul(u32::try_from(passed).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_happens_at_intervals_has_happened_last_within_one_of_them() {
        let start = Instant::now();
        for (passed, last) in [(0, 0), (9, 0), (10, 10), (25, 20), (86_409, 86_400)] {
            let seconds = |seconds| start + Duration::from_secs(seconds);
            assert_eq!(last_of(start, INTERVAL, seconds(passed)), seconds(last));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_heart_beats_as_often_as_those_who_watch_need_it() {
        let families = crate::IpFamilies::default();
        let machine = Machine::simulated("node-0".into(), 0, BTreeMap::new(), families);
        let mut heart = Heartbeat::new(machine, Outages::default(), Voice::default());
        let nobody = Watched::default();
        let (leases, nodes) = (Watched { leases: 1, nodes: 1 }, Watched { leases: 0, nodes: 1 });
        assert_eq!(heart.due(leases), None, "it has not registered");
        let now = Instant::now();
        (heart.beaten, heart.reported) = (Some(now), Some(now));
        assert_eq!(heart.due(nobody), None);
        assert_eq!(heart.due(leases), Some(now + INTERVAL));
        assert_eq!(heart.due(nodes), Some(now + REPORT_INTERVAL));
        heart.beaten = Some(now + REPORT_INTERVAL); // its Node is gone: nothing was reported
        assert_eq!(heart.due(nodes), Some(now + REPORT_INTERVAL + INTERVAL));
        heart.stir();
        assert_eq!(heart.due(nobody), Some(now + REPORT_INTERVAL + INTERVAL));
        heart.silent = true;
        assert_eq!(heart.due(leases), None, "its machine is lost");
    }
}
