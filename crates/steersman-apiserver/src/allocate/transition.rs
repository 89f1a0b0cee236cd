//! A service that changes its type loses what only the old type had, unless the client changed
//! that, too: then validation has to say so.

use serde_json::{Value, json};

use super::items;
use super::ports::{is_exposed, needs_health_check};

/// Drops what the new version of a service does not need any more and the client only repeats.
pub(crate) fn drop_unneeded(old: &Value, new: &mut Value) {
    let before = &old["spec"];
    let Some(spec) = new.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if before["type"] != "ExternalName" && spec["type"] == "ExternalName" {
        let same = ["clusterIP", "clusterIPs"].iter().all(|key| spec[*key] == before[*key]);
        if same {
            ["clusterIP", "clusterIPs"].iter().for_each(|key| remove(spec, key));
        }
        drop_repeated(before, spec, &["ipFamilies", "ipFamilyPolicy"]);
    }
    if needs_ports(before) && !needs_ports(spec) && node_ports(before) == node_ports(spec) {
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
        ports.for_each(|port| remove(port, "nodePort"));
    }
    if needs_health_check(before) && !needs_health_check(spec) {
        drop_repeated(before, spec, &["healthCheckNodePort"]);
    }
    if before["type"] == "LoadBalancer" && spec["type"] != "LoadBalancer" {
        drop_repeated(before, spec, &["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if is_reachable(before) && !is_reachable(spec) {
        drop_repeated(before, spec, &["externalTrafficPolicy"]);
    }
    if spec["type"] != "LoadBalancer" && new.pointer("/status/loadBalancer").is_some() {
        new["status"]["loadBalancer"] = json!({});
    }
}

fn drop_repeated(before: &Value, spec: &mut Value, keys: &[&str]) {
    for key in keys.iter().filter(|key| spec[**key] == before[**key]).collect::<Vec<_>>() {
        remove(spec, key);
    }
}

fn remove(object: &mut Value, key: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(key);
    }
}

fn needs_ports(spec: &Value) -> bool {
    is_exposed(spec)
        && !(spec["type"] == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] == false)
}

fn is_reachable(spec: &Value) -> bool {
    is_exposed(spec) || (spec["type"] == "ClusterIP" && !items(&spec["externalIPs"]).is_empty())
}

fn node_ports(spec: &Value) -> Vec<i64> {
    let ports = items(&spec["ports"]).iter();
    let mut ports: Vec<i64> = ports.filter_map(|port| port["nodePort"].as_i64()).collect();
    ports.sort_unstable();
    ports
}
