//! A whole Kubernetes-compatible cluster in one process.
//!
//! This is the one crate that names both towers: the API server over its store, and the
//! controllers, scheduler and nodes that see nothing of them but a [`kube::Client`]. In process
//! that client calls the API server's service directly: no socket, no TLS. With
//! [`Builder::listen`] the same service is also served over HTTPS.

mod error;

mod controllers;
mod storage;

mod builder;

mod attention;
mod authority;
mod built_in;
mod csi_attacher;
mod fork;
mod identities;
mod missing;

mod custom_metrics;
mod metrics_server;
mod pulse;
mod residents;

mod cluster;

mod start;

pub use builder::Builder;
pub use cluster::{Cluster, Endpoint};
pub use controllers::{ChoiceError, Controllers};
pub use custom_metrics::{Measured, Metrics};
pub use error::StartError;
pub use fork::ForkError;
pub use steersman_apiserver::user::User;
pub use steersman_apiserver::{
    AdmissionConfiguration, AdmissionConfigurationError, ApiServer, Authentication,
    AuthorizationMode, NotServiceRanges, PluginSelection, RuleCost, RuntimeConfig, SelectionError,
    ServiceRanges, UnknownApi, WebhookHandler, rule_costs,
};
pub use steersman_apiserver::{audit, authentication, encryption, pki};
pub use steersman_controllers::{
    AutoscalerSettings, Cidr, ControllerSettings, NodeCidrs, NodeLifecycleSettings, NotACidr,
};
pub use steersman_node::join;
pub use steersman_node::{
    ConnectedNode, ContainerdNode, Housekeeping, NodeError, NodeFailure, NodeGroup, NodeOutage,
    Outages, PodRule, UsageProfile,
};
pub use steersman_scheduler::{
    Configuration as SchedulerConfiguration, ConfigurationError as SchedulerConfigurationError,
    Scheduler,
};
pub use steersman_store::memory::MemoryStore;
pub use steersman_store::{HISTORY_BYTES, disk, etcd};
pub use storage::{OpenStore, Storage};
