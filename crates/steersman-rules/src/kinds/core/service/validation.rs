//! The rules of a service, besides those about its own addresses.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::{has_node_ports, is_reachable, needs_health_check};
use crate::field::FieldError;
use crate::names;
use crate::rules::address;
use crate::rules::at::{At, Errors};
use crate::rules::document::{items, text};

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const DISTRIBUTIONS: &[&str] = &["PreferClose", "PreferSameZone", "PreferSameNode"];
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";
const AFFINITY_SECONDS_MAX: i64 = 86400;

/// The mistakes in a service but for those in its addresses; `old` is null for a new one.
pub(super) fn service(service: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = service.at("spec");
    topology(service, errors);
    by_type(&spec, errors);
    ports(&spec, errors);
    spec.at("selector").labels(errors);
    affinity(&spec, errors);
    for ip in spec.each("externalIPs") {
        if address::legacy_ip(&ip, &old["spec"]["externalIPs"], errors).is_some() {
            address::endpoint_ip(&ip, errors);
        }
    }
    spec.at("type").requires_one_of(TYPES, errors);
    unique_ports(&spec, errors);
    source_ranges(service, old, errors);
    balancer(&spec, errors);
    traffic(&spec, errors);
}

fn topology(root: &At<'_, '_>, errors: &mut Errors) {
    let annotations = root.at("metadata.annotations");
    let mode = annotations.entry(TOPOLOGY_MODE);
    let hints = annotations.entry(TOPOLOGY_HINTS);
    if mode.is_set() && hints.is_set() && mode.value != hints.value {
        let detail = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        errors.push(mode.invalid(&detail));
    }
}

fn is_headless(spec: &Value) -> bool {
    items(&spec["clusterIPs"]).len() == 1 && spec["clusterIPs"][0] == "None"
}

fn by_type(spec: &At<'_, '_>, errors: &mut Errors) {
    let headless = is_headless(spec.value);
    let kind = text(&spec.value["type"]);
    let ports = spec.at("ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.push(ports.required(""));
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.extend(spec.each("clusterIPs").next().map(|ip| ip.invalid(&detail)));
        }
        "ExternalName" => {
            for key in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                let part = spec.at(key);
                if !part.is_empty() {
                    errors.push(part.forbidden("may not be set for ExternalName services"));
                }
            }
            let name = spec.at("externalName");
            match name.text().strip_suffix('.').unwrap_or(name.text()) {
                "" => errors.push(name.required("")),
                cname => errors.extend(names::invalid(
                    "spec.externalName",
                    cname,
                    names::dns1123_subdomain,
                )),
            }
        }
        _ => {}
    }
}

fn ports(spec: &At<'_, '_>, errors: &mut Errors) {
    let several = spec.at("ports").len() > 1;
    let mut named = HashSet::new();
    for port in spec.each("ports") {
        let name = port.at("name");
        if !name.is_empty() {
            name.follows(names::dns1123_label, errors);
            if !named.insert(text(&port.value["name"])) {
                errors.push(name.duplicate());
            }
        } else if several {
            errors.push(name.required(""));
        }
        port.at("port").port(errors);
        port.at("protocol").requires_one_of(PROTOCOLS, errors);
        port.at("targetPort").port_or_name(errors);
        let protocol = port.at("appProtocol");
        if protocol.is_set() {
            protocol.follows(names::qualified_name, errors);
        }
    }
}

fn affinity(spec: &At<'_, '_>, errors: &mut Errors) {
    spec.at("sessionAffinity").requires_one_of(&["ClientIP", "None"], errors);
    let config = spec.at("sessionAffinityConfig");
    match text(&spec.value["sessionAffinity"]) {
        "ClientIP" => {
            let seconds = &config.value["clientIP"]["timeoutSeconds"];
            if seconds.as_i64().is_none_or(|s| s <= 0 || s > AFFINITY_SECONDS_MAX) {
                let detail = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
                let field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
                errors.push(FieldError::invalid(field, seconds, &detail));
            }
        }
        "None" if config.is_set() => {
            errors.push(config.forbidden("must not be set when session affinity is None"));
        }
        _ => {}
    }
}

/// Ports of a new service may name the same node port if they are one port for several protocols.
/// Any other finds it taken.
pub(super) fn shared_node_ports(spec: &At<'_, '_>, errors: &mut Errors) {
    if !has_node_ports(spec.value) {
        return;
    }
    let mut owners: HashMap<i64, i64> = HashMap::new();
    for port in spec.each("ports") {
        let own = port.at("port").number_or_zero();
        let node_port = port.at("nodePort");
        let number = node_port.number_or_zero();
        if number != 0 && *owners.entry(number).or_insert(own) != own {
            errors.push(node_port.invalid("provided port is already allocated"));
            return;
        }
    }
}

/// A node port only where there are any, and no pair of protocol and port twice.
fn unique_ports(spec: &At<'_, '_>, errors: &mut Errors) {
    if spec.value["type"] == "ClusterIP" {
        for port in spec.each("ports") {
            let node_port = port.at("nodePort");
            if node_port.number_or_zero() != 0 {
                errors.push(node_port.forbidden("may not be used when `type` is 'ClusterIP'"));
            }
        }
    }
    let mut node_ports = HashSet::new();
    let mut ports = HashSet::new();
    let mut twice = Vec::new();
    for port in spec.each("ports") {
        let protocol = text(&port.value["protocol"]);
        let node_port = port.at("nodePort");
        if node_port.number_or_zero() != 0
            && !node_ports.insert((protocol, node_port.number_or_zero()))
        {
            errors.push(node_port.duplicate());
        }
        if !ports.insert((protocol, port.value["port"].as_i64())) {
            let key = json!({"protocol": protocol, "port": port.value["port"]});
            twice.push(port.with(&key).duplicate_as("ServicePort"));
        }
    }
    errors.extend(twice);
}

fn source_ranges(root: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = root.at("spec");
    let balanced = spec.value["type"] == "LoadBalancer";
    if !spec.at("loadBalancerSourceRanges").is_empty() {
        // The path is spelled as Kubernetes spells it.
        let ranges = spec.at("LoadBalancerSourceRanges");
        if !balanced {
            errors.push(ranges.forbidden(ONLY_BALANCED));
        }
        for (i, range) in spec.each("loadBalancerSourceRanges").enumerate() {
            let path = format!("spec.LoadBalancerSourceRanges[{i}]");
            let before = &old["spec"]["loadBalancerSourceRanges"];
            let part = At::new(range.value, &path);
            address::legacy_cidr(&part, range.text().trim(), before, errors);
        }
        return;
    }
    let annotations = root.at("metadata.annotations");
    let annotation = annotations.entry(SOURCE_RANGES);
    if annotation.is_absent() {
        return;
    }
    if !balanced {
        errors.push(annotation.forbidden(ONLY_BALANCED));
    }
    let ranges = annotation.text().trim();
    if *annotation.value != old["metadata"]["annotations"][SOURCE_RANGES] && !ranges.is_empty() {
        for range in ranges.split(',') {
            address::strict_cidr(&annotation, range.trim(), errors);
        }
    }
}

fn balancer(spec: &At<'_, '_>, errors: &mut Errors) {
    let balanced = spec.value["type"] == "LoadBalancer";
    let class = spec.at("loadBalancerClass");
    let allocate = spec.at("allocateLoadBalancerNodePorts");
    if allocate.is_set() && !balanced {
        errors.push(allocate.forbidden(ONLY_BALANCED));
    }
    if class.is_set() {
        if balanced {
            class.follows(names::qualified_name, errors);
        } else {
            errors.push(class.forbidden(ONLY_BALANCED));
        }
    }
}

fn traffic(spec: &At<'_, '_>, errors: &mut Errors) {
    let external = spec.at("externalTrafficPolicy");
    if is_reachable(spec.value) {
        external.requires_one_of(&["Cluster", "Local"], errors);
    } else if !external.is_empty() {
        errors.push(external.invalid("may only be set for externally-accessible services"));
    }
    let health = spec.at("healthCheckNodePort");
    if health.number_or_zero() != 0 {
        if needs_health_check(spec.value) {
            health.port(errors);
        } else {
            errors.push(health.invalid(
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is \
                 'Local'",
            ));
        }
    }
    let internal = spec.at("internalTrafficPolicy");
    internal.one_of(&["Cluster", "Local"], errors);
    spec.at("trafficDistribution").one_of(DISTRIBUTIONS, errors);
}

/// What of a service may not change while its type stays.
pub(super) fn changes(old: &Value, new: &Value, errors: &mut Errors) {
    let balanced = |spec: &Value| spec["type"] == "LoadBalancer";
    if balanced(old) && balanced(new) && old["loadBalancerClass"] != new["loadBalancerClass"] {
        let class = &new["loadBalancerClass"];
        let detail = "may not change once set";
        errors.push(FieldError::invalid("spec.loadBalancerClass", class, detail));
    }
    let same = old["healthCheckNodePort"] == new["healthCheckNodePort"];
    if needs_health_check(old) && needs_health_check(new) && !same {
        errors.push(FieldError::forbidden("spec.healthCheckNodePort", "field is immutable"));
    }
}

/// The mistakes in what a load balancer reports.
pub(super) fn status(service: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let balancer = service.at("status.loadBalancer");
    let ingress = balancer.at("ingress");
    if service.value["spec"]["type"] != "LoadBalancer" && !ingress.is_empty() {
        errors.push(ingress.forbidden("may only be used when `spec.type` is 'LoadBalancer'"));
        return;
    }
    let before = old_addresses(&old["status"]["loadBalancer"]);
    for point in balancer.each("ingress") {
        ingress_address(&point, &before, errors);
        let mode = point.at("ipMode");
        match (mode.is_absent(), text(&point.value["ip"]).is_empty()) {
            (true, false) => errors.push(mode.required("must be specified when `ip` is set")),
            (false, true) => {
                errors.push(mode.forbidden("may not be specified when `ip` is not set"));
            }
            (false, false) => mode.one_of(&["Proxy", "VIP"], errors),
            (true, true) => {}
        }
        ingress_host(&point, errors);
    }
}

fn old_addresses(balancer: &Value) -> Value {
    items(&balancer["ingress"]).iter().map(|point| point["ip"].clone()).collect()
}

/// The mistakes in the address and name of one entry of a load balancer's status.
pub(in crate::kinds) fn ingress_point(point: &At<'_, '_>, before: &Value, errors: &mut Errors) {
    ingress_address(point, before, errors);
    ingress_host(point, errors);
}

fn ingress_address(point: &At<'_, '_>, before: &Value, errors: &mut Errors) {
    let ip = point.at("ip");
    if !ip.is_empty() {
        address::legacy_ip(&ip, before, errors);
    }
}

fn ingress_host(point: &At<'_, '_>, errors: &mut Errors) {
    let host = point.at("hostname");
    if !host.is_empty() {
        host.follows(names::dns1123_subdomain, errors);
        if address::parse_ip(host.text()).is_some() {
            errors.push(host.invalid("must be a DNS name, not an IP address"));
        }
    }
}
