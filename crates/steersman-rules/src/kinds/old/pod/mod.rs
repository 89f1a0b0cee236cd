//! Pods: the strategy itself. [`defaults`] and [`spec`] also serve pod templates.
//!
//! [`spec`] names the rules in the order they are checked; each topic has a file.

mod affinity;
pub(in crate::kinds) mod annotations;
pub(in crate::kinds) mod claims;
mod containers;
pub(in crate::kinds) mod defaults;
mod devices;
mod dns;
mod env;
mod ephemeral;
mod host;
mod label_keys;
mod mounts;
mod probes;
mod projected;
mod qos;
pub(in crate::kinds) mod resources;
mod restart;
pub(in crate::kinds) mod scheduling;
mod security;
pub(in crate::kinds) mod spec;
mod status;
#[cfg(test)]
mod tests;
mod update;
mod volumes;
pub(in crate::kinds) mod warnings;
mod windows;

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::rules::Strategy;
use crate::rules::at::At;
use crate::rules::document::{fill, fill_text, items, set, text, within};

/// How long a pod stays on a node that is gone before it is evicted, unless it says otherwise.
const EVICTION_SECONDS: i64 = 300;

/// The strategy of pods.
#[derive(Debug)]
pub(in crate::kinds) struct Pod;

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
            resources::default_of_pod(spec);
        });
        label_keys::merge(pod);
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

    /// Also does what admission does in Kubernetes, which is asked about updates, too: whoever
    /// replaces a pod need not repeat the tolerations that every pod has.
    fn prepare_update(&self, old: &Value, new: &mut Value) {
        within(new, "spec", |spec| {
            tolerate_lost_nodes(spec);
            for key in ["priority", "preemptionPolicy", "resources"] {
                if !old["spec"][key].is_null() {
                    fill(spec, key, old["spec"][key].clone());
                }
            }
        });
    }

    fn validate_create(&self, pod: &Value) -> Vec<FieldError> {
        let mut errors = metadata_and_spec(pod);
        let at = At::root(pod);
        if !items(&pod["spec"]["ephemeralContainers"]).is_empty() {
            let field = at.at("spec.ephemeralContainers");
            errors.push(field.forbidden("cannot be set on create"));
        }
        if !text(&pod["spec"]["nodeName"]).is_empty()
            && !items(&pod["spec"]["schedulingGates"]).is_empty()
        {
            let why = "cannot be set until all schedulingGates have been cleared";
            errors.push(at.at("spec.nodeName").forbidden(why));
        }
        annotations::match_fields(&pod["metadata"]["annotations"], &at.at("spec"), &mut errors);
        errors
    }

    fn validate_existing(&self, pod: &Value) -> Vec<FieldError> {
        metadata_and_spec(pod)
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = metadata_and_spec(new);
        update::validate(old, new, &mut errors);
        errors
    }

    fn prepare_status_update(&self, old: &Value, new: &mut Value) {
        status::prepare(old, new);
    }

    fn validate_status_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let [old_annotations, new_annotations] =
            [old, new].map(|pod| &pod["metadata"]["annotations"]);
        annotations::update(old_annotations, new_annotations, &mut errors);
        errors.extend(status::validate(old, new));
        errors
    }

    fn warnings(&self, pod: &Value, old: Option<&Value>) -> Vec<String> {
        if old.is_some() {
            return Vec::new();
        }
        let mut warnings = warnings::of(&At::root(pod));
        warnings.extend(warnings::of_name(pod, "the Pod's hostname"));
        warnings
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

fn metadata_and_spec(pod: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (at, metadata) = (At::root(pod), &pod["metadata"]);
    let spec = at.at("spec");
    annotations::validate(&at.at("metadata.annotations"), &spec, &mut errors);
    spec::validate(&spec, metadata, &mut errors);
    projected::tokens_need_an_account(&spec, &mut errors);
    spec.at("terminationGracePeriodSeconds").not_negative(&mut errors);
    errors
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
