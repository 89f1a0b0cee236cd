use k8s_openapi::api::apps::v1::{ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::ReplicationController;
use serde_json::json;

use crate::replicaset::replicated::Replicated;

#[test]
fn a_replication_controller_is_decided_upon_as_a_replica_set() {
    let controller: ReplicationController = serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "default", "generation": 3},
        "spec": {
            "replicas": 2, "minReadySeconds": 5, "selector": {"app": "web"},
            "template": {"metadata": {"labels": {"app": "web"}},
                         "spec": {"containers": [{"name": "main", "image": "nginx"}]}},
        },
        "status": {"replicas": 1, "conditions": [
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}]},
    }))
    .unwrap();
    let set = controller.as_set();
    let spec = set.spec.as_ref().unwrap();
    assert_eq!((spec.replicas, spec.min_ready_seconds), (Some(2), Some(5)));
    assert_eq!(spec.selector.match_labels.as_ref().unwrap()["app"], "web");
    assert_eq!(spec.template, controller.spec.as_ref().unwrap().template);
    let before = set.status.as_ref().unwrap().conditions.as_ref().unwrap();
    assert_eq!(before[0].reason.as_deref(), Some("FailedCreate"));
    let status = ReplicationController::status_of(ReplicaSetStatus {
        replicas: 2,
        ready_replicas: Some(1),
        observed_generation: Some(3),
        terminating_replicas: Some(4),
        conditions: Some(vec![ReplicaSetCondition::default()]),
        ..ReplicaSetStatus::default()
    });
    assert_eq!((status.replicas, status.ready_replicas), (2, Some(1)));
    assert_eq!((status.observed_generation, status.conditions.unwrap().len()), (Some(3), 1));
}
