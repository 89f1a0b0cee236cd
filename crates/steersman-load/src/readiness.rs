//! When an object counts as ready.

use kube::core::DynamicObject;
use serde_json::Value;

/// How to tell.
#[derive(Clone, Debug)]
pub(crate) enum Readiness {
    /// As soon as it is there.
    AtOnce,
    /// All its Pods are of the last template and available.
    Deployment,
    /// A condition is true.
    Condition(String),
}

impl Readiness {
    /// Whether an object may be there and not be ready.
    pub(crate) fn takes_time(&self) -> bool {
        !matches!(self, Self::AtOnce)
    }

    /// Whether an object is ready, by what its status says of its last change.
    pub(crate) fn of(&self, object: &DynamicObject) -> bool {
        let status = &object.data["status"];
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        match self {
            Self::AtOnce => true,
            Self::Deployment => {
                let wanted = object.data["spec"]["replicas"].as_u64().unwrap_or(1);
                let counts = ["replicas", "updatedReplicas", "availableReplicas"];
                is_observed(object) && counts.iter().all(|name| count(&status[*name]) == wanted)
            }
            Self::Condition(name) => {
                let conditions = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
                let condition = conditions.iter().find(|condition| condition["type"] == **name);
                is_observed(object) && condition.is_some_and(|found| found["status"] == "True")
            }
        }
    }
}

/// Whether the status is about the last change; if it does not say about which, it is believed.
fn is_observed(object: &DynamicObject) -> bool {
    let observed = object.data["status"]["observedGeneration"].as_i64();
    match (object.metadata.generation, observed) {
        (Some(generation), Some(observed)) => observed >= generation,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Readiness;

    fn is_ready(readiness: &Readiness, object: Value) -> bool {
        readiness.of(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_deployment_is_ready_when_all_its_pods_are_new_and_available() {
        let status = |observed, updated, available| {
            json!({
                "metadata": {"generation": 2},
                "spec": {"replicas": 3},
                "status": {"observedGeneration": observed, "replicas": 3,
                           "updatedReplicas": updated, "availableReplicas": available},
            })
        };
        let ready = |object| is_ready(&Readiness::Deployment, object);
        assert!(ready(status(2, 3, 3)));
        assert!(!ready(status(1, 3, 3)), "the status is about an earlier spec");
        assert!(!ready(status(2, 2, 3)) && !ready(status(2, 3, 2)));
        assert!(!ready(json!({"metadata": {}, "spec": {"replicas": 1}})));
        assert!(ready(json!({"metadata": {}, "spec": {"replicas": 0}, "status": {}})));
    }

    #[test]
    fn a_condition_must_be_true_and_about_the_last_change() {
        let object = |observed, status| {
            json!({
                "metadata": {"generation": 2},
                "status": {"observedGeneration": observed,
                           "conditions": [{"type": "Ready", "status": status}]},
            })
        };
        let ready = |object| is_ready(&Readiness::Condition("Ready".into()), object);
        assert!(ready(object(Some(2), "True")) && ready(object(None, "True")));
        assert!(!ready(object(Some(1), "True")) && !ready(object(Some(2), "Unknown")));
        assert!(is_ready(&Readiness::AtOnce, json!({"metadata": {}})));
    }
}
