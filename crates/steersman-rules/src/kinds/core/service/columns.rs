//! What `kubectl get services` shows: where a service can be reached.

use jiff::Timestamp;
use serde_json::Value;

use crate::table::cells::{items, labels, load_balancer, number, or_none, text, texts};
use crate::table::{Column, age};

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::field("Type", "spec.type", ""),
        Column::text("Cluster-IP", cluster_ip),
        Column::text("External-IP", external_ip),
        Column::text("Port(s)", service_ports),
        age(),
        Column::text("Selector", |service, _| labels(&service["spec"]["selector"]).into()).wide(),
    ]
}

fn cluster_ip(service: &Value, _: Timestamp) -> Value {
    let spec = &service["spec"];
    let first = text(&spec["clusterIPs"][0]);
    or_none(if first.is_empty() { text(&spec["clusterIP"]) } else { first })
}

fn external_ip(service: &Value, _: Timestamp) -> Value {
    let spec = &service["spec"];
    let external = texts(&spec["externalIPs"]);
    match text(&spec["type"]) {
        "ExternalName" => text(&spec["externalName"]).into(),
        "LoadBalancer" => {
            let both = [load_balancer(service), external];
            let known: Vec<_> = both.into_iter().filter(|ip| !ip.is_empty()).collect();
            if known.is_empty() { "<pending>".into() } else { known.join(",").into() }
        }
        "ClusterIP" | "NodePort" => or_none(&external),
        _ => "<unknown>".into(),
    }
}

fn service_ports(service: &Value, _: Timestamp) -> Value {
    let port = |port: &Value| match number(&port["nodePort"]) {
        0 => format!("{}/{}", number(&port["port"]), text(&port["protocol"])),
        node => format!("{}:{node}/{}", number(&port["port"]), text(&port["protocol"])),
    };
    let ports: Vec<_> = items(&service["spec"]["ports"]).iter().map(port).collect();
    or_none(&ports.join(","))
}
