//! Behaviour of a kind that needs code: defaults, validation, what a client may not set.
//!
//! Most kinds use [`Plain`]. A kind with behaviour has its own file here and is named in
//! [`for_kind`], the one list of them.

mod access;
mod at;
mod batch;
mod config;
mod daemonset;
mod definition;
mod deployment;
mod document;
#[cfg(test)]
mod family_tests;
mod namespace;
mod network;
mod node;
mod pod;
mod quantity;
mod replicas;
mod revision;
mod rollout;
mod scaling;
mod service;
mod simple;
mod statefulset;
mod storage;
mod template;
#[cfg(test)]
mod workload_tests;

use std::fmt::Debug;
use std::sync::Arc;

use serde_json::Value;

use crate::field::FieldError;

/// Defaults and rules of one kind, over its document.
pub trait Strategy: Debug + Send + Sync {
    /// Fills in what the client left out, as Kubernetes does. Runs before validation, on every write.
    fn default(&self, _object: &mut Value) {}

    /// Resets what a client may not set when creating, such as status.
    fn prepare_create(&self, _object: &mut Value) {}

    /// Resets what a client may not change with an update of the main resource.
    fn prepare_update(&self, _old: &Value, _new: &mut Value) {}

    /// The mistakes in a new object.
    fn validate_create(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// The mistakes in an object that exists, a part of which has changed.
    fn validate_existing(&self, object: &Value) -> Vec<FieldError> {
        self.validate_create(object)
    }

    /// The mistakes in an update, such as changes of immutable fields.
    fn validate_update(&self, _old: &Value, new: &Value) -> Vec<FieldError> {
        self.validate_create(new)
    }

    /// Puts back what a writer of the status may not change, or does not know of.
    fn prepare_status_update(&self, _old: &Value, _new: &mut Value) {}

    /// The mistakes in an update through the status subresource.
    fn validate_status_update(&self, _old: &Value, _new: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What is valid but hardly meant, for the client to read; `old` is what it changes, if
    /// anything.
    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// Whether a change counts as a new generation although the spec is as it was.
    fn is_new_generation(&self, _old: &Value, _new: &Value) -> bool {
        false
    }

    /// How long deletion waits for a graceful end, in seconds; zero deletes at once.
    /// `requested` is what the client asked for.
    fn grace_period(&self, _object: &Value, _requested: Option<i64>) -> i64 {
        0
    }

    /// Whether a client may give status when creating; nodes register themselves with theirs.
    fn keeps_status(&self) -> bool {
        false
    }

    /// Why an object may not be deleted, if it may not.
    fn refuses_deletion(&self, _object: &Value) -> Option<&'static str> {
        None
    }

    /// Marks an object whose deletion begins, such as a namespace's phase.
    fn begin_deletion(&self, _object: &mut Value) {}

    /// Whether something besides `metadata.finalizers` still holds a deleted object.
    fn holds_deletion(&self, _object: &Value) -> bool {
        false
    }
}

/// A kind without behaviour of its own.
#[derive(Debug)]
pub struct Plain;

impl Strategy for Plain {}

/// The strategy of a built-in kind.
pub fn for_kind(group: &str, kind: &str) -> Arc<dyn Strategy> {
    match (group, kind) {
        ("", "Pod") => Arc::new(pod::Pod),
        ("", "ReplicationController") => Arc::new(replicas::ReplicationController),
        ("", "Service") => Arc::new(service::Service),
        ("", "Namespace") => Arc::new(namespace::Namespace),
        ("", "ConfigMap") => Arc::new(config::ConfigMap),
        ("", "Secret") => Arc::new(config::Secret),
        ("", "Node") => Arc::new(node::Node),
        ("", "PersistentVolume" | "PersistentVolumeClaim") => Arc::new(storage::strategy(kind)),
        ("", "Endpoints") => Arc::new(network::strategy(kind)),
        ("", "PodTemplate") => Arc::new(template::PodTemplate),
        ("apps", "Deployment") => Arc::new(deployment::Deployment),
        ("apps", "ReplicaSet") => Arc::new(replicas::ReplicaSet),
        ("apps", "StatefulSet") => Arc::new(statefulset::StatefulSet),
        ("apps", "DaemonSet") => Arc::new(daemonset::DaemonSet),
        ("apps", "ControllerRevision") => Arc::new(revision::ControllerRevision),
        ("batch", "Job") => Arc::new(batch::Job),
        ("batch", "CronJob") => Arc::new(batch::CronJob),
        ("autoscaling", "HorizontalPodAutoscaler") => Arc::new(scaling::HorizontalPodAutoscaler),
        ("policy", "PodDisruptionBudget") => Arc::new(scaling::PodDisruptionBudget),
        ("networking.k8s.io", "Ingress" | "IngressClass" | "NetworkPolicy")
        | ("discovery.k8s.io", "EndpointSlice") => Arc::new(network::strategy(kind)),
        ("storage.k8s.io", "StorageClass" | "CSIDriver") => Arc::new(storage::strategy(kind)),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            Arc::new(access::role_binding())
        }
        ("admissionregistration.k8s.io", kind) if kind.ends_with("WebhookConfiguration") => {
            Arc::new(access::webhooks())
        }
        ("admissionregistration.k8s.io", kind) => Arc::new(access::admission_policy(kind)),
        ("coordination.k8s.io", "Lease") => Arc::new(access::lease()),
        ("scheduling.k8s.io", "PriorityClass") => Arc::new(access::priority_class()),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Arc::new(definition::strategy()),
        // Nothing but a status that their controllers write.
        ("", "ResourceQuota")
        | ("apiregistration.k8s.io", "APIService")
        | ("certificates.k8s.io", "CertificateSigningRequest")
        | ("networking.k8s.io", "ServiceCIDR")
        | ("storage.k8s.io", "VolumeAttachment")
        | ("resource.k8s.io", "ResourceClaim")
        | ("flowcontrol.apiserver.k8s.io", _) => Arc::new(simple::Simple::CLEARED),
        _ => Arc::new(Plain),
    }
}
