//! The reconciler: does what the plan says, and reports.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use steersman::conditions::ConditionType;
use steersman::events::NewEvent;
use steersman::kind::Kind;
use steersman::object::is_controlled_by;
use steersman::prelude::*;
use steersman::{clock, predicate};

use crate::plan::Plan;
use crate::pod::pod_for;
use crate::schedule::Schedule;
use crate::{Backup, BackupStatus, Store};

const READY: ConditionType = ConditionType::new("Ready");

/// How long a cleanup waits at most before it looks again whether the Pods are gone.
const PODS_GONE: Duration = Duration::from_secs(60);

/// The controller of Backups, whose buckets are in this store.
pub fn backups(store: impl Store) -> Controller {
    Controller::of::<Backup>()
        .when(predicate::generation_changed()) // its own status does not wake it
        .owns::<Pod>()
        .watches_referenced_with(secrets(), |backup: &Backup| [backup.secret()])
        .timeout(Duration::from_secs(60))
        .reconcile(Backups { store })
}

/// Only whether a Secret is there matters, so nothing else of Secrets is read.
fn secrets() -> Kind<PartialObjectMeta<Secret>> {
    Kind::<Secret>::of().metadata()
}

struct Backups<S> {
    store: S,
}

impl<S: Store> Reconciler<Backup> for Backups<S> {
    const FINALIZER: Option<&'static str> = Some("backup.example.com/bucket");

    async fn reconcile(&self, backup: Arc<Backup>, ctx: Context<Backup>) -> Result<Next> {
        let schedule: Schedule = match backup.spec.every.parse() {
            Ok(schedule) => schedule,
            Err(error) => {
                ctx.condition(READY.no("InvalidSchedule", format!("spec.every {error}")));
                return Err(Error::terminal(error));
            }
        };
        if let Err(error) = self.store.create(&backup.bucket()).await {
            ctx.condition(READY.no("NoBucket", error.to_string()));
            return Err(error.into());
        }
        let secret = backup.secret();
        if ctx.of_kind(&secrets()).get(&secret)?.is_none() {
            let message = format!("there is no Secret {secret}");
            ctx.condition(READY.no("NoSecret", &message));
            ctx.event(NewEvent::warning("NoSecret").action("Start").note(message));
            return Ok(Next::Settled); // its creation wakes this Backup
        }
        let now = clock::now();
        let plan = Plan::new(&backup, schedule, ctx.children::<Pod>()?, now);
        if let Some(due) = plan.start {
            start(&backup, &ctx, due).await?;
        }
        for pod in &plan.retired {
            ctx.delete(pod).await?;
        }
        ctx.condition(match (&plan.late, &plan.failed) {
            (Some(pod), _) => READY.no("RunLate", format!("Pod {} is not over", pod.name_any())),
            (_, Some(pod)) => READY.no("RunFailed", format!("Pod {} failed", pod.name_any())),
            _ => READY.yes("Scheduled", format!("runs every {}", backup.spec.every)),
        });
        Ok(Next::After(plan.next.duration_since(now).unsigned_abs()))
    }

    async fn clean_up(&self, backup: Arc<Backup>, ctx: Context<Backup>) -> Result<Next> {
        if !ctx.children::<Pod>()?.is_empty() {
            // They write into the bucket. When the last one is gone, this Backup is woken.
            ctx.prune(|_: &Pod| false).await?;
            return Ok(Next::After(PODS_GONE));
        }
        self.store.delete(&backup.bucket()).await?;
        Ok(Next::Settled)
    }
}

/// Starts the run for a due time, unless that has been done.
async fn start(backup: &Backup, ctx: &Context<Backup>, due: Timestamp) -> Result<()> {
    let pod = pod_for(backup, due)?;
    let name = pod.name_any();
    match ctx.create(pod).await {
        Ok(pod) => {
            let note = format!("Pod {} for {due}", pod.name_any());
            ctx.event(NewEvent::normal("Started").action("Start").note(note).related(&pod));
        }
        // Somebody came this far before, and could not write the status any more.
        Err(error) if error.is_already_exists() && is_own(&name, ctx).await? => {}
        Err(error) => {
            ctx.condition(READY.no("NotStarted", error.to_string()));
            return Err(error);
        }
    }
    ctx.change_status(|status: &mut BackupStatus| status.last_schedule_time = Some(Time(due)))
}

/// Whether the Pod of this name is one of this Backup; the cache may not show it yet.
async fn is_own(name: &str, ctx: &Context<Backup>) -> Result<bool> {
    let key = ObjectKey { namespace: ctx.key().namespace.clone(), name: name.into() };
    let pod: Option<Pod> = ctx.live().get(key).await?;
    let uid = ctx.object().metadata.uid.as_deref().unwrap_or_default();
    Ok(pod.is_some_and(|pod| is_controlled_by(&pod.metadata, uid)))
}
