//! What the controllers of Services share: which Pods a Service selects, which of them are its
//! endpoints, and how those are told apart.
//!
//! Nobody here reads or writes anything; [`Selectors`] and [`TriggerTimes`] remember what their
//! controllers tell them.

mod addresses;
mod hash;
mod pods;
mod ports;
mod selectors;
mod slices;
mod subsets;
mod trigger_time;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServiceSpec};

pub(crate) use addresses::{canonical, families_of, pod_addresses};
pub(crate) use pods::{is_endpoint, sets_hostname};
pub(crate) use ports::{are_the_same_everywhere, find_port, order_ports};
pub(crate) use selectors::{Selectors, concerns_some_endpoint};
pub(crate) use slices::{
    Desired, PortsKey, name_prefix, ports_key, same_beyond_identity, same_target,
};
pub(crate) use subsets::repack;
pub(crate) use trigger_time::TriggerTimes;

/// When what led to a change of endpoints happened, on whatever tells of them.
pub(crate) const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// What is told of Services without a cluster address.
pub(crate) const HEADLESS: &str = "service.kubernetes.io/headless";
/// Of which Service an EndpointSlice tells.
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// Who keeps an EndpointSlice.
pub(crate) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// What a Service selects, if its endpoints are to be found: one of another name has none, and
/// those of one without a selector are written by somebody else.
pub(crate) fn selector(service: &Service) -> Option<&BTreeMap<String, String>> {
    let spec = service.spec.as_ref()?;
    let selector = spec.selector.as_ref().filter(|selector| !selector.is_empty())?;
    (spec.type_.as_deref() != Some("ExternalName")).then_some(selector)
}

/// Whether a Service has an address of its own.
pub(crate) fn has_cluster_ip(spec: &ServiceSpec) -> bool {
    spec.cluster_ip.as_deref().is_some_and(|ip| !ip.is_empty() && ip != "None")
}

/// The name of a Service, and that of its namespace.
pub(crate) fn names(service: &Service) -> (&str, &str) {
    let meta = &service.metadata;
    (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}
