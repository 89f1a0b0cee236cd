//! Brings the Pods of a DaemonSet to the nodes that should have them: keeps its templates as
//! revisions, carries out the plan, reports, and forgets revisions that nobody needs.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::Patch;
use serde_json::{Value, json};
use steersman::events::NewEvent;
use steersman::ownership::claim_children;
use steersman::{Context, Next, ObjectKey, Reconciler, Result, clock};

use super::backoff::Backoff;
use super::plan::{Daemon, Ended, Plan};
use super::selector;
use super::template;
use crate::hash;
use crate::history::{self, History, REVISION_LABEL, Snapshot};
use crate::pod;
use crate::pod_control::{self, BURST, name_of};

/// Reconciles DaemonSets, and remembers how fast their Pods fail.
#[derive(Default)]
pub(super) struct Daemons {
    backoff: Backoff,
}

impl Reconciler<DaemonSet> for Daemons {
    async fn reconcile(&self, set: Arc<DaemonSet>, ctx: Context<DaemonSet>) -> Result<Next> {
        if selector(&set) == Some(&LabelSelector::default()) {
            let note = "This daemon set is selecting all pods. A non-empty selector is required.";
            ctx.event(NewEvent::warning("SelectingAll").action("Select").note(note));
            return Ok(Next::Settled);
        }
        if set.metadata.deletion_timestamp.is_some() {
            return Ok(Next::Settled);
        }
        let pods: Vec<Arc<Pod>> = claim_children(&ctx, selector(&set)).await?;
        let revisions: Vec<Arc<ControllerRevision>> = claim_children(&ctx, selector(&set)).await?;
        let template = set.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
        let data = history::data_of(&template);
        let history = History::new(revisions, &data);
        let (current, collisions) = snapshot(&set, &data, &history, &ctx).await?;
        merge_revisions(&history, &pods, &ctx).await?;
        let hash = label_of(&current).unwrap_or_default();
        let mut nodes = ctx.cache::<Node>()?.list();
        nodes.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let daemon = Daemon::new(&set, &nodes, &pods, hash, clock::now());
        let acted = self.act(&daemon, &ctx).await;
        // A count that is there stays, even one of nothing.
        let counted = set.status.as_ref().is_some_and(|status| status.collision_count.is_some());
        ctx.status(daemon.status((counted || collisions > 0).then_some(collisions)));
        let retry_in = acted?;
        forget(&set, &pods, &history, &ctx).await?;
        let next = daemon.next_available().into_iter().chain(retry_in).min();
        Ok(next.map_or(Next::Settled, Next::After))
    }
}

impl Daemons {
    /// Lets Pods come and go; only if none has to, replaces those of an old template.
    async fn act(
        &self,
        daemon: &Daemon<'_>,
        ctx: &Context<DaemonSet>,
    ) -> Result<Option<std::time::Duration>> {
        let observed = daemon.set.status.as_ref().and_then(|status| status.observed_generation);
        let uid = daemon.set.metadata.uid.as_deref().unwrap_or_default();
        let ask = |node: &str| {
            let key = format!("{uid}/{}/{node}", observed.unwrap_or(0));
            self.backoff.ask(&key, daemon.now)
        };
        let plan = daemon.plan(&ask);
        let retry_in = plan.retry_in;
        if plan.create.is_empty() && plan.delete.is_empty() {
            carry_out(daemon, daemon.roll(), ctx).await?;
        } else {
            carry_out(daemon, plan, ctx).await?;
        }
        Ok(retry_in)
    }
}

async fn carry_out(daemon: &Daemon<'_>, mut plan: Plan, ctx: &Context<DaemonSet>) -> Result<()> {
    plan.ended.iter().for_each(|ended| tell_of_end(ended, ctx));
    plan.create.truncate(BURST);
    plan.delete.truncate(BURST);
    let pods = plan.create.iter().map(|node| template::pod_for(daemon.set, node, daemon.hash));
    let created = pod_control::create(ctx, pods).await;
    let deleted = pod_control::delete(ctx, &plan.delete).await;
    created.and(deleted)
}

fn tell_of_end(Ended { pod, node }: &Ended, ctx: &Context<DaemonSet>) {
    let pod_key =
        format!("{}/{}", pod.metadata.namespace.as_deref().unwrap_or_default(), name_of(pod));
    let event = if pod::phase(pod) == "Failed" {
        let note = format!("Found failed daemon pod {pod_key} on node {node}, will try to kill it");
        NewEvent::warning("FailedDaemonPod").note(note)
    } else {
        let note =
            format!("Found succeeded daemon pod {pod_key} on node {node}, will try to delete it");
        NewEvent::normal("SucceededDaemonPod").note(note)
    };
    ctx.event(event.action("Delete"));
}

/// The revision of the set's template, and how often such a name was taken.
async fn snapshot(
    set: &DaemonSet,
    data: &Value,
    history: &History,
    ctx: &Context<DaemonSet>,
) -> Result<(ControllerRevision, i32)> {
    let template = set.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    let collisions = set.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
    let hashed = template.clone();
    let hash =
        move |collisions: i32| hash::of_template(&hashed, (collisions > 0).then_some(collisions));
    let snapshot = Snapshot {
        owner: &set.metadata,
        template: &template,
        data,
        label: REVISION_LABEL,
        hash: &hash,
        collisions,
        means_the_same: &|_| false, // Kubernetes takes the words of DaemonSets as they are
    };
    snapshot.take(history, ctx).await
}

fn label_of(revision: &ControllerRevision) -> Option<&str> {
    revision.metadata.labels.as_ref()?.get(REVISION_LABEL).map(String::as_str)
}

/// Leaves one of several revisions that say the same, and lets the Pods of the others be of it.
async fn merge_revisions(
    history: &History,
    pods: &[Arc<Pod>],
    ctx: &Context<DaemonSet>,
) -> Result<()> {
    let [others @ .., kept] = history.same.as_slice() else { return Ok(()) };
    if others.is_empty() {
        return Ok(());
    }
    let hash = label_of(kept);
    for pod in pods {
        let own = pod.metadata.labels.as_ref().and_then(|labels| labels.get(REVISION_LABEL));
        if own.map(String::as_str) != hash {
            let patch = Patch::Merge(json!({"metadata": {"labels": {REVISION_LABEL: hash}}}));
            ctx.patch::<Pod, _>(&ObjectKey::of(&**pod), &patch).await?;
        }
    }
    for revision in others {
        ctx.delete(revision).await?;
    }
    Ok(())
}

/// Deletes the oldest revisions that no Pod is of.
async fn forget(
    set: &DaemonSet,
    pods: &[Arc<Pod>],
    history: &History,
    ctx: &Context<DaemonSet>,
) -> Result<()> {
    let of_pod = |pod: &Pod| pod.metadata.labels.as_ref()?.get(REVISION_LABEL).cloned();
    let live: Vec<String> = pods.iter().filter_map(|pod| of_pod(pod)).collect();
    let lives = |revision: &ControllerRevision| {
        label_of(revision).is_some_and(|hash| live.iter().any(|used| used == hash))
    };
    let limit = set.spec.as_ref().and_then(|spec| spec.revision_history_limit);
    for revision in history.surplus(limit, lives) {
        ctx.delete(&revision).await?;
    }
    Ok(())
}
