//! Services: what they are filled with, what an update keeps and what a change of type drops.
//! The rules are in [`validation`], those about addresses in [`families`]. Addresses and node
//! ports are allocated elsewhere; here they are only kept.

mod families;
#[cfg(test)]
mod tests;
mod validation;

pub(in crate::kinds) use self::validation::ingress_point;

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::rules::Strategy;
use crate::rules::address;
use crate::rules::document::{each, fill, fill_text, is_empty, items, remove, set, text, within};

/// How long a client sticks to its pod, unless the service says otherwise.
const AFFINITY_SECONDS: i64 = 3 * 3600;

/// The strategy of services.
#[derive(Debug)]
pub(in crate::kinds) struct Service;

impl Strategy for Service {
    fn default(&self, service: &mut Value) {
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

    fn prepare_create(&self, service: &mut Value) {
        set(service, "status", json!({"loadBalancer": {}}));
        within(service, "spec", addresses);
    }

    /// What was allocated stays, unless the client says something else or the type has no use
    /// for it any more.
    fn prepare_update(&self, old: &Value, new: &mut Value) {
        let balanced = new["spec"]["type"] == "LoadBalancer";
        if let Some(spec) = new.get_mut("spec") {
            fill_text(spec, "type", "ClusterIP");
            follow_single_address(&old["spec"], spec);
            keep_allocated(&old["spec"], spec);
            drop_unused(&old["spec"], spec);
            addresses(spec);
        }
        if !balanced {
            set(new, "status", with_empty_balancer(&new["status"]));
        }
    }

    fn prepare_status_update(&self, _old: &Value, new: &mut Value) {
        default_ip_mode(new);
    }

    fn validate_create(&self, service: &Value) -> Vec<FieldError> {
        validation::service(service, &Value::Null)
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = families::changes(&old["spec"], &new["spec"]);
        errors.extend(validation::changes(&old["spec"], &new["spec"]));
        errors.extend(validation::service(new, old));
        errors
    }

    fn validate_status_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        validation::status(old, new)
    }

    fn warnings(&self, service: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings(service)
    }
}

/// The two fields for addresses say the same: whoever changes only the single one means both.
fn follow_single_address(old: &Value, new: &mut Value) {
    let (before, after) = (text(&old["clusterIP"]), text(&new["clusterIP"]));
    if before == after || is_empty(&old["clusterIPs"]) || old["clusterIPs"] != new["clusterIPs"] {
        return;
    }
    let after = after.to_owned();
    if after.is_empty() {
        remove(new, "clusterIPs");
    } else {
        set(new, "clusterIPs", vec![after]);
    }
}

/// Puts back addresses and ports that were allocated and that the client left out.
fn keep_allocated(old: &Value, new: &mut Value) {
    let has_address = |spec: &Value| spec["type"] != "ExternalName";
    if has_address(old) && has_address(new) {
        if text(&new["clusterIP"]).is_empty() && is_empty(&new["clusterIPs"]) {
            copy(old, new, "clusterIP");
        }
        if is_empty(&new["clusterIPs"]) && new["clusterIP"] == old["clusterIP"] {
            copy(old, new, "clusterIPs");
        }
        for key in ["ipFamilies", "ipFamilyPolicy"] {
            if is_empty(&new[key]) && text(&new[key]).is_empty() {
                copy(old, new, key);
            }
        }
    }
    if has_node_ports(old) && has_node_ports(new) {
        keep_node_ports(items(&old["ports"]), new);
    }
    let unset = new["healthCheckNodePort"].as_i64().unwrap_or(0) == 0;
    if needs_health_check(old) && needs_health_check(new) && unset {
        copy(old, new, "healthCheckNodePort");
    }
}

fn keep_node_ports(old: &[Value], new: &mut Value) {
    let used: Vec<i64> =
        items(&new["ports"]).iter().filter_map(|p| p["nodePort"].as_i64()).collect();
    each(new, "ports", |port| {
        let protocol = |port: &Value| match text(&port["protocol"]) {
            "" => "TCP".to_owned(),
            protocol => protocol.to_owned(),
        };
        let same = |o: &&Value| o["port"] == port["port"] && protocol(o) == protocol(port);
        let kept = old.iter().find(same).and_then(|o| o["nodePort"].as_i64());
        if let Some(kept) = kept.filter(|kept| !used.contains(kept)) {
            crate::rules::document::fill_number(port, "nodePort", kept);
        }
    });
}

/// A type that has no use for a field drops it, if the client did not change it meanwhile.
fn drop_unused(old: &Value, new: &mut Value) {
    if old["type"] != "ExternalName" && new["type"] == "ExternalName" {
        if old["clusterIP"] == new["clusterIP"] && old["clusterIPs"] == new["clusterIPs"] {
            remove(new, "clusterIP");
            remove(new, "clusterIPs");
        }
        drop_same(old, new, &["ipFamilies", "ipFamilyPolicy"]);
    }
    if has_node_ports(old) && !has_node_ports(new) {
        let taken = |port: &Value| items(&old["ports"]).iter().any(|o| o["nodePort"] == *port);
        let ports = items(&new["ports"]).iter().map(|port| &port["nodePort"]);
        if ports.into_iter().all(|port| port.is_null() || *port == 0 || taken(port)) {
            each(new, "ports", |port| drop(remove(port, "nodePort")));
        }
    }
    if needs_health_check(old) && !needs_health_check(new) {
        drop_same(old, new, &["healthCheckNodePort"]);
    }
    if old["type"] == "LoadBalancer" && new["type"] != "LoadBalancer" {
        drop_same(old, new, &["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if is_reachable(old) && !is_reachable(new) {
        drop_same(old, new, &["externalTrafficPolicy"]);
    }
}

fn drop_same(old: &Value, new: &mut Value, keys: &[&str]) {
    for key in keys {
        if old[*key] == new[*key] {
            remove(new, key);
        }
    }
}

fn copy(from: &Value, to: &mut Value, key: &str) {
    if !from[key].is_null() {
        set(to, key, from[key].clone());
    }
}

fn with_empty_balancer(status: &Value) -> Value {
    let mut status = if status.is_object() { status.clone() } else { json!({}) };
    set(&mut status, "loadBalancer", json!({}));
    status
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
    if !text(&service["metadata"]["annotations"]["service.kubernetes.io/topology-aware-hints"])
        .is_empty()
    {
        warnings.push(
            "metadata.annotations[service.kubernetes.io/topology-aware-hints]: \
             deprecated in v1.27+; use \"service.kubernetes.io/topology-mode\" instead"
                .to_owned(),
        );
    }
    if spec["type"] == "ExternalName" && spec["clusterIP"] == "None" {
        return warnings;
    }
    let addresses = |key: &str| items(&spec[key]).iter().map(text).enumerate().collect::<Vec<_>>();
    for (i, ip) in addresses("clusterIPs") {
        warnings.extend(address::ip_warning(&format!("spec.clusterIPs[{i}]"), ip));
    }
    for (i, ip) in addresses("externalIPs") {
        warnings.extend(address::ip_warning(&format!("spec.externalIPs[{i}]"), ip));
    }
    if let Some(ip) = spec["loadBalancerIP"].as_str().filter(|ip| !ip.is_empty()) {
        warnings.extend(address::ip_warning("spec.loadBalancerIP", ip));
    }
    for (i, range) in addresses("loadBalancerSourceRanges") {
        let path = format!("spec.loadBalancerSourceRanges[{i}]");
        warnings.extend(address::cidr_warnings(&path, range.trim()));
    }
    if spec["type"] == "ExternalName" && !is_empty(&spec["externalIPs"]) {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if spec["type"] != "ExternalName" && !text(&spec["externalName"]).is_empty() {
        let why = "is ignored when spec.type is not \"ExternalName\"";
        warnings.push(format!("spec.externalName {why}"));
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
    if kind != "ExternalName" {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// One family, that of the address if there is one, and the list of addresses in step.
fn addresses(spec: &mut Value) {
    if spec["type"] == "ExternalName" {
        return;
    }
    fill(spec, "ipFamilyPolicy", "SingleStack");
    if is_empty(&spec["ipFamilies"]) {
        let v6 = address::is_ipv6(text(&spec["clusterIP"]));
        set(spec, "ipFamilies", vec![if v6 { "IPv6" } else { "IPv4" }]);
    }
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
