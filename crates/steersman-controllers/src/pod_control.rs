//! Creating and deleting Pods, and telling people of it: what all who make Pods of a template
//! share.

use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman::events::{NewEvent, Reference};
use steersman::{Context, Deleted, Kind, Object, Result};

use crate::namespace::namespace_terminating;

/// The most Pods created or deleted in one reconcile; the rest follows in the next one.
pub(crate) const BURST: usize = 500;
/// Why Pods could not be created or deleted, in conditions and Events.
pub(crate) const FAILED_CREATE: &str = "FailedCreate";
pub(crate) const FAILED_DELETE: &str = "FailedDelete";
/// What was tried, in Events.
const CREATE: &str = "Create";
const DELETE: &str = "Delete";

/// A Pod as a template of the object with this metadata describes it. The server completes its
/// name; whoever creates it becomes its owner.
pub(crate) fn from_template(owner: &ObjectMeta, template: PodTemplateSpec) -> Pod {
    let meta = template.metadata.unwrap_or_default();
    let name = owner.name.as_deref().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: owner.namespace.clone(),
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}

/// The sizes of the batches in which `count` Pods are created: 1, 2, 4, 8 and so on, so that
/// a template that is refused is refused once and not five hundred times.
pub(crate) fn slow_start(count: usize) -> impl Iterator<Item = usize> {
    let sizes = std::iter::successors(Some(1_usize), |size| size.checked_mul(2));
    sizes.scan(count, |left, size| {
        let batch = size.min(*left);
        *left -= batch;
        (batch > 0).then_some(batch)
    })
}

/// Creates these Pods in growing batches, and stops after the first batch with an error.
pub(crate) async fn create<K: Object>(
    ctx: &Context<K>,
    mut pods: impl ExactSizeIterator<Item = Pod>,
) -> Result<()> {
    for batch in slow_start(pods.len()) {
        let batch = pods.by_ref().take(batch).map(|pod| ctx.create_unread(pod));
        let created = join_all(batch).await;
        created.iter().for_each(|result| tell_of_creation(result, ctx));
        for result in created {
            match result {
                Err(error) if namespace_terminating(&error) => return Ok(()),
                result => drop(result?),
            }
        }
    }
    Ok(())
}

fn tell_of_creation<K: Object>(result: &Result<ObjectMeta>, ctx: &Context<K>) {
    match result {
        Ok(pod) => {
            let note = format!("Created pod: {}", pod.name.as_deref().unwrap_or_default());
            tell(ctx, NewEvent::normal("SuccessfulCreate").action(CREATE).note(note));
        }
        Err(error) if namespace_terminating(error) => {}
        Err(error) => {
            let note = format!("Error creating: {error}");
            tell(ctx, NewEvent::warning(FAILED_CREATE).action(CREATE).note(note));
        }
    }
}

/// Deletes these Pods, all of them even if some cannot be deleted.
pub(crate) async fn delete<K: Object>(ctx: &Context<K>, pods: &[Arc<Pod>]) -> Result<()> {
    let deleted = join_all(pods.iter().map(|pod| ctx.delete(pod))).await;
    for (pod, result) in pods.iter().zip(&deleted) {
        tell_of_deletion(pod, result, ctx);
    }
    deleted.into_iter().try_for_each(|result| result.map(drop))
}

fn tell_of_deletion<K: Object>(pod: &Pod, result: &Result<Deleted>, ctx: &Context<K>) {
    match result {
        Ok(Deleted::NotFound) => {}
        Ok(Deleted::Gone | Deleted::Terminating) => {
            let note = format!("Deleted pod: {}", name_of(pod));
            tell(ctx, NewEvent::normal("SuccessfulDelete").action(DELETE).note(note));
        }
        Err(error) => {
            let note = format!("Error deleting: {error}");
            tell(ctx, NewEvent::warning(FAILED_DELETE).action(DELETE).note(note));
        }
    }
}

/// Records an Event. Those of ReplicationControllers name a component that is called otherwise
/// than the controller.
fn tell<K: Object>(ctx: &Context<K>, event: NewEvent) {
    let kind = Kind::<K>::of();
    if kind.name() == "ReplicationController" {
        let recorder = ctx.recorder().reporting("replication-controller");
        recorder.event(Reference::of(&**ctx.object()), event);
    } else {
        ctx.event(event);
    }
}

/// The name of a Pod that has one.
pub(crate) fn name_of(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_created_in_doubling_batches() {
        let batches = |count| slow_start(count).collect::<Vec<_>>();
        assert_eq!(batches(0), [] as [usize; 0]);
        assert_eq!(batches(1), [1]);
        assert_eq!(batches(10), [1, 2, 4, 3]);
    }
}
