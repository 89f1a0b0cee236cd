//! One look at one Node: says that it is silent, taints it, tells its Pods.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use steersman::events::{NewEvent, Reference};
use steersman::{Context, Next, Reconciler, Result, clock};
use tokio::time::Instant;

use super::COMPONENT;
use super::health::{self, Verdict};
use super::monitor::Monitor;
use super::plan::{self, Eviction, NoExecute};
use super::zones::Turn;
use crate::node::{name, readiness};
use crate::pod;

/// Under which Pods are found by their node.
const BY_NODE: &str = "spec.nodeName";
/// How often a Node is written to that others change at the same time.
const WRITE_TRIES: usize = 3;

/// Keeps an eye on nodes.
pub(super) struct NodeKeeper {
    pub(super) monitor: Arc<Monitor>,
}

impl Reconciler<Node> for NodeKeeper {
    async fn reconcile(&self, node: Arc<Node>, ctx: Context<Node>) -> Result<Next> {
        let (started, now) = (Instant::now(), clock::now());
        self.monitor.meet(&node, ctx.recorder());
        let verdict = self.monitor.verdict(&node, now);
        let node = match verdict {
            Verdict::Silent => {
                self.monitor.falls_silent(&node);
                Arc::new(silenced(&node, &ctx).await?)
            }
            Verdict::Fine | Verdict::Until(_) => node,
        };
        if self.monitor.tells_pods_of(&node) {
            tell_pods(&node, &ctx).await?;
        }
        let turn = self.taint(&node, &ctx, now).await?;
        self.monitor.metrics().looked(started.elapsed());
        let next = [
            if let Verdict::Until(at) = verdict { Some(at) } else { None },
            if let Some(Turn::At(at)) = turn { Some(at) } else { None },
        ];
        let next = next.into_iter().flatten().min();
        Ok(next.map_or(Next::Settled, |at| Next::After(time_to(at, now))))
    }
}

impl NodeKeeper {
    /// Brings taints and labels up to date.
    async fn taint(
        &self,
        node: &Arc<Node>,
        ctx: &Context<Node>,
        now: Timestamp,
    ) -> Result<Option<Turn>> {
        let (no_execute, turn) = match plan::eviction(node, self.monitor.all_lost()) {
            Eviction::None => (None, None),
            Eviction::Stay => {
                if readiness(node) == Some("True") {
                    self.monitor.leave(node);
                }
                (Some(NoExecute(None)), None)
            }
            Eviction::Tainted(key) => (Some(NoExecute(Some(key))), None),
            Eviction::Due(key) => match self.monitor.line_up(node, now) {
                Turn::Now => (Some(NoExecute(Some(key))), Some(Turn::Now)),
                turn => (None, Some(turn)),
            },
        };
        let written = correct(node, no_execute, ctx).await;
        if turn == Some(Turn::Now) {
            match &written {
                Ok(()) => self.monitor.metrics().evicted(&plan::zone(node)),
                Err(_) => self.monitor.give_back(node, now),
            }
        }
        written.map(|()| turn)
    }
}

/// Writes the taints and labels that a Node is to have.
async fn correct(
    node: &Arc<Node>,
    no_execute: Option<NoExecute>,
    ctx: &Context<Node>,
) -> Result<()> {
    let mut node = Arc::clone(node);
    for attempt in 1.. {
        let Some(new) = plan::corrected(&node, no_execute, &clock::now_time()) else { break };
        match ctx.live().merge_locked(&node, &new).await {
            Err(error) if error.is_not_found() => break,
            Err(error) if error.is_conflict() && attempt < WRITE_TRIES => {
                // Many write to Nodes. What is to be written depends on nothing that they change.
                match ctx.live().get::<Node>(ctx.key().clone()).await? {
                    Some(live) => node = Arc::new(live),
                    None => break,
                }
            }
            written => return written.map(drop),
        }
    }
    Ok(())
}

/// Says that nobody knows how a node is.
async fn silenced(node: &Arc<Node>, ctx: &Context<Node>) -> Result<Node> {
    let was_ready = readiness(node) == Some("True");
    let unknown = health::unknown(node, &clock::now_time());
    let written = ctx.live().update_status(&unknown).await?;
    if was_ready {
        let note = format!("Node {} status is now: NodeNotReady", name(node));
        let recorder = ctx.recorder().reporting(COMPONENT);
        recorder.event(Reference::of(&**node), NewEvent::normal("NodeNotReady").note(note));
    }
    Ok(written)
}

/// Says of the Pods of a node that they are not ready.
async fn tell_pods(node: &Node, ctx: &Context<Node>) -> Result<()> {
    let by_node = ctx.cache::<Pod>()?.add_index(BY_NODE, node_name);
    let now = clock::now_time();
    for pod in by_node.get(name(node)) {
        let Some(changed) = plan::not_ready(&pod, &now) else { continue };
        match ctx.live().update_status(&changed).await {
            Err(error) if error.is_not_found() => continue,
            written => written.map(drop)?,
        }
        let event = NewEvent::warning("NodeNotReady").note("Node is not ready");
        ctx.recorder().reporting(COMPONENT).event(Reference::of(&*pod), event);
    }
    Ok(())
}

fn node_name(pod: &Pod) -> Option<String> {
    pod::node_name(pod).map(str::to_owned)
}

fn time_to(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}
