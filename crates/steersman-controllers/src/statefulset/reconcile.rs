//! Brings a StatefulSet a step closer to what it asks for: keeps its templates as revisions, carries
//! out the plan, reports, and forgets revisions that nobody needs.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde_json::Value;
use steersman::ownership::{claim_children, claim_children_where};
use steersman::{Context, Next, Result, clock};

use super::act::Actor;
use super::identity::{ordinal_of, revision_of, spec};
use super::plan::{Action, Plan, Revision, Rollout};
use super::status::{self, Done, Revisions};
use super::{revision, selector};
use crate::hash;
use crate::history::{self, History, Snapshot};
use crate::pod_control::slow_start;

/// The label of a revision that has its hash.
const HASH_LABEL: &str = "controller.kubernetes.io/hash";
/// How soon a Pod is tried again whose claim is still to be deleted with the Pod before it.
const CLAIM_RETRY: Duration = Duration::from_secs(1);

/// Brings the Pods of one StatefulSet a step closer to its template and size.
pub(super) async fn reconcile(set: Arc<StatefulSet>, ctx: Context<StatefulSet>) -> Result<Next> {
    let revisions: Vec<Arc<ControllerRevision>> = claim_children(&ctx, selector(&set)).await?;
    let is_member = |pod: &Pod| ordinal_of(&set, pod).is_some();
    let pods: Vec<Arc<Pod>> = claim_children_where(&ctx, selector(&set), is_member).await?;
    let now = clock::now();
    if set.metadata.deletion_timestamp.is_some() {
        ctx.status(status::status(&set, &pods, &known_revisions(&set), &Done::default(), now));
        return Ok(Next::Settled);
    }
    let data = spec(&set).map_or(Value::Null, |spec| history::data_of(&spec.template));
    let history = History::new(revisions, &data);
    let (update, collisions) = snapshot(&set, &data, &history, &ctx).await?;
    let known = set.status.as_ref().and_then(|status| status.current_revision.as_deref());
    let current = known.and_then(|name| history.named(name)).map_or(&update, |found| &**found);
    let names = Revisions {
        current: history::name_of(current).to_owned(),
        update: history::name_of(&update).to_owned(),
        collisions,
    };
    let cache = ctx.cache::<PersistentVolumeClaim>()?;
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let find = |name: &str| cache.get(&steersman::ObjectKey::namespaced(namespace, name));
    let rollout = Rollout {
        set: &set,
        current: template_of(&set, current),
        update: template_of(&set, &update),
        pods: &pods,
        claims: &find,
        now,
    };
    let plan = rollout.plan();
    let waits = plan.waits_for_claim;
    let mut done = Done::default();
    let acted = act(&rollout, plan, &ctx, &mut done).await;
    ctx.status(status::status(&set, &pods, &names, &done, now));
    let forgotten = forget(&set, &pods, &history, &names, &ctx).await;
    acted?;
    forgotten?;
    let next = status::next_available(&set, &pods, now).or_else(|| waits.then_some(CLAIM_RETRY));
    Ok(next.map_or(Next::Settled, Next::After))
}

/// The revisions that the status names.
fn known_revisions(set: &StatefulSet) -> Revisions {
    let status = set.status.clone().unwrap_or_default();
    Revisions {
        current: status.current_revision.unwrap_or_default(),
        update: status.update_revision.unwrap_or_default(),
        collisions: status.collision_count.unwrap_or(0),
    }
}

/// The revision of the set's template, and how often such a name was taken.
async fn snapshot(
    set: &StatefulSet,
    data: &Value,
    history: &History,
    ctx: &Context<StatefulSet>,
) -> Result<(ControllerRevision, i32)> {
    let bytes = serde_json::to_vec(data).unwrap_or_default();
    let hash = move |collisions: i32| {
        hash::of_bytes(&[bytes.as_slice(), collisions.to_string().as_bytes()].concat())
    };
    let template = spec(set).map(|spec| spec.template.clone()).unwrap_or_default();
    let collisions = set.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
    let snapshot = Snapshot {
        owner: &set.metadata,
        template: &template,
        data,
        label: HASH_LABEL,
        hash: &hash,
        collisions,
        means_the_same: &|latest| revision::means_the_same(set, latest),
    };
    snapshot.take(history, ctx).await
}

/// The template of a revision.
fn template_of(set: &StatefulSet, revision: &ControllerRevision) -> Revision {
    let template = history::template_of(revision);
    let template = template.or_else(|| spec(set).map(|spec| spec.template.clone()));
    Revision { name: history::name_of(revision).to_owned(), template: template.unwrap_or_default() }
}

/// Carries out the plan, and notes what of it is done.
async fn act(
    rollout: &Rollout<'_>,
    plan: Plan,
    ctx: &Context<StatefulSet>,
    done: &mut Done,
) -> Result<()> {
    let actor = Actor { set: rollout.set, ctx };
    for step in plan.steps {
        let in_order = rollout.is_ordered();
        let mut actions = step.into_iter();
        let sizes: Vec<usize> =
            if in_order { vec![1; actions.len()] } else { slow_start(actions.len()).collect() };
        for size in sizes {
            let batch: Vec<Action> = actions.by_ref().take(size).collect();
            let revisions: Vec<Option<String>> = batch.iter().map(revision_made).collect();
            let acted = join_all(batch.into_iter().map(|action| actor.act(action))).await;
            let made = revisions.into_iter().zip(&acted).filter(|(_, result)| result.is_ok());
            done.created.extend(made.filter_map(|(revision, _)| revision));
            acted.into_iter().collect::<Result<()>>()?;
        }
    }
    let leaving = plan.update.len();
    for pod in plan.update {
        actor.act(Action::Delete(pod)).await?;
    }
    done.leaving = leaving;
    Ok(())
}

/// The revision of the Pod that an action creates.
fn revision_made(action: &Action) -> Option<String> {
    match action {
        Action::Create(pod) => Some(revision_of(pod).to_owned()),
        _ => None,
    }
}

/// Deletes the oldest revisions that no Pod is of.
async fn forget(
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    history: &History,
    names: &Revisions,
    ctx: &Context<StatefulSet>,
) -> Result<()> {
    let lives = |revision: &ControllerRevision| {
        let name = history::name_of(revision);
        name == names.current || name == names.update || pods.iter().any(|p| revision_of(p) == name)
    };
    let limit = spec(set).and_then(|spec| spec.revision_history_limit);
    for revision in history.unused(limit, lives) {
        ctx.delete(&revision).await?;
    }
    Ok(())
}
