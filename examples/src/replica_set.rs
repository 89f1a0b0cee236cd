//! A PodSet keeps a number of Pods, as a ReplicaSet does.
//!
//! What to do is decided by [`plan`], a pure function; [`reconcile`] reads the Pods, does what
//! the plan says and reports what it saw. That the Pods of the last reconcile are all in the
//! cache when the next one begins is the framework's promise, so nothing is counted in memory.

use std::cmp::Reverse;

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{CustomResource, CustomResourceExt, ResourceExt};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use steersman::manifests::Manifests;
use steersman::prelude::*;

/// Says which Pod is the cheapest to delete; the lower, the sooner it goes.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// What the author of a PodSet asks for.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "demo.steersman.dev",
    version = "v1alpha1",
    kind = "PodSet",
    namespaced,
    status = "PodSetStatus",
    printcolumn(json_path = ".spec.replicas", name = "Desired", type_ = "integer"),
    printcolumn(json_path = ".status.readyReplicas", name = "Ready", type_ = "integer")
)]
pub struct PodSetSpec {
    /// How many Pods there shall be.
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// What each of them looks like.
    #[schemars(schema_with = "any_object")]
    pub template: PodTemplateSpec,
}

/// What was observed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PodSetStatus {
    /// How many Pods there are.
    pub replicas: usize,
    /// How many of them are ready.
    pub ready_replicas: usize,
}

/// The controller of PodSets.
pub fn pod_sets() -> Controller {
    Controller::of::<PodSet>().owns::<Pod>().reconcile(reconcile)
}

/// What a cluster must have before.
pub fn manifests() -> Manifests {
    let manifests = Manifests::new("pod-sets", "default").definition(PodSet::crd());
    manifests.controller(&pod_sets())
}

/// Brings the number of Pods closer to what is wanted, and reports what was there before.
pub async fn reconcile(set: Arc<PodSet>, ctx: Context<PodSet>) -> Result<Next> {
    let mut pods = ctx.children::<Pod>()?;
    pods.retain(|pod| is_active(pod));
    ctx.status(status(&pods)); // written at the end, even if what follows fails
    if set.metadata.deletion_timestamp.is_some() {
        return Ok(Next::Settled); // its Pods go with it
    }
    match plan(&set, pods) {
        // One after the other: a template that the server refuses is refused once.
        Plan::Create(count) => {
            for _ in 0..count {
                ctx.create(new_pod(&set)).await?;
            }
        }
        Plan::Delete(pods) => {
            for pod in pods {
                ctx.delete(&pod).await?;
            }
        }
    }
    Ok(Next::Settled)
}

/// What is to be done about the Pods.
#[derive(Debug, PartialEq)]
enum Plan {
    /// Too few: create this many, maybe none.
    Create(usize),
    /// Too many: delete these.
    Delete(Vec<Arc<Pod>>),
}

/// Compares the Pods that are there with the number wanted.
fn plan(set: &PodSet, mut pods: Vec<Arc<Pod>>) -> Plan {
    let wanted = usize::try_from(set.spec.replicas).unwrap_or(0);
    if pods.len() <= wanted {
        return Plan::Create(wanted - pods.len());
    }
    pods.sort_by_cached_key(|pod| worth(pod));
    pods.truncate(pods.len() - wanted);
    Plan::Delete(pods)
}

/// What a Pod is worth; the least goes first. The order is that of ReplicaSets: without a node
/// before with one, pending before running, not ready before ready, cheap before dear, young
/// before old.
fn worth(pod: &Pod) -> impl Ord + use<> {
    let phase = match phase(pod) {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    };
    let assigned = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let cost = pod.annotations().get(DELETION_COST).and_then(|cost| cost.parse().ok());
    let cost: i32 = cost.unwrap_or(0);
    (assigned, phase, is_ready(pod), cost, Reverse(pod.creation_timestamp()), pod.name_any())
}

fn status(pods: &[Arc<Pod>]) -> PodSetStatus {
    let ready_replicas = pods.iter().filter(|pod| is_ready(pod)).count();
    PodSetStatus { replicas: pods.len(), ready_replicas }
}

/// A Pod as the template describes it. The server completes its name; the context adds the
/// namespace and the owner.
fn new_pod(set: &PodSet) -> Pod {
    let PodTemplateSpec { metadata, spec } = set.spec.template.clone();
    let generate_name = Some(format!("{}-", set.name_any()));
    Pod {
        metadata: ObjectMeta { generate_name, ..metadata.unwrap_or_default() },
        spec,
        status: None,
    }
}

/// Whether a Pod counts: it has not ended, and nobody has begun to delete it.
fn is_active(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase(pod), "Succeeded" | "Failed")
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True")
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// A template is not described field by field: the server checks the Pods made from it.
fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set(replicas: i32) -> PodSet {
        PodSet::new("set", PodSetSpec { replicas, template: PodTemplateSpec::default() })
    }

    /// A Pod that is as good as any, except for this.
    fn pod(name: &str, patch: &Value) -> Arc<Pod> {
        let mut pod = json!({
            "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"containers": [], "nodeName": "node"},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        for (section, fields) in patch.as_object().unwrap() {
            pod[section].as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        }
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn deleted(plan: Plan) -> Vec<String> {
        let Plan::Delete(pods) = plan else { panic!("{plan:?}") };
        pods.iter().map(|pod| pod.name_any()).collect()
    }

    #[test]
    fn exactly_those_that_lack_are_created() {
        let pods = |count| (0..count).map(|n| pod(&n.to_string(), &json!({}))).collect();
        assert_eq!(plan(&set(5), pods(3)), Plan::Create(2));
        assert_eq!(plan(&set(3), pods(3)), Plan::Create(0));
        assert_eq!(deleted(plan(&set(3), pods(5))).len(), 2);
        assert_eq!(deleted(plan(&set(-1), pods(1))), ["0"]);
    }

    #[test]
    fn the_pods_that_are_worth_least_go_first() {
        let pods = vec![
            pod("old", &json!({})),
            pod("young", &json!({"metadata": {"creationTimestamp": "2026-01-02T00:00:00Z"}})),
            pod("dear", &json!({"metadata": {"annotations": {DELETION_COST: "1"}}})),
            pod("cheap", &json!({"metadata": {"annotations": {DELETION_COST: "-1"}}})),
            pod("unready", &json!({"status": {"conditions": []}})),
            pod("pending", &json!({"status": {"phase": "Pending"}})),
            pod("nowhere", &json!({"spec": {"nodeName": null}})),
        ];
        let order = ["nowhere", "pending", "unready", "cheap", "young", "old", "dear"];
        assert_eq!(deleted(plan(&set(0), pods)), order);
    }

    #[test]
    fn pods_that_ended_or_are_being_deleted_do_not_count() {
        assert!(is_active(&pod("a", &json!({}))));
        assert!(!is_active(&pod("b", &json!({"status": {"phase": "Failed"}}))));
        let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-02T00:00:00Z"}});
        assert!(!is_active(&pod("c", &deleting)));
    }
}
