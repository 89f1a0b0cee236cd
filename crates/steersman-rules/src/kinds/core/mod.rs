//! The kinds of the core group.

mod binding;
mod component_status;
mod config_map;
mod endpoints;
mod event;
mod limit_range;
mod namespace;
mod node;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_template;
mod replication_controller;
mod resource_quota;
mod secret;
mod service;
mod service_account;

use super::kind::Kind;

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
