//! Carries out the plan: creates, changes and deletes ReplicaSets, and reports.

use std::cmp::Ordering;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::api::Patch;
use serde_json::{Map, Value, json};
use steersman::events::NewEvent;
use steersman::object::is_controlled_by;
use steersman::ownership::claim_children;
use steersman::{Context, Error, Next, ObjectKey, Result, clock};

use super::plan::{Action, Change, Rollout};
use super::revision::REVISION;
use super::rollback::{Rollback, rollback};
use super::rolling::spec_replicas;
use super::selector;
use super::status::{self, Progress};
use super::template;
use crate::namespace::namespace_terminating;

/// How creating a ReplicaSet ended.
enum Creation {
    /// The ReplicaSet with this name exists.
    Done(String),
    /// Its name is taken by one with another template.
    Collision,
    /// It was refused, as people are told.
    Refused {
        /// What they are told.
        message: String,
        /// Why.
        error: Error,
    },
}

/// Brings the ReplicaSets of one Deployment a step closer to its template and size.
pub(super) async fn reconcile(
    deployment: Arc<Deployment>,
    ctx: Context<Deployment>,
) -> Result<Next> {
    let sets: Vec<Arc<ReplicaSet>> = claim_children(&ctx, selector(&deployment)).await?;
    let rollout = Rollout::new(deployment, sets);
    if let Some(rollback) = rollback(&rollout) {
        return go_back(rollback, &ctx).await;
    }
    let acted = act(&rollout, &ctx).await;
    let progress = match &acted {
        Ok(Some(Creation::Done(name))) => Progress::Created(name.clone()),
        Ok(Some(Creation::Refused { message, .. })) => Progress::Refused(message.clone()),
        _ => Progress::None,
    };
    let mut report = status::report(&rollout, &progress, clock::now());
    if matches!(acted, Ok(Some(Creation::Collision))) {
        // Another number gives another hash; the changed status wakes this Deployment again.
        let collisions = report.status.collision_count.unwrap_or(0);
        report.status.collision_count = Some(collisions + 1);
    }
    ctx.status(report.status);
    if let Some(Creation::Refused { error, .. }) = acted? {
        return Err(error);
    }
    sync_revision(&rollout, &ctx).await?;
    Ok(report.deadline_in.map_or(Next::Settled, Next::After))
}

/// Writes a Deployment that went back, or could not, and tells of it. That wakes it again.
async fn go_back(rollback: Rollback, ctx: &Context<Deployment>) -> Result<Next> {
    let (reason, note) = rollback.told;
    let event = if rollback.done { NewEvent::normal(reason) } else { NewEvent::warning(reason) };
    let event = event.action("Rollback").note(note);
    if !rollback.done {
        ctx.event(event);
        return ctx.update(&rollback.deployment).await.map(|_| Next::Settled);
    }
    ctx.update(&rollback.deployment).await?;
    ctx.event(event);
    Ok(Next::Settled)
}

async fn act(rollout: &Rollout, ctx: &Context<Deployment>) -> Result<Option<Creation>> {
    let mut creation = None;
    for action in rollout.actions(status::is_complete(rollout)) {
        match action {
            Action::Create(set) => creation = Some(create(*set, ctx).await?),
            Action::Change(change) => apply(&change, ctx).await?,
            Action::Delete(set) => {
                ctx.delete(&set).await?;
            }
        }
    }
    Ok(creation)
}

/// Creates a ReplicaSet. If the name is taken, by whom decides whether that is all right.
async fn create(set: ReplicaSet, ctx: &Context<Deployment>) -> Result<Creation> {
    let key = ObjectKey::of(&set);
    let template = set.spec.as_ref().and_then(|spec| spec.template.clone()).unwrap_or_default();
    let name = key.name.to_string();
    let size = spec_replicas(&set);
    match ctx.create(set).await {
        Ok(_) => {
            tell_of_scaling(&name, 0, size, ctx);
            Ok(Creation::Done(name))
        }
        Err(error) if error.is_already_exists() => {
            let existing: Option<ReplicaSet> = ctx.live().get(&key).await?;
            let uid = ctx.object().metadata.uid.as_deref().unwrap_or_default();
            match existing {
                Some(existing)
                    if is_controlled_by(&existing.metadata, uid)
                        && template::has_template(&existing, &template) =>
                {
                    Ok(Creation::Done(name))
                }
                // Of another owner, or released by this one: it does not come back.
                Some(_) => Ok(Creation::Collision),
                None => Err(error), // it has just been deleted: try again
            }
        }
        Err(error) => {
            if namespace_terminating(&error) {
                return Err(error);
            }
            let message = format!("Failed to create new replica set {name:?}: {error}");
            let event = NewEvent::warning(status::REFUSED).action("Create");
            ctx.event(event.note(message.clone()));
            Ok(Creation::Refused { message, error })
        }
    }
}

/// Tells people that a ReplicaSet has another size.
fn tell_of_scaling(set: &str, from: i32, to: i32, ctx: &Context<Deployment>) {
    let way = match from.cmp(&to) {
        Ordering::Less => "up",
        Ordering::Greater => "down",
        Ordering::Equal => return,
    };
    let note = format!("Scaled {way} replica set {set} from {from} to {to}");
    ctx.event(NewEvent::normal("ScalingReplicaSet").action("Scale").note(note));
}

async fn apply(change: &Change, ctx: &Context<Deployment>) -> Result<()> {
    let mut spec = Map::new();
    if let Some(replicas) = change.replicas {
        spec.insert("replicas".into(), replicas.into());
    }
    if let Some(seconds) = change.min_ready_seconds {
        spec.insert("minReadySeconds".into(), seconds.into());
    }
    let mut patch = json!({"metadata": {"annotations": change.annotations}});
    if !spec.is_empty() {
        patch["spec"] = Value::Object(spec);
    }
    let key = ObjectKey::of(&*change.set);
    ctx.patch::<ReplicaSet, _>(&key, &Patch::Merge(patch)).await?;
    if let Some(replicas) = change.replicas {
        tell_of_scaling(&key.name, spec_replicas(&change.set), replicas, ctx);
    }
    Ok(())
}

/// Gives the Deployment the revision of its new ReplicaSet. It is written with the status, as
/// Kubernetes does: annotations that are written otherwise count as a new generation.
async fn sync_revision(rollout: &Rollout, ctx: &Context<Deployment>) -> Result<()> {
    let revision = |annotations: &Option<_>| -> Option<String> {
        let annotations: &std::collections::BTreeMap<String, String> = annotations.as_ref()?;
        annotations.get(REVISION).cloned()
    };
    let wanted = rollout.new.as_ref().and_then(|new| revision(&new.metadata.annotations));
    if wanted.is_none() || wanted == revision(&rollout.deployment.metadata.annotations) {
        return Ok(());
    }
    let mut deployment = Deployment::clone(ctx.object());
    let annotations = deployment.metadata.annotations.get_or_insert_default();
    annotations.extend(wanted.map(|revision| (REVISION.to_owned(), revision)));
    ctx.update_status(&deployment).await.map(drop)
}
