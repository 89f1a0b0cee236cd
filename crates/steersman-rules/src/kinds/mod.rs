//! Behaviour of a kind that needs code: defaults, validation, what a client may not set.
//!
//! Most kinds use [`Plain`]. A kind with behaviour has its own file here and is named in
//! [`for_kind`], the one list of them.

mod access;
mod address;
mod admission_policy;
mod api_service;
mod at;
mod batch;
mod certificate;
mod claim;
mod condition;
mod config;
mod daemonset;
pub mod definition;
mod deployment;
mod device;
mod document;
mod endpoints;
mod event;
mod flow_control;
mod ingress;
pub mod internal;
mod label_selector;
mod namespace;
mod network;
mod node;
mod pod;
mod quota;
mod replicas;
mod resource_name;
mod revision;
mod rollout;
mod rules;
mod scaling;
mod scheduling;
pub mod service;
mod statefulset;
mod storage;
mod template;
#[cfg(test)]
mod tests;
mod volume;
mod webhook;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::apply::Resets;
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

    /// What a write through a subresource, or through none, resets; nobody owns it by that.
    fn resets(&self, subresource: &str) -> Resets<'static> {
        if subresource.is_empty() { &[&["status"]] } else { &[] }
    }

    /// The annotations that only the whole object has: to Kubernetes they are fields of the kind,
    /// which metadata on its own lacks.
    fn annotated_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// How long an object stays after it was last written; `None` is until it is deleted.
    fn ttl(&self) -> Option<Duration> {
        None
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
        ("", "Endpoints") => Arc::new(endpoints::ENDPOINTS),
        ("", "Event") => Arc::new(event::EVENT),
        ("", "LimitRange") => Arc::new(quota::LIMIT_RANGE),
        ("", "PersistentVolume") => Arc::new(volume::VOLUME),
        ("", "PersistentVolumeClaim") => Arc::new(claim::CLAIM),
        ("", "ResourceQuota") => Arc::new(quota::RESOURCE_QUOTA),
        ("", "ServiceAccount") => Arc::new(access::SERVICE_ACCOUNT),
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
        ("networking.k8s.io", "Ingress") => Arc::new(ingress::INGRESS),
        ("networking.k8s.io", "IngressClass") => Arc::new(ingress::INGRESS_CLASS),
        ("networking.k8s.io", "NetworkPolicy") => Arc::new(network::NETWORK_POLICY),
        ("networking.k8s.io", "IPAddress") => Arc::new(network::IP_ADDRESS),
        ("networking.k8s.io", "ServiceCIDR") => Arc::new(network::SERVICE_CIDR),
        ("discovery.k8s.io", "EndpointSlice") => Arc::new(endpoints::ENDPOINT_SLICE),
        ("events.k8s.io", "Event") => Arc::new(event::NEW_EVENT),
        ("storage.k8s.io", kind) => Arc::new(storage_rules(kind)),
        ("resource.k8s.io", kind) => Arc::new(device_rules(kind)),
        ("rbac.authorization.k8s.io", "Role") => Arc::new(access::ROLE),
        ("rbac.authorization.k8s.io", "ClusterRole") => Arc::new(access::CLUSTER_ROLE),
        ("rbac.authorization.k8s.io", "RoleBinding") => Arc::new(access::ROLE_BINDING),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => {
            Arc::new(access::CLUSTER_ROLE_BINDING)
        }
        ("admissionregistration.k8s.io", kind) => Arc::new(admission_rules(kind)),
        ("coordination.k8s.io", "Lease") => Arc::new(scheduling::LEASE),
        ("scheduling.k8s.io", "PriorityClass") => Arc::new(scheduling::PRIORITY_CLASS),
        ("node.k8s.io", "RuntimeClass") => Arc::new(scheduling::RUNTIME_CLASS),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Arc::new(definition::DEFINITION),
        ("apiregistration.k8s.io", "APIService") => Arc::new(api_service::API_SERVICE),
        ("certificates.k8s.io", "CertificateSigningRequest") => Arc::new(certificate::REQUEST),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => Arc::new(flow_control::FLOW_SCHEMA),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => {
            Arc::new(flow_control::PRIORITY_LEVEL)
        }
        _ => Arc::new(Plain),
    }
}

/// The mistakes in saying whom to call: of webhooks for admission and for conversion.
pub(crate) fn webhook_client(config: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    webhook::client_config(&at::At::new(config, path), &mut errors);
    errors
}

fn storage_rules(kind: &str) -> rules::Rules {
    match kind {
        "StorageClass" => storage::STORAGE_CLASS,
        "VolumeAttributesClass" => storage::VOLUME_ATTRIBUTES_CLASS,
        "CSIDriver" => storage::CSI_DRIVER,
        "CSINode" => storage::CSI_NODE,
        "CSIStorageCapacity" => storage::CSI_STORAGE_CAPACITY,
        "VolumeAttachment" => storage::VOLUME_ATTACHMENT,
        _ => rules::Rules::NONE,
    }
}

fn device_rules(kind: &str) -> rules::Rules {
    match kind {
        "DeviceClass" => device::CLASS,
        "ResourceClaim" => device::CLAIM,
        "ResourceClaimTemplate" => device::CLAIM_TEMPLATE,
        "ResourceSlice" => device::SLICE,
        _ => rules::Rules::NONE,
    }
}

fn admission_rules(kind: &str) -> rules::Rules {
    match kind {
        "MutatingWebhookConfiguration" => webhook::MUTATING,
        "ValidatingWebhookConfiguration" => webhook::VALIDATING,
        "MutatingAdmissionPolicy" => admission_policy::MUTATING,
        "MutatingAdmissionPolicyBinding" => admission_policy::MUTATING_BINDING,
        "ValidatingAdmissionPolicy" => admission_policy::VALIDATING,
        "ValidatingAdmissionPolicyBinding" => admission_policy::VALIDATING_BINDING,
        _ => rules::Rules::NONE,
    }
}
