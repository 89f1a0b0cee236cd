//! The ports of its node that a Pod takes. The node agent counts them as the scheduler does.

use k8s_openapi::api::core::v1::{Container, ContainerPort, Pod};

/// The address that stands for every address.
const EVERY: &str = "0.0.0.0";

/// A port of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    address: String,
    protocol: String,
    port: i32,
}

impl HostPort {
    /// The ports that a Pod takes as long as it runs: also those of init containers that stay.
    pub fn all_of(pod: &Pod) -> Vec<Self> {
        let Some(spec) = &pod.spec else { return Vec::new() };
        let stays = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
        let init = spec.init_containers.iter().flatten().filter(stays);
        let containers = spec.containers.iter().chain(init);
        containers.flat_map(|container| container.ports.iter().flatten()).filter_map(of).collect()
    }

    /// Whether two Pods cannot have these ports on one node.
    pub fn conflicts(&self, other: &Self) -> bool {
        let everywhere = self.address == EVERY || other.address == EVERY;
        self.port == other.port
            && self.protocol == other.protocol
            && (everywhere || self.address == other.address)
    }
}

fn of(port: &ContainerPort) -> Option<HostPort> {
    let given = |text: &Option<String>, or: &str| {
        text.clone().filter(|text| !text.is_empty()).unwrap_or_else(|| or.to_owned())
    };
    Some(HostPort {
        address: given(&port.host_ip, EVERY),
        protocol: given(&port.protocol, "TCP"),
        port: port.host_port.filter(|number| *number > 0)?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_conflict_on_a_common_address_only() {
        let all = |port: serde_json::Value| {
            let pod = json!({"spec": {"containers": [{"name": "c", "ports": [port]}]}});
            HostPort::all_of(&serde_json::from_value(pod).unwrap())
        };
        let of = |port| all(port).remove(0);
        let plain = of(json!({"containerPort": 80, "hostPort": 8080}));
        let local = of(json!({"containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.1"}));
        let other = of(json!({"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1"}));
        let udp = of(json!({"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}));
        let next = of(json!({"containerPort": 80, "hostPort": 8081}));
        assert!(plain.conflicts(&plain) && plain.conflicts(&local) && local.conflicts(&plain));
        assert!(!local.conflicts(&other) && !plain.conflicts(&udp) && !plain.conflicts(&next));
        assert!(all(json!({"containerPort": 80})).is_empty());
    }

    #[test]
    fn init_containers_take_ports_only_if_they_stay() {
        let pod = json!({"spec": {"containers": [], "initContainers": [
            {"name": "once", "ports": [{"containerPort": 1, "hostPort": 1}]},
            {"name": "stays", "restartPolicy": "Always",
             "ports": [{"containerPort": 2, "hostPort": 2}]},
        ]}});
        let ports = HostPort::all_of(&serde_json::from_value(pod).unwrap());
        assert_eq!(ports.iter().map(|port| port.port).collect::<Vec<_>>(), [2]);
    }
}
