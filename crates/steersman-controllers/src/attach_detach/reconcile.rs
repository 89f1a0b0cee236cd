//! Brings what is attached to one node to where it should be.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSIDriver, VolumeAttachment};
use kube::api::Patch;
use serde_json::json;
use steersman::events::{NewEvent, Reference};
use steersman::volumes::{is_fully_bound, volume_name};
use steersman::{Context, Next, ObjectKey, Reconciler, Result};

use super::detach::{Detach, Unneeded};
use super::holders::{Holders, Wish, is_of};
use super::metrics::VolumeMetrics;
use super::plan::{plan, unneeded};
use super::wanted::{Wanted, is_own, name_of};
use super::{COMPONENT, node_of_pod};
use crate::claims::claim_keys;
use crate::pod::is_terminal;

/// The index of Pods with claims by their node, made when the first of them is there.
const BY_NODE: &str = "with-claims-by-node";
/// How soon a node is looked at again that waits for a volume or for a claim to have one, or has one
/// mounted that nobody needs: who has it may be gone without anybody hearing of it.
const WAITS: Duration = Duration::from_secs(1);

/// Attaches and detaches, and says in the node's status what is attached.
pub(super) struct Attachments {
    pub(super) metrics: VolumeMetrics,
    pub(super) holders: Holders,
    pub(super) unneeded: Unneeded,
}

impl Reconciler<Node> for Attachments {
    async fn reconcile(&self, node: Arc<Node>, ctx: Context<Node>) -> Result<Next> {
        self.bring(&node, &ctx).await
    }
}

impl Attachments {
    async fn bring(&self, node: &Node, ctx: &Context<Node>) -> Result<Next> {
        let name = ctx.key().name.to_string();
        let Used { volumes: used, unbound } = used(&name, ctx)?;
        let wanted: Vec<Wanted> = used.iter().map(|(wanted, _)| wanted.clone()).collect();
        let attachments = ctx.cache::<VolumeAttachment>()?.list();
        self.holders.take_in(&name, &wanted, &attachments);
        let of_node: Vec<_> =
            attachments.iter().filter(|it| it.spec.node_name == name).cloned().collect();
        let judged = self.judge(node, &unneeded(&name, &wanted, &of_node), ctx).await?;
        let says = node.status.as_ref().and_then(|status| status.volumes_attached.clone());
        let (mut held, mut awaited) = (Vec::new(), Vec::new());
        let says = says.unwrap_or_default();
        let plan = plan(&name, &wanted, &of_node, &says, &judged, |wanted| {
            let others = elsewhere(&attachments, wanted, &name);
            match self.holders.ask(&name, wanted, !others.is_empty()) {
                Wish::Granted => return true,
                Wish::Waits { news: true } => held.push((wanted.clone(), others)),
                Wish::Waits { news: false } => {}
            }
            awaited.push(wanted.volume.clone());
            false
        });
        for volume in &awaited {
            self.detach_stranded(volume, &name, &attachments, ctx).await?;
        }
        for (wanted, others) in held {
            let users = users(&wanted, &others, ctx)?;
            let waiting = used.iter().filter(|(it, _)| *it == wanted);
            waiting.for_each(|(_, pod)| tell_of_others(&wanted, pod, &users, ctx));
        }
        self.metrics.node(&name, &wanted, &plan.has);
        for attachment in &plan.create {
            match ctx.live().create(attachment).await {
                Err(error) if !error.is_already_exists() => return Err(error),
                _ => {}
            }
        }
        if let Some(attached) = plan.attached {
            let patch = Patch::Merge(json!({"status": {"volumesAttached": attached}}));
            ctx.patch_status::<Node, _>(ctx.key(), &patch).await?;
        }
        for attachment in &of_node {
            if plan.delete.iter().any(|name| name == name_of(attachment)) {
                self.detach(attachment, judged.get(name_of(attachment)), ctx).await?;
            }
        }
        for new in &plan.new {
            let users = used.iter().filter(|(wanted, _)| wanted == new);
            users.for_each(|(_, pod)| tell(new, pod, ctx));
        }
        let keeps = judged.values().any(|it| matches!(it, Detach::Wait(_)));
        let waits = unbound || keeps || !awaited.is_empty();
        Ok(if waits { Next::After(WAITS) } else { Next::Settled })
    }

    /// What becomes of attachments that nobody needs. That one is not mounted only the server can say.
    async fn judge(
        &self,
        node: &Node,
        unneeded: &[&VolumeAttachment],
        ctx: &Context<Node>,
    ) -> Result<BTreeMap<String, Detach>> {
        let judged = self.unneeded.judge(node, unneeded);
        if !judged.values().any(|it| *it == Detach::Now) {
            return Ok(judged);
        }
        let live = ctx.live().get::<Node>(ctx.key().clone()).await?;
        Ok(live.map_or(judged, |live| self.unneeded.judge(&live, unneeded)))
    }

    /// Takes a volume from a node.
    async fn detach(
        &self,
        attachment: &Arc<VolumeAttachment>,
        judged: Option<&Detach>,
        ctx: &Context<Node>,
    ) -> Result<()> {
        ctx.delete(attachment).await?;
        if let Some(&Detach::Forced(reason)) = judged {
            self.metrics.forced(reason);
        }
        Ok(())
    }

    /// Takes a volume from nodes that are gone, once no Pod there uses it: nobody looks after them any
    /// more.
    async fn detach_stranded(
        &self,
        volume: &str,
        node: &str,
        attachments: &[Arc<VolumeAttachment>],
        ctx: &Context<Node>,
    ) -> Result<()> {
        let nodes = ctx.cache::<Node>()?;
        for attachment in attachments.iter().filter(|it| is_of(it, volume) && is_own(it)) {
            let other = attachment.spec.node_name.as_str();
            let is_leaving = attachment.metadata.deletion_timestamp.is_some();
            if other == node || is_leaving || nodes.get(&ObjectKey::from(other)).is_some() {
                continue;
            }
            if used(other, ctx)?.volumes.iter().any(|(wanted, _)| wanted.volume == volume) {
                continue;
            }
            match self.unneeded.judge_stranded(attachment) {
                Detach::Wait(_) => {}
                judged => self.detach(attachment, Some(&judged), ctx).await?,
            }
        }
        Ok(())
    }
}

/// What Pods on a node use.
#[derive(Default)]
struct Used {
    /// The volumes, each with a Pod.
    volumes: Vec<(Wanted, Arc<Pod>)>,
    /// Whether a claim has no volume that is known here: it may be bound right now, or was, and nobody
    /// here has heard of it yet.
    unbound: bool,
}

/// The volumes that Pods on a node use, each with the Pod.
fn used(node: &str, ctx: &Context<Node>) -> Result<Used> {
    let pods = ctx.cache::<Pod>()?;
    pods.add_index(BY_NODE, node_of_pod);
    let claims = ctx.cache::<PersistentVolumeClaim>()?;
    let volumes = ctx.cache::<PersistentVolume>()?;
    let drivers = ctx.cache::<CSIDriver>()?;
    let is_attached = |wanted: &Wanted| {
        let driver = drivers.get(&ObjectKey::from(wanted.driver.as_str()));
        driver.is_none_or(|driver| driver.spec.attach_required != Some(false))
    };
    let volume = |key: &ObjectKey| {
        let claim = claims.get(key).filter(|claim| is_fully_bound(claim))?;
        volumes.get(&ObjectKey::from(volume_name(&claim)))
    };
    let mut used = Used::default();
    for pod in pods.by_index(BY_NODE, &ObjectKey::from(node)) {
        if is_terminal(&pod) {
            continue;
        }
        for key in claim_keys(&pod) {
            match volume(&key) {
                Some(volume) => {
                    let wanted = Wanted::of(&volume).filter(is_attached);
                    used.volumes.extend(wanted.map(|wanted| (wanted, Arc::clone(&pod))));
                }
                None => used.unbound = true,
            }
        }
    }
    Ok(used)
}

/// The other nodes that have a volume, or are about to give it back.
fn elsewhere(attachments: &[Arc<VolumeAttachment>], wanted: &Wanted, node: &str) -> Vec<String> {
    let all = attachments.iter().filter(|it| is_of(it, &wanted.volume));
    all.map(|it| it.spec.node_name.clone()).filter(|other| other != node).collect()
}

/// The Pods on some nodes that use a volume.
fn users(wanted: &Wanted, nodes: &[String], ctx: &Context<Node>) -> Result<Vec<Arc<Pod>>> {
    let mut users = Vec::new();
    for node in nodes {
        let used =
            used(node, ctx)?.volumes.into_iter().filter(|(it, _)| it.volume == wanted.volume);
        users.extend(used.map(|(_, pod)| pod));
    }
    Ok(users)
}

/// Tells a Pod that others have its volume, without the names of those in other namespaces.
fn tell_of_others(wanted: &Wanted, pod: &Arc<Pod>, users: &[Arc<Pod>], ctx: &Context<Node>) {
    let near = users.iter().filter(|it| it.metadata.namespace == pod.metadata.namespace);
    let near: Vec<&str> = near.filter_map(|it| it.metadata.name.as_deref()).collect();
    let far = users.len() - near.len();
    let why = match (near.is_empty(), far) {
        (true, 0) => {
            "Volume is already exclusively attached to one node, waiting on detach before \
                      it can be attached to another node"
                .to_owned()
        }
        (true, _) => format!("Volume is already used by {far} pod(s) in different namespaces"),
        (false, 0) => format!("Volume is already used by pod(s) {}", near.join(", ")),
        (false, _) => format!(
            "Volume is already used by pod(s) {} and {far} pod(s) in different namespaces",
            near.join(", ")
        ),
    };
    let note = format!("Waiting for detach for volume {:?} {why}", wanted.volume);
    let recorder = ctx.recorder().reporting(COMPONENT);
    recorder.event(Reference::of(&**pod), NewEvent::warning("FailedAttachVolume").note(note));
}

fn tell(wanted: &Wanted, pod: &Arc<Pod>, ctx: &Context<Node>) {
    let volume = &wanted.volume;
    let note = format!("AttachVolume.Attach succeeded for volume {volume:?} ");
    let recorder = ctx.recorder().reporting(COMPONENT);
    let event = NewEvent::normal("SuccessfulAttachVolume").note(note);
    recorder.event(Reference::of(&**pod), event);
}
