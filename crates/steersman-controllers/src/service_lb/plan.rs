//! What happens to a Service that has or wants a load balancer.

use std::collections::HashSet;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use serde_json::{Value, json};

use crate::cidr::Cidr;

/// Keeps a Service until its load balancer is gone.
pub(super) const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// What happens next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It has what it wants.
    Settled,
    /// It gets this address.
    Ensure(IpAddr),
    /// Its address is taken away.
    Delete,
    /// It cannot have an address, in Kubernetes' words.
    Fail(String),
}

/// Whether a Service has or wants a load balancer of this controller.
pub(super) fn concerns(service: &Service) -> bool {
    wants(service) || has_finalizer(service)
}

/// Whether a change of a Service matters to its load balancer. What this controller writes does not.
pub(super) fn needs_update(old: &Service, new: &Service) -> bool {
    let leaves = new.metadata.deletion_timestamp.is_some() || !wants(new);
    (has_finalizer(new) && leaves)
        || wants(old) != wants(new)
        || (wants(new) && about(old) != about(new))
}

/// What of a Service its load balancer depends on.
pub(super) fn about(service: &Service) -> Value {
    let spec = service.spec.clone().unwrap_or_default();
    json!([
        [service.metadata.uid, spec.load_balancer_ip],
        [spec.external_traffic_policy, spec.session_affinity],
        [service.metadata.annotations, spec.session_affinity_config],
        [spec.ports, spec.external_ips, spec.load_balancer_source_ranges],
        [spec.health_check_node_port, spec.ip_families.map(|families| families.len())],
    ])
}

/// Whether a Service wants a load balancer of this controller.
pub(super) fn wants(service: &Service) -> bool {
    let Some(spec) = &service.spec else { return false };
    spec.type_.as_deref() == Some("LoadBalancer") && spec.load_balancer_class.is_none()
}

/// Whether a Service must not go yet.
pub(super) fn has_finalizer(service: &Service) -> bool {
    service.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

/// The addresses that a Service says to have.
pub(super) fn addresses(service: &Service) -> impl Iterator<Item = IpAddr> {
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let ingress = balancer.and_then(|balancer| balancer.ingress.as_ref()).into_iter().flatten();
    ingress.filter_map(|ingress: &LoadBalancerIngress| ingress.ip.as_deref()?.parse().ok())
}

/// What to do with a Service, where others have taken these addresses.
pub(super) fn plan(service: &Service, pool: &Cidr, taken: &HashSet<IpAddr>) -> Step {
    let is_leaving = service.metadata.deletion_timestamp.is_some();
    if !wants(service) || is_leaving {
        return if has_finalizer(service) { Step::Delete } else { Step::Settled };
    }
    let asked = service.spec.as_ref().and_then(|spec| spec.load_balancer_ip.as_deref());
    let asked = asked.filter(|ip| !ip.is_empty());
    let held = addresses(service).find(|ip| pool.contains(*ip) && !taken.contains(ip));
    let chosen = match asked {
        Some(text) => match text.parse().ok().filter(|ip| pool.contains(*ip)) {
            None => return failed(&format!("{text} is not in the pool of addresses")),
            Some(ip) if taken.contains(&ip) => {
                return failed(&format!("{text} is already allocated"));
            }
            Some(ip) => Some(ip),
        },
        None => held.or_else(|| pool.hosts().find(|ip| !taken.contains(ip))),
    };
    match chosen {
        None => failed("the pool of addresses is full"),
        Some(ip) if held == Some(ip) && has_finalizer(service) => Step::Settled,
        Some(ip) => Step::Ensure(ip),
    }
}

fn failed(why: &str) -> Step {
    Step::Fail(format!("failed to ensure load balancer: {why}"))
}
