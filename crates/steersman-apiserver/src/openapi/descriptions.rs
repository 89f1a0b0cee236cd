//! What types and fields mean, in Kubernetes' words: k8s-openapi brings them.
//!
//! The texts are collected when definitions are rendered, and dropped afterwards. Types that
//! the table of built-in types does not have, because no kind contains them, come from here as
//! a whole.

use std::sync::OnceLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::apimachinery::pkg::version;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration;
use schemars::SchemaGenerator;
use serde_json::{Map, Value};

use super::names;

/// Schemas by definition name.
pub(super) struct Descriptions(pub(super) Map<String, Value>);

/// What many definitions and parameters have in common, by field. Few enough to be kept.
#[derive(Debug)]
pub(super) struct Common {
    /// `apiVersion`, `kind` and `metadata` of an object.
    object: Value,
    /// The same of a list.
    list: Value,
    delete_options: Value,
}

impl Common {
    /// Collected when first asked for.
    pub(super) fn texts() -> &'static Self {
        static TEXTS: OnceLock<Common> = OnceLock::new();
        TEXTS.get_or_init(|| {
            let mut generator = SchemaGenerator::default();
            generator.subschema_for::<k8s_openapi::api::core::v1::ConfigMap>();
            generator.subschema_for::<meta::Status>();
            generator.subschema_for::<meta::DeleteOptions>();
            let mut known = generator.take_definitions(true);
            let mut take = |name: &str| known.remove(name).unwrap_or_default()["properties"].take();
            Self {
                object: take("io.k8s.api.core.v1.ConfigMap"),
                // The one kind with the metadata of a list that has a schema there.
                list: take(&names::meta("Status")),
                delete_options: take(&names::meta("DeleteOptions")),
            }
        })
    }

    /// A field that every object has.
    pub(super) fn of_object(&self, field: &str) -> &str {
        text(&self.object, field)
    }

    /// A field that every list has.
    pub(super) fn of_list(&self, field: &str) -> &str {
        text(&self.list, field)
    }

    /// A parameter of a deletion; empty for one that it does not have.
    pub(super) fn of_deletion(&self, parameter: &str) -> &str {
        text(&self.delete_options, parameter)
    }
}

fn text<'a>(properties: &'a Value, field: &str) -> &'a str {
    properties[field]["description"].as_str().unwrap_or("")
}

/// Asks for kinds of groups below `k8s_openapi::api`; what they contain comes along.
macro_rules! describe {
    ($generator:ident, $( $group:ident $version:ident { $($kind:ident)* } )*) => {
        $( $( $generator.subschema_for::<k8s_openapi::api::$group::$version::$kind>(); )* )*
    };
}

impl Descriptions {
    pub(super) fn collect() -> Self {
        let mut generator = SchemaGenerator::default();
        kinds(&mut generator);
        generator.subschema_for::<apiextensions::CustomResourceDefinition>();
        generator.subschema_for::<apiregistration::APIService>();
        generator.subschema_for::<meta::APIGroupList>();
        generator.subschema_for::<meta::APIResourceList>();
        generator.subschema_for::<meta::APIVersions>();
        generator.subschema_for::<meta::Patch>();
        generator.subschema_for::<meta::Status>();
        generator.subschema_for::<version::Info>();
        Self(generator.take_definitions(true))
    }

    /// What is known of a type; null if nothing is.
    pub(super) fn of(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }
}

#[rustfmt::skip]
fn kinds(generator: &mut SchemaGenerator) {
    describe! { generator,
        admissionregistration v1 {
            MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration
            ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
            ValidatingWebhookConfiguration
        }
        apiserverinternal v1alpha1 { StorageVersion }
        apps v1 { ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet }
        authentication v1 { SelfSubjectReview TokenRequest TokenReview }
        authorization v1 {
            LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview
            SubjectAccessReview
        }
        autoscaling v1 { HorizontalPodAutoscaler Scale }
        autoscaling v2 { HorizontalPodAutoscaler }
        batch v1 { CronJob Job }
        certificates v1 { CertificateSigningRequest }
        coordination v1 { Lease }
        core v1 {
            Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node
            PersistentVolume PersistentVolumeClaim Pod PodTemplate ReplicationController
            ResourceQuota Secret Service ServiceAccount
        }
        discovery v1 { EndpointSlice }
        events v1 { Event }
        flowcontrol v1 { FlowSchema PriorityLevelConfiguration }
        networking v1 { IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR }
        node v1 { RuntimeClass }
        policy v1 { Eviction PodDisruptionBudget }
        rbac v1 { ClusterRole ClusterRoleBinding Role RoleBinding }
        resource v1 { DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice }
        resource v1beta2 { DeviceTaintRule }
        scheduling v1 { PriorityClass }
        storage v1 {
            CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment
            VolumeAttributesClass
        }
        storagemigration v1beta1 { StorageVersionMigration }
    }
}
