//! Kubernetes' admission plug-ins, one file or folder each, and which of them are on.
//!
//! [`ORDER`] has them in the order in which they are asked, which is Kubernetes'. What a plug-in is
//! and when it is asked says [`crate::state::plugins`]. What they read of other objects they take
//! from [`stored`], a service account as [`account`] has it; what they are told beside being on is in
//! the [configuration]; [`fields`], [`secrets`] and [`tolerations`] look into documents for them.

mod account;
mod configuration;
mod fields;
mod secrets;
mod signing_request;
mod stored;
mod tolerations;

mod always_deny;
mod always_pull_images;
mod certificates;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod deny_service_external_ips;
mod event_rate_limit;
mod extended_resource_toleration;
mod image_policy_webhook;
mod limit_pod_hard_anti_affinity_topology;
mod namespace_exists;
mod namespace_lifecycle;
mod node_declared_feature_validator;
mod node_restriction;
mod owner_references_permission_enforcement;
mod persistent_volume_claim_resize;
mod pod_node_selector;
mod pod_resize_validator;
mod pod_toleration_restriction;
mod pod_topology_labels;
mod priority;
mod runtime_class;
mod service_account;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;

mod resource_quota;

mod limit_ranger;
mod pod_security;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::admission_registration::Asked;
use crate::metrics::Admission;
use crate::state::plugins::{Plugin, Plugins};
pub use configuration::{AdmissionConfiguration, AdmissionConfigurationError};

/// Makes a plug-in with its configuration, if that is sound.
type Make = fn(Option<&Value>) -> Result<Box<dyn Plugin>, String>;

/// A plug-in that Kubernetes has.
struct Known {
    name: &'static str,
    /// Whether it is on unless switched off.
    on: bool,
    part: Part,
}

/// Where this server has a plug-in.
enum Part {
    /// Here; asked before the webhooks.
    Early(fn() -> Box<dyn Plugin>),
    /// The same, of one that can be configured.
    Configured(Make),
    /// Here; asked after the webhooks.
    Late(fn() -> Box<dyn Plugin>),
    /// The same, of one that can be configured.
    ConfiguredLate(Make),
    /// In the part of the server whose business it is, which knows whether it is on.
    Elsewhere,
    /// Nowhere: in Kubernetes it is asked and does nothing, or waits for a feature that is off.
    Idle,
}

use Part::{Configured, ConfiguredLate, Early, Elsewhere, Idle, Late};

/// All plug-ins of Kubernetes, in the order in which they are asked.
#[rustfmt::skip]
const ORDER: &[Known] = &[
    off("AlwaysAdmit", Idle),
    off("NamespaceAutoProvision", Elsewhere),
    on("NamespaceLifecycle", Early(|| Box::new(namespace_lifecycle::NamespaceLifecycle))),
    off("NamespaceExists", Early(|| Box::new(namespace_exists::NamespaceExists))),
    off("LimitPodHardAntiAffinityTopology", Early(|| Box::new(limit_pod_hard_anti_affinity_topology::LimitPodHardAntiAffinityTopology))),
    on("LimitRanger", Early(limit_ranger::plugin)),
    on("ServiceAccount", Early(|| Box::new(service_account::ServiceAccount))),
    // Kubernetes has it off, and kubeadm switches it on wherever nodes are authorised by what they run.
    on("NodeRestriction", Early(|| Box::new(node_restriction::NodeRestriction))),
    on("TaintNodesByCondition", Early(|| Box::new(taint_nodes_by_condition::TaintNodesByCondition))),
    off("AlwaysPullImages", Early(|| Box::new(always_pull_images::AlwaysPullImages))),
    off("ImagePolicyWebhook", Configured(image_policy_webhook::plugin)),
    on("PodSecurity", Configured(pod_security::plugin)),
    off("PodNodeSelector", Configured(pod_node_selector::plugin)),
    on("Priority", Early(|| Box::new(priority::Priority))),
    on("DefaultTolerationSeconds", Early(|| Box::new(default_toleration_seconds::DefaultTolerationSeconds))),
    off("PodTolerationRestriction", Configured(pod_toleration_restriction::plugin)),
    off("EventRateLimit", Configured(event_rate_limit::plugin)),
    off("ExtendedResourceToleration", Early(|| Box::new(extended_resource_toleration::ExtendedResourceToleration))),
    on("DefaultStorageClass", Early(|| Box::new(default_storage_class::DefaultStorageClass))),
    on("StorageObjectInUseProtection", Early(|| Box::new(storage_object_in_use_protection::StorageObjectInUseProtection))),
    on("PodGroupProtection", Idle),
    off("OwnerReferencesPermissionEnforcement", Early(|| Box::new(owner_references_permission_enforcement::OwnerReferencesPermissionEnforcement))),
    on("PersistentVolumeClaimResize", Early(|| Box::new(persistent_volume_claim_resize::PersistentVolumeClaimResize))),
    on("RuntimeClass", Early(|| Box::new(runtime_class::RuntimeClass))),
    on("CertificateApproval", Early(|| Box::new(certificates::CertificateApproval))),
    on("CertificateSigning", Early(|| Box::new(certificates::CertificateSigning))),
    on("ClusterTrustBundleAttest", Idle),
    on("CertificateSubjectRestriction", Early(|| Box::new(certificates::CertificateSubjectRestriction))),
    on("DefaultIngressClass", Early(|| Box::new(default_ingress_class::DefaultIngressClass))),
    off("DenyServiceExternalIPs", Early(|| Box::new(deny_service_external_ips::DenyServiceExternalIps))),
    on("PodTopologyLabels", Early(|| Box::new(pod_topology_labels::PodTopologyLabels))),
    on("PodGroupWorkloadExists", Idle),
    on("NodeDeclaredFeatureValidator", Early(|| Box::new(node_declared_feature_validator::NodeDeclaredFeatureValidator))),
    on("JobValidation", Idle),
    on("PodResizeValidator", Early(|| Box::new(pod_resize_validator::PodResizeValidator))),
    on("MutatingAdmissionPolicy", Elsewhere),
    on("MutatingAdmissionWebhook", Elsewhere),
    on("ValidatingAdmissionPolicy", Elsewhere),
    on("ValidatingAdmissionWebhook", Elsewhere),
    on("ResourceQuota", ConfiguredLate(resource_quota::plugin)),
    off("AlwaysDeny", Late(|| Box::new(always_deny::AlwaysDeny))),
];

const fn on(name: &'static str, part: Part) -> Known {
    Known { name, on: true, part }
}

const fn off(name: &'static str, part: Part) -> Known {
    Known { name, on: false, part }
}

/// Why plug-ins cannot be switched as was asked, in Kubernetes' words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// There is no plug-in of this name.
    #[error("{flag}-admission-plugins plugin {name:?} is unknown")]
    Unknown {
        /// Which flag named it: `enable` or `disable`.
        flag: &'static str,
        /// The name.
        name: String,
    },
    /// Plug-ins were switched both on and off.
    #[error("[{names}] in enable-admission-plugins and disable-admission-plugins overlapped")]
    Overlap {
        /// Their names.
        names: String,
    },
    /// A plug-in is configured that this server cannot configure.
    #[error("admission plugin {name:?} takes no configuration on this server")]
    NotConfigurable {
        /// Its name.
        name: String,
    },
    /// A plug-in cannot be what its configuration says.
    #[error("failed to initialize admission: couldn't init admission plugin {name:?}: {why}")]
    Configuration {
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
}

/// Which plug-ins are on: those that Kubernetes has on by default, but for what was switched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginSelection {
    enabled: BTreeSet<String>,
    disabled: BTreeSet<String>,
    configuration: AdmissionConfiguration,
}

impl PluginSelection {
    /// Switches plug-ins on and off by name, as `--enable-admission-plugins` and
    /// `--disable-admission-plugins` do.
    ///
    /// # Errors
    ///
    /// If there is no plug-in of a name, or one is switched both on and off.
    pub fn new<'a>(
        enabled: impl IntoIterator<Item = &'a str>,
        disabled: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, SelectionError> {
        let enabled: BTreeSet<String> = enabled.into_iter().map(str::to_owned).collect();
        let disabled: BTreeSet<String> = disabled.into_iter().map(str::to_owned).collect();
        for (names, flag) in [(&enabled, "enable"), (&disabled, "disable")] {
            if let Some(name) = names.iter().find(|name| known(name).is_none()) {
                return Err(SelectionError::Unknown { flag, name: name.clone() });
            }
        }
        let both: Vec<&str> = enabled.intersection(&disabled).map(String::as_str).collect();
        if !both.is_empty() {
            return Err(SelectionError::Overlap { names: both.join(" ") });
        }
        Ok(Self { enabled, disabled, configuration: AdmissionConfiguration::default() })
    }

    /// The same, with what plug-ins are told beside being on, as
    /// `--admission-control-config-file` does. As in Kubernetes, what is said of plug-ins that are
    /// off, or that nobody knows, does not matter.
    ///
    /// # Errors
    ///
    /// If a plug-in that is on cannot be what it is told.
    pub fn configured(self, configuration: AdmissionConfiguration) -> Result<Self, SelectionError> {
        for known in ORDER.iter().filter(|known| self.selects(known)) {
            let told = configuration.of(known.name);
            match known.part {
                Configured(make) | ConfiguredLate(make) => drop(known.made(make, told)?),
                _ if told.is_some() => {
                    return Err(SelectionError::NotConfigurable { name: known.name.to_owned() });
                }
                _ => {}
            }
        }
        Ok(Self { configuration, ..self })
    }

    /// The plug-ins of a server beside which no controllers run: all that are on by default, but
    /// not `ServiceAccount`, for nobody makes the accounts that every Pod would need.
    pub fn without_controllers() -> Self {
        Self::default().by_default("ServiceAccount", false)
    }

    /// The same, with a plug-in on or off unless it was switched by name.
    #[must_use]
    pub fn by_default(mut self, name: &str, on: bool) -> Self {
        if !self.enabled.contains(name) && !self.disabled.contains(name) {
            let names = if on { &mut self.enabled } else { &mut self.disabled };
            names.insert(name.to_owned());
        }
        self
    }

    /// The names of what was switched on, and of what was switched off.
    pub(crate) fn switched(&self) -> [&BTreeSet<String>; 2] {
        [&self.enabled, &self.disabled]
    }

    /// The names of all plug-ins of Kubernetes, in the order in which they are asked.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ORDER.iter().map(|known| known.name)
    }

    /// The names of the plug-ins that are on, in the same order.
    pub fn on(&self) -> impl Iterator<Item = &'static str> + '_ {
        ORDER.iter().filter(|known| self.selects(known)).map(|known| known.name)
    }

    fn selects(&self, known: &Known) -> bool {
        self.enabled.contains(known.name) || (known.on && !self.disabled.contains(known.name))
    }

    fn has(&self, name: &str) -> bool {
        known(name).is_some_and(|known| self.selects(known))
    }

    /// The plug-ins that are on. No server runs without one that cannot be made: it may be there to
    /// refuse.
    pub(crate) fn plugins(&self, metrics: &Admission) -> Result<Plugins, SelectionError> {
        let mut plugins = Plugins::default();
        plugins.namespace_lifecycle = self.has("NamespaceLifecycle");
        plugins.namespace_provision = self.has("NamespaceAutoProvision");
        for known in ORDER.iter().filter(|known| self.selects(known)) {
            let told = self.configuration.of(known.name);
            let times = || metrics.of_plugin(known.name);
            match known.part {
                Early(make) => plugins.push(make(), times()),
                Configured(make) => plugins.push(known.made(make, told)?, times()),
                Late(make) => plugins.push_late(make(), times()),
                ConfiguredLate(make) => plugins.push_late(known.made(make, told)?, times()),
                Elsewhere | Idle => {}
            }
        }
        Ok(plugins)
    }

    /// Which policies are evaluated.
    pub(crate) fn policies(&self) -> Asked {
        Asked {
            mutating: self.has("MutatingAdmissionPolicy"),
            validating: self.has("ValidatingAdmissionPolicy"),
        }
    }

    /// Which webhooks are asked.
    pub(crate) fn webhooks(&self) -> Asked {
        Asked {
            mutating: self.has("MutatingAdmissionWebhook"),
            validating: self.has("ValidatingAdmissionWebhook"),
        }
    }
}

impl Known {
    /// The plug-in, with what it is told.
    fn made(&self, make: Make, told: Option<&Value>) -> Result<Box<dyn Plugin>, SelectionError> {
        make(told).map_err(|why| SelectionError::Configuration { name: self.name.to_owned(), why })
    }
}

fn known(name: &str) -> Option<&'static Known> {
    ORDER.iter().find(|known| known.name == name)
}
