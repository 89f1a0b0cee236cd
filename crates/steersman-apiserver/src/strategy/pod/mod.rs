//! Pods: the strategy itself. [`defaults`] and [`validation`] also serve pod templates.

pub(super) mod defaults;
mod qos;
#[cfg(test)]
mod tests;
pub(super) mod validation;

use serde_json::{Value, json};

use super::Strategy;
use super::document::{fill, fill_text, items, set, text, within};
use crate::field::FieldError;

/// How long a pod stays on a node that is gone before it is evicted, unless it says otherwise.
const EVICTION_SECONDS: i64 = 300;

/// The strategy of pods.
#[derive(Debug)]
pub(super) struct Pod;

impl Strategy for Pod {
    fn default(&self, pod: &mut Value) {
        within(pod, "spec", |spec| {
            defaults::pod_spec(spec);
            defaults::pod_only(spec);
        });
    }

    /// Also does what admission does in Kubernetes: service account, tolerations, priority.
    fn prepare_create(&self, pod: &mut Value) {
        self.default(pod);
        within(pod, "spec", |spec| {
            fill_text(spec, "serviceAccountName", "default");
            let account = spec["serviceAccountName"].clone();
            set(spec, "serviceAccount", account);
            tolerate_lost_nodes(spec);
            prioritise(spec);
        });
        let mut status = json!({"phase": "Pending", "qosClass": qos::class(&pod["spec"])});
        if !items(&pod["spec"]["schedulingGates"]).is_empty() {
            let condition = json!({
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            });
            set(&mut status, "conditions", vec![condition]);
        }
        set(pod, "status", status);
    }

    fn validate_create(&self, pod: &Value) -> Vec<FieldError> {
        validation::pod_spec(&pod["spec"], "spec")
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        errors.extend(validation::pod_spec_update(&old["spec"], &new["spec"]));
        errors
    }

    /// A pod that no node runs, or that has ended, has nothing to wait for.
    fn grace_period(&self, pod: &Value, requested: Option<i64>) -> i64 {
        let ended = ["Succeeded", "Failed"].contains(&text(&pod["status"]["phase"]));
        if ended || text(&pod["spec"]["nodeName"]).is_empty() {
            return 0;
        }
        let own = pod["spec"]["terminationGracePeriodSeconds"].as_i64();
        match requested.or(own).unwrap_or(0) {
            ..0 => 1,
            seconds => seconds,
        }
    }
}

fn tolerate_lost_nodes(spec: &mut Value) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerates = |toleration: &Value| {
            let any = |field: &str, value: &str| {
                let given = text(&toleration[field]);
                given == value || given.is_empty()
            };
            any("key", key) && any("effect", "NoExecute")
        };
        if items(&spec["tolerations"]).iter().any(tolerates) {
            continue;
        }
        fill(spec, "tolerations", json!([]));
        if let Some(tolerations) = spec["tolerations"].as_array_mut() {
            tolerations.push(json!({
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": EVICTION_SECONDS,
            }));
        }
    }
}

/// The priority of the classes that always exist; others are resolved by admission.
fn prioritise(spec: &mut Value) {
    let priority = match text(&spec["priorityClassName"]) {
        "" => 0,
        "system-cluster-critical" => 2_000_000_000,
        "system-node-critical" => 2_000_001_000,
        _ => return,
    };
    fill(spec, "priority", priority);
    fill(spec, "preemptionPolicy", "PreemptLowerPriority");
}
