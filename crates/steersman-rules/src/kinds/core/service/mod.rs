//! Services: what they are filled with, and which rules hold when.
//!
//! The rules are in [`validation`], those about addresses in [`families`]; what an update keeps and
//! what a change of type drops is in [`update`]. Addresses and node ports are allocated elsewhere;
//! here they are only kept.

mod columns;
mod families;
#[cfg(test)]
mod tests;
mod update;
mod validation;

pub(in crate::kinds) use self::validation::ingress_point;

use serde_json::{Value, json};

use crate::kinds::kind::{Kind, Trait};
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::address;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill, fill_text, is_empty, items, remove, set, text, within};
use crate::rules::status_addresses;

/// What is said of `Service`.
pub(super) const KIND: Kind = Kind {
    plural: "services",
    name: "Service",
    short_names: &["svc"],
    traits: &[Trait::All, Trait::CreateOnUpdate, Trait::Proxy, Trait::Status],
    storage_prefix: Some("services/specs"),
    selectable_fields: &["spec.clusterIP", "spec.type"],
    rules: &RULES,
    columns: columns::columns,
    effect: Some(Effect::Service),
    ..Kind::namespaced(super::GROUP, "v1")
};

/// How long a client sticks to its pod, unless the service says otherwise.
const AFFINITY_SECONDS: i64 = 3 * 3600;

const RULES: Rules = Rules {
    default,
    status: Some(|| json!({"loadBalancer": {}})),
    create: |service| within(service, "spec", addresses),
    keep: update::keep,
    check,
    prepare_status: |_, service| default_ip_mode(service),
    check_status: |service, old, errors| validation::status(service, old, errors),
    warn: |service, _| warnings(service),
    warn_status: status_addresses::of_load_balancer,
    ..Rules::NONE
};

fn default(service: &mut Value) {
    within(service, "spec", |spec| {
        fill_text(spec, "type", "ClusterIP");
        affinity(spec);
        each(spec, "ports", |port| {
            fill_text(port, "protocol", "TCP");
            let own = port["port"].clone();
            if port["targetPort"] == 0 || port["targetPort"] == "" {
                remove(port, "targetPort");
            }
            if !own.is_null() {
                fill(port, "targetPort", own);
            }
        });
        traffic(spec);
    });
    default_ip_mode(service);
}

/// What may not change is complained about first.
fn check(service: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = service.at("spec");
    let before = errors.len();
    before_allocation(&spec, &old["spec"], errors);
    if errors.len() > before {
        return;
    }
    if !old.is_null() {
        families::changes(&old["spec"], spec.value, errors);
        validation::changes(&old["spec"], spec.value, errors);
    }
    validation::service(service, old, errors);
}

/// What Kubernetes finds when it gives a service what it needs, before it looks at anything else:
/// these mistakes are told alone. `old` is the spec before, or null.
fn before_allocation(spec: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let before = errors.len();
    families::addresses(spec, old, errors);
    if errors.len() == before {
        families::released(old, spec.value, errors);
    }
    if errors.len() == before && old.is_null() {
        validation::shared_node_ports(spec, errors);
    }
}

fn default_ip_mode(service: &mut Value) {
    if service["spec"]["type"] != "LoadBalancer" {
        return;
    }
    if let Some(balancer) = service.pointer_mut("/status/loadBalancer") {
        each(balancer, "ingress", |ingress| {
            if !text(&ingress["ip"]).is_empty() {
                fill(ingress, "ipMode", "VIP");
            }
        });
    }
}

/// Odd addresses, and fields that are not looked at.
fn warnings(service: &Value) -> Vec<String> {
    let spec = &service["spec"];
    let mut warnings = Vec::new();
    let hints = "service.kubernetes.io/topology-aware-hints";
    if !service["metadata"]["annotations"][hints].is_null() {
        let mode = "service.kubernetes.io/topology-mode";
        warnings.push(format!("annotation {hints} is deprecated, please use {mode} instead"));
    }
    let addresses = |key: &str| items(&spec[key]).iter().map(text).enumerate().collect::<Vec<_>>();
    for (i, ip) in addresses("clusterIPs").into_iter().filter(|(_, ip)| *ip != "None") {
        warnings.extend(address::ip_warning(&format!("spec.clusterIPs[{i}]"), ip));
    }
    let headless = spec["type"] == "ClusterIP" && spec["clusterIP"] == "None";
    let has_external = !is_empty(&spec["externalIPs"]);
    for (ignored, is_set) in [
        ("loadBalancerIP", !text(&spec["loadBalancerIP"]).is_empty()),
        ("externalIPs", has_external),
        ("SessionAffinity", spec["sessionAffinity"] != "None"),
    ] {
        if headless && is_set {
            warnings.push(format!("spec.{ignored} is ignored for headless services"));
        }
    }
    for (i, ip) in addresses("externalIPs") {
        warnings.extend(address::ip_warning(&format!("spec.externalIPs[{i}]"), ip));
    }
    if has_external && !headless && spec["type"] != "ExternalName" {
        let why = "is deprecated and may no longer be implemented in some clusters";
        warnings.push(format!("spec.externalIPs {why}"));
    }
    if let Some(ip) = spec["loadBalancerIP"].as_str().filter(|ip| !ip.is_empty()) {
        warnings.extend(address::ip_warning("spec.loadBalancerIP", ip));
    }
    for (i, range) in addresses("loadBalancerSourceRanges") {
        let path = format!("spec.loadBalancerSourceRanges[{i}]");
        warnings.extend(address::cidr_warnings(&path, range));
    }
    if spec["type"] == "ExternalName" && !is_empty(&spec["externalIPs"]) {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if spec["type"] != "ExternalName" && !text(&spec["externalName"]).is_empty() {
        let why = "is ignored when spec.type is not \"ExternalName\"";
        warnings.push(format!("spec.externalName {why}"));
    }
    if spec["trafficDistribution"] == "PreferClose" {
        let why = "\"PreferClose\" is deprecated; use \"PreferSameZone\"";
        warnings.push(format!("spec.trafficDistribution: {why}"));
    }
    warnings
}

fn affinity(spec: &mut Value) {
    fill_text(spec, "sessionAffinity", "None");
    if spec["sessionAffinity"] == "ClientIP" {
        within(spec, "sessionAffinityConfig", |config| {
            within(config, "clientIP", |ip| fill(ip, "timeoutSeconds", AFFINITY_SECONDS));
        });
    } else {
        remove(spec, "sessionAffinityConfig");
    }
}

fn traffic(spec: &mut Value) {
    let kind = text(&spec["type"]).to_owned();
    if is_reachable(spec) {
        fill_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "ExternalName" {
        remove(spec, "internalTrafficPolicy");
    } else {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// The list of addresses says what the single one does. Of which families they are is decided where
/// they are allocated.
fn addresses(spec: &mut Value) {
    let one = text(&spec["clusterIP"]).to_owned();
    if is_empty(&spec["clusterIPs"]) && !one.is_empty() {
        set(spec, "clusterIPs", vec![one]);
    }
}

/// Whether the nodes listen for it.
pub fn has_node_ports(spec: &Value) -> bool {
    spec["type"] == "NodePort" || spec["type"] == "LoadBalancer"
}

/// Whether traffic from outside the cluster can arrive.
fn is_reachable(spec: &Value) -> bool {
    has_node_ports(spec) || (spec["type"] == "ClusterIP" && !is_empty(&spec["externalIPs"]))
}

/// Whether nodes must tell a load balancer if they have a pod of the service.
pub fn needs_health_check(spec: &Value) -> bool {
    spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}
