//! Schedules one Pod: decides under the lock, binds outside of it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Binding, Node, ObjectReference, Pod, PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use steersman::events::NewEvent;
use steersman::{Context, Next, Reconciler, Result, clock};
use tokio::time::Instant;

use crate::bind_volumes;
use crate::decision::{Decision, decide, nowhere};
use crate::pod_volumes::{PodVolumes, Progress};
use crate::requests::PodRequests;
use crate::snapshot::{PodView, SharedState, bound_to, is_terminal};

/// The name in `spec.schedulerName` of the Pods that this scheduler cares for.
pub const SCHEDULER_NAME: &str = "default-scheduler";

/// The condition that tells whether a Pod has a node.
const POD_SCHEDULED: &str = "PodScheduled";
/// What every Node has when it is new, until it is known to be ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// How long that may take, at most, before people are told that Pods wait for it.
const ARRIVAL_SECONDS: i64 = 5;

/// Assigns Pods to Nodes.
#[derive(Default)]
pub struct Scheduler {
    state: Arc<SharedState>,
}

impl Scheduler {
    /// What this scheduler knows beyond the cache.
    pub(crate) fn state(&self) -> &Arc<SharedState> {
        &self.state
    }

    /// Decides, and counts the Pod on its node from then on.
    fn decide(&self, pod: &Pod, nodes: &[Arc<Node>], volumes: Option<&PodVolumes>) -> Decision {
        let mut state = self.state.lock();
        let views = state.views(nodes.iter().map(AsRef::as_ref));
        let view = PodView { pod, requests: PodRequests::of(pod), volumes };
        let decision = decide(&view, &views);
        drop(views);
        if let Decision::Node(node) = &decision {
            state.assume(uid(pod), node, view.requests);
        }
        decision
    }

    /// Tells a Pod that it fits nowhere, and lets it wait.
    fn refuse(&self, pod: &Pod, message: String, ctx: &Context<Pod>) -> Next {
        tracing::debug!(message, "pod unschedulable; requeued");
        ctx.status(unschedulable(pod, &message));
        let failed = NewEvent::warning("FailedScheduling").action("Scheduling");
        ctx.event(failed.note(message));
        let mut state = self.state.lock();
        state.volumes.add(ctx.key(), bind_volumes::claim_keys(pod), None);
        Next::After(state.backlog.add(ctx.key()))
    }

    /// Lets the volumes of a Pod be bound for its node. It counts on the node while that takes, and is
    /// bound when they are.
    async fn bind_volumes(
        &self,
        pod: &Pod,
        node: &str,
        volumes: &PodVolumes,
        ctx: &Context<Pod>,
    ) -> Result<Next> {
        match bind_volumes::write(node, volumes, ctx).await {
            Ok(chosen) => {
                let claims = bind_volumes::claim_keys(pod);
                self.state.lock().volumes.add(ctx.key(), claims, Some(chosen));
                Ok(Next::After(bind_volumes::TIMEOUT))
            }
            Err(error) => {
                self.state.lock().forget(uid(pod));
                Err(error)
            }
        }
    }

    async fn bind(&self, pod: &Pod, node: &str, ctx: &Context<Pod>) -> Result<Next> {
        let binding = binding(pod, node);
        let client = ctx.live();
        let bound = client.create_subresource::<Pod>("binding", ctx.key(), &binding).await;
        if bound.is_err() {
            self.state.lock().forget(uid(pod));
        }
        match bound {
            Ok(()) => {
                let mut state = self.state.lock();
                state.backlog.remove(ctx.key());
                state.volumes.remove(ctx.key());
                drop(state);
                tracing::debug!(node, "pod bound");
                let note = format!("Successfully assigned {} to {node}", ctx.key());
                ctx.event(NewEvent::normal("Scheduled").action("Binding").note(note));
                Ok(Next::Settled)
            }
            // Somebody else was faster, or the Pod is gone: the cache will show it.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(Next::Settled),
            Err(error) => Err(error),
        }
    }
}

impl Reconciler<Pod> for Scheduler {
    async fn reconcile(&self, pod: Arc<Pod>, ctx: Context<Pod>) -> Result<Next> {
        let chosen = self.state.lock().volumes.chosen(ctx.key());
        if let Some(chosen) = chosen {
            match bind_volumes::progress(&pod, &chosen, &ctx)? {
                Progress::Bound => return self.bind(&pod, &chosen.node, &ctx).await,
                Progress::UnderWay => return Ok(Next::After(chosen.until - Instant::now())),
                Progress::Failed => {
                    let mut state = self.state.lock();
                    state.forget(uid(&pod));
                    state.volumes.remove(ctx.key());
                }
            }
        }
        if self.state.lock().is_assumed(uid(&pod)) {
            return Ok(Next::Settled); // bound, but the cache does not show it yet
        }
        let nodes = ctx.cache::<Node>()?.list();
        let volumes = match bind_volumes::volumes_of(&pod, &ctx)? {
            Ok(volumes) => volumes,
            Err(why) => return Ok(self.refuse(&pod, nowhere(nodes.len(), &why), &ctx)),
        };
        match self.decide(&pod, &nodes, volumes.as_ref()) {
            Decision::Node(node) => match volumes.filter(|volumes| !volumes.are_bound()) {
                None => self.bind(&pod, &node, &ctx).await,
                Some(volumes) => self.bind_volumes(&pod, &node, &volumes, &ctx).await,
            },
            // In a moment there is another node to look at.
            Decision::Nowhere(_) if nodes.iter().any(|node| arrives(node, &clock::now_time())) => {
                Ok(Next::After(self.state.lock().backlog.add(ctx.key())))
            }
            Decision::Nowhere(message) => Ok(self.refuse(&pod, message, &ctx)),
        }
    }
}

/// Whether a Pod is to be scheduled, by this scheduler and now.
pub(crate) fn wants_a_node(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
    let ours = spec.scheduler_name.as_deref().is_none_or(|name| name == SCHEDULER_NAME);
    ours && !gated
        && bound_to(pod).is_none()
        && pod.metadata.deletion_timestamp.is_none()
        && !is_terminal(pod)
}

/// Whether a Node is ready and so new that its taint has not been taken away yet.
fn arrives(node: &Node, now: &Time) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let mut taints = taints.into_iter().flatten();
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let created = node.metadata.creation_timestamp.as_ref();
    created.is_some_and(|created| now.0.duration_since(created.0).as_secs() < ARRIVAL_SECONDS)
        && taints.any(|taint| taint.key == NOT_READY && taint.effect == "NoSchedule")
        && conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

fn binding(pod: &Pod, node: &str) -> Binding {
    Binding {
        metadata: ObjectMeta {
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            kind: Some("Node".into()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        },
    }
}

/// The Pod's status, saying that it fits nowhere. The time is that of the last change between
/// having a place and having none.
fn unschedulable(pod: &Pod, message: &str) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.get_or_insert_default();
    let old = conditions.iter().find(|c| c.type_ == POD_SCHEDULED && c.status == "False");
    let since = old.and_then(|condition| condition.last_transition_time.clone());
    conditions.retain(|condition| condition.type_ != POD_SCHEDULED);
    conditions.push(PodCondition {
        type_: POD_SCHEDULED.into(),
        status: "False".into(),
        reason: Some("Unschedulable".into()),
        message: Some(message.to_owned()),
        last_transition_time: since.or_else(|| Some(clock::now_time())),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    });
    status
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: &Value) -> Pod {
        let pod = json!({"metadata": {"namespace": "default", "name": "p"}, "spec": spec});
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn only_pods_without_a_node_and_without_gates_are_scheduled() {
        assert!(wants_a_node(&pod(&json!({"containers": []}))));
        let others = [
            json!({"containers": [], "nodeName": "n"}),
            json!({"containers": [], "schedulerName": "mine"}),
            json!({"containers": [], "schedulingGates": [{"name": "wait"}]}),
        ];
        for spec in others {
            assert!(!wants_a_node(&pod(&spec)), "{spec}");
        }
    }

    #[test]
    fn a_new_node_that_is_ready_arrives_for_five_seconds_at_most() {
        let node = |ready: &str, taint: &str| -> Node {
            let node = json!({
                "metadata": {"name": "n", "creationTimestamp": "2030-01-01T12:00:00Z"},
                "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            });
            serde_json::from_value(node).unwrap()
        };
        for (ready, taint, at, expected) in [
            ("True", NOT_READY, "2030-01-01T12:00:01Z", true),
            ("True", NOT_READY, "2030-01-01T12:00:05Z", false),
            ("False", NOT_READY, "2030-01-01T12:00:01Z", false),
            ("True", "mine", "2030-01-01T12:00:01Z", false),
        ] {
            let now = serde_json::from_value(json!(at)).unwrap();
            let found = arrives(&node(ready, taint), &now);
            assert_eq!(found, expected, "{ready} {taint} {at}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_stays_unschedulable_keeps_the_time_of_its_condition() {
        let mut pod = pod(&json!({"containers": []}));
        let first = unschedulable(&pod, "0/1 nodes are available: 1 Insufficient cpu.");
        pod.status = Some(first.clone());
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
        assert_eq!(unschedulable(&pod, "0/1 nodes are available: 1 Insufficient cpu."), first);
    }
}
