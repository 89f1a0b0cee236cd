//! What a Service uses: itself, node ports, a load balancer.

use serde_json::Value;

use super::amounts::Amounts;
use super::measure::Measure;
use crate::quantity::Quantity;
use crate::rules::document::{items, text};

/// The names under which Services count.
pub(super) const NAMES: &[&str] =
    &["count/services", "services", "services.loadbalancers", "services.nodeports"];

/// Node ports are counted as they will be handed out: the server counts before it does so.
pub(super) fn measure(service: &Value) -> Measure {
    let spec = &service["spec"];
    let ports = items(&spec["ports"]);
    let chosen = || ports.iter().filter(|port| port["nodePort"].as_i64().is_some_and(|n| n != 0));
    let (balancers, node_ports) = match text(&spec["type"]) {
        "NodePort" => (0, ports.len()),
        "LoadBalancer" if spec["allocateLoadBalancerNodePorts"] == false => (1, chosen().count()),
        "LoadBalancer" => (1, ports.len()),
        _ => (0, 0),
    };
    let mut used = Amounts::default();
    used.set("count/services", Quantity::ONE);
    used.set("services", Quantity::ONE);
    used.set("services.loadbalancers", Quantity::units(balancers));
    used.set("services.nodeports", Quantity::units(node_ports));
    Measure::stored(used)
}
