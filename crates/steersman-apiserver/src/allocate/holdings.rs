//! What a service holds of what is handed out.

use std::collections::BTreeSet;

use serde_json::Value;
use steersman_rules::kinds::service::has_node_ports;
use steersman_rules::resource::Place;

use super::{ip_address, place};
use crate::document::items;
use crate::state::Server;

/// What a service holds: cluster addresses and node ports.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    /// Namespace and name of the service, if it holds addresses.
    pub(super) owner: (String, String),
    pub(super) addresses: Vec<String>,
    pub(super) ports: Vec<u16>,
}

impl Holdings {
    /// What a service holds.
    pub(super) fn of(service: &Value) -> Self {
        let spec = &service["spec"];
        let Place { namespace, name } = place(service);
        let owner = (namespace.to_owned(), name.to_owned());
        Self { owner, addresses: addresses(spec), ports: ports(spec) }
    }

    /// Gives all of it back.
    pub(super) async fn give_back(&self, server: &Server) {
        server.node_ports.give_back(&*server.store, &self.ports).await;
        let (namespace, name) = &self.owner;
        for address in &self.addresses {
            ip_address::give_back(server, Place { namespace, name }, address).await;
        }
    }
}

/// The addresses that a service holds.
pub(super) fn addresses(spec: &Value) -> Vec<String> {
    if spec["type"] == "ExternalName" {
        return Vec::new();
    }
    let given = items(&spec["clusterIPs"]).iter().chain([&spec["clusterIP"]]);
    let mut held: Vec<String> = Vec::new();
    for address in given.filter_map(Value::as_str).filter(|ip| !matches!(*ip, "" | "None")) {
        if !held.iter().any(|known| known == address) {
            held.push(address.to_owned());
        }
    }
    held
}

/// The ports that a service holds.
pub(super) fn ports(spec: &Value) -> Vec<u16> {
    if !has_node_ports(spec) {
        return Vec::new();
    }
    let ports = items(&spec["ports"]).iter().map(|port| &port["nodePort"]);
    let all = ports.chain([&spec["healthCheckNodePort"]]).filter_map(Value::as_u64);
    let held: BTreeSet<u16> =
        all.filter(|port| *port > 0).filter_map(|port| u16::try_from(port).ok()).collect();
    held.into_iter().collect()
}
