//! What an update of a service keeps although the client left it out, and what a change of its type
//! drops.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::{has_node_ports, is_reachable, needs_health_check};
use crate::rules::document::{each, fill_number, fill_text, is_empty, items, remove, set, text};

/// What was allocated stays, unless the client says something else or the type has no use
/// for it any more.
pub(super) fn keep(old: &Value, new: &mut Value) {
    let balanced = new["spec"]["type"] == "LoadBalancer";
    if let Some(spec) = new.get_mut("spec") {
        fill_text(spec, "type", "ClusterIP");
        keep_allocated(&old["spec"], spec);
        follow_single_address(&old["spec"], spec);
        drop_unused(&old["spec"], spec);
    }
    if !balanced {
        set(new, "status", with_empty_balancer(&new["status"]));
    }
}

/// Puts back addresses and ports that were allocated and that the client left out.
fn keep_allocated(old: &Value, new: &mut Value) {
    let has_address = |spec: &Value| spec["type"] != "ExternalName";
    if has_address(old) && has_address(new) {
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if is_empty(&new[key]) && text(&new[key]).is_empty() {
                copy(old, new, key);
            }
        }
    }
    if is_given_node_ports(old) && is_given_node_ports(new) {
        keep_node_ports(items(&old["ports"]), new);
    }
    let unset = new["healthCheckNodePort"].as_i64().unwrap_or(0) == 0;
    if needs_health_check(old) && needs_health_check(new) && unset {
        copy(old, new, "healthCheckNodePort");
    }
}

/// The two fields for addresses say the same: whoever changes only the single one means both.
fn follow_single_address(old: &Value, new: &mut Value) {
    let after = text(&new["clusterIP"]).to_owned();
    let has_same_list = has_same_addresses(old, new);
    if text(&old["clusterIP"]) == after {
        if is_empty(&new["clusterIPs"]) {
            copy(old, new, "clusterIPs");
        }
    } else if has_same_list && after.is_empty() {
        remove(new, "clusterIPs");
    } else if has_same_list {
        set(new, "clusterIPs", vec![after]);
    }
}

fn has_same_addresses(old: &Value, new: &Value) -> bool {
    items(&old["clusterIPs"]) == items(&new["clusterIPs"])
}

/// Whether a service gets node ports without asking for them one by one.
fn is_given_node_ports(spec: &Value) -> bool {
    let unwanted = spec["type"] == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] == false;
    has_node_ports(spec) && !unwanted
}

/// A port keeps its node port by its name, whatever else of it has changed, unless another has it now.
fn keep_node_ports(old: &[Value], new: &mut Value) {
    let node_port = |port: &Value| port["nodePort"].as_i64();
    let used: HashSet<i64> = items(&new["ports"]).iter().filter_map(node_port).collect();
    let known: HashMap<&str, Option<i64>> =
        old.iter().map(|port| (text(&port["name"]), node_port(port))).collect();
    each(new, "ports", |port| {
        let kept = known.get(text(&port["name"])).copied().flatten();
        if let Some(kept) = kept.filter(|kept| !used.contains(kept)) {
            fill_number(port, "nodePort", kept);
        }
    });
}

/// A type that has no use for a field drops it, if the client did not change it meanwhile.
fn drop_unused(old: &Value, new: &mut Value) {
    if old["type"] != "ExternalName" && new["type"] == "ExternalName" {
        if text(&old["clusterIP"]) == text(&new["clusterIP"]) && has_same_addresses(old, new) {
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
