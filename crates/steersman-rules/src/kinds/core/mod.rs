//! The core group, whose name is empty: pods, where they run, what they are given, and how they are
//! found. [`data`] has what config maps and secrets share, [`devices`] what Pods and volumes do.

mod binding;
mod component_status;
mod config_map;
mod data;
mod devices;
pub(super) mod endpoints;
pub(super) mod event;
pub(super) mod key_pair;
mod limit_range;
mod namespace;
mod node;
pub(super) mod persistent_volume;
pub(super) mod persistent_volume_claim;
pub(super) mod pod;
mod pod_template;
pub(super) mod replication_controller;
mod resource_quota;
mod secret;
pub mod service;
mod service_account;

use super::kind::Kind;
pub use pod::qos_class;

/// The name of the group.
const GROUP: &str = "";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[
    binding::KIND,
    component_status::KIND,
    config_map::KIND,
    endpoints::KIND,
    event::KIND,
    limit_range::KIND,
    namespace::KIND,
    node::KIND,
    persistent_volume_claim::KIND,
    persistent_volume::KIND,
    pod::KIND,
    pod_template::KIND,
    replication_controller::KIND,
    resource_quota::KIND,
    secret::KIND,
    service_account::KIND,
    service::KIND,
];
