//! What is asked for, and when it has come about.

use serde_json::{Value, json};

pub(super) const NODES: &str = "/api/v1/nodes";
pub(super) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(super) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(super) const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
pub(super) const STATEFUL_SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
pub(super) const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

/// Simulated containers of this image are done at once, on our nodes and on those of the
/// benchmark.
pub(super) const DONE_AT_ONCE: &str = "steersman.dev/exit:0";
/// Those of this one run until they are told to end.
const FOR_EVER: &str = "registry.k8s.io/pause:3.10";
/// What a rolling update changes.
const STAMP: &str = "steersman.dev/stamp";

fn template(app: &str, image: &str, policy: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {"restartPolicy": policy, "containers": [{"name": "app", "image": image}]},
    })
}

fn replicated(kind: &str, app: &str, replicas: usize) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": app, "labels": {"app": app}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": app}},
            "template": template(app, FOR_EVER, "Always"),
        },
    })
}

pub(super) fn deployment(app: &str, replicas: usize) -> Value {
    replicated("Deployment", app, replicas)
}

pub(super) fn stateful_set(app: &str, replicas: usize) -> Value {
    let mut set = replicated("StatefulSet", app, replicas);
    set["spec"]["serviceName"] = app.into();
    set
}

pub(super) fn job(app: &str, completions: usize, parallelism: usize) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": app},
        "spec": {
            "completions": completions,
            "parallelism": parallelism,
            "template": template(app, DONE_AT_ONCE, "Never"),
        },
    })
}

/// A patch that makes all Pods be replaced.
pub(super) fn stamped(stamp: &str) -> Value {
    json!({"spec": {"template": {"metadata": {"annotations": {STAMP: stamp}}}}})
}

pub(super) fn scaled(replicas: usize) -> Value {
    json!({"spec": {"replicas": replicas}})
}

/// Whether the rollout of a Deployment with this stamp is over, as `kubectl rollout status` says.
pub(super) fn is_rolled_out(deployment: &Value, stamp: Option<&str>) -> bool {
    let spec = &deployment["spec"];
    let status = &deployment["status"];
    let found = spec["template"]["metadata"]["annotations"][STAMP].as_str();
    let is_seen = status["observedGeneration"] == deployment["metadata"]["generation"];
    let counts = ["replicas", "updatedReplicas", "availableReplicas"];
    found == stamp && is_seen && counts.iter().all(|count| status[count] == spec["replicas"])
}

/// Whether all Pods of a StatefulSet are available.
pub(super) fn is_whole(set: &Value) -> bool {
    set["status"]["availableReplicas"] == set["spec"]["replicas"]
}

/// Whether a Job is complete.
pub(super) fn is_complete(job: &Value) -> bool {
    let conditions = job["status"]["conditions"].as_array();
    let is_complete =
        |condition: &Value| condition["type"] == "Complete" && condition["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(is_complete))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollout_is_over_when_every_pod_is_new_and_available_and_no_old_one_is_counted() {
        let mut web = deployment("web", 3);
        web["metadata"]["generation"] = 2.into();
        let status = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3,
                            "availableReplicas": 3});
        web["status"] = status.clone();
        assert!(is_rolled_out(&web, None));
        assert!(!is_rolled_out(&web, Some("2")), "the patch has not come yet");
        for (field, other) in [("observedGeneration", 1), ("replicas", 4), ("updatedReplicas", 2)] {
            web["status"] = status.clone();
            web["status"][field] = other.into();
            assert!(!is_rolled_out(&web, None), "{field} is {other}");
        }
    }
}
