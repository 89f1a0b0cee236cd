//! The ports of endpoints: where a Service's port leads to on a Pod, and in which order they stand.

use k8s_openapi::api::core::v1::{Container, EndpointPort as SubsetPort, Pod, ServicePort};
use k8s_openapi::api::discovery::v1::EndpointPort;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::hash::{fnv_128a, pointer};

/// The port of a Pod that a Service's port leads to: a number, or the port of that name and protocol
/// of a container or a sidecar.
pub(crate) fn find_port(pod: &Pod, port: &ServicePort) -> Option<i32> {
    let name = match &port.target_port {
        Some(IntOrString::Int(number)) => return Some(*number),
        Some(IntOrString::String(name)) => name,
        None => return Some(port.port),
    };
    let spec = pod.spec.as_ref()?;
    let is_sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(is_sidecar);
    let mut ports =
        spec.containers.iter().chain(sidecars).flat_map(|one| one.ports.iter().flatten());
    let protocol = protocol_of(port.protocol.as_deref());
    let found = ports.find(|port| {
        port.name.as_ref() == Some(name) && protocol_of(port.protocol.as_deref()) == protocol
    });
    found.map(|port| port.container_port)
}

/// Whether ports lead to the same place on every Pod: those with a name are looked up in each.
pub(crate) fn are_the_same_everywhere(ports: &[ServicePort]) -> bool {
    !ports.iter().any(|port| matches!(port.target_port, Some(IntOrString::String(_))))
}

/// A protocol, or the one that is meant where none is said.
pub(super) fn protocol_of(said: Option<&str>) -> &str {
    said.unwrap_or("TCP")
}

/// Brings the ports of a slice into Kubernetes' order.
pub(crate) fn order_ports(ports: &mut [EndpointPort]) {
    ports.sort_by_cached_key(rank);
}

fn rank(port: &EndpointPort) -> u128 {
    let number = port.port.map(|number| number.to_string());
    fnv_128a(&format!(
        "(v1.EndpointPort){{Name:{} Protocol:{} Port:{} AppProtocol:{}}}",
        pointer("string", port.name.as_deref()),
        pointer("v1.Protocol", port.protocol.as_deref()),
        pointer("int32", number.as_deref()),
        pointer("string", port.app_protocol.as_deref()),
    ))
}

/// Brings the ports of a subset into Kubernetes' order.
pub(super) fn order_subset_ports(ports: &mut [SubsetPort]) {
    ports.sort_by_cached_key(subset_rank);
}

fn subset_rank(port: &SubsetPort) -> u128 {
    fnv_128a(&format!(
        "(v1.EndpointPort){{Name:(string){} Port:(int32){} Protocol:(v1.Protocol){} AppProtocol:{}}}",
        port.name.as_deref().unwrap_or_default(),
        port.port,
        port.protocol.as_deref().unwrap_or_default(),
        pointer("string", port.app_protocol.as_deref()),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_stand_in_the_order_that_kubernetes_gives_them() {
        // As Kubernetes 1.36 computes them, in slices and in subsets.
        for (port, in_slice, in_subset) in [
            (
                json!({"name": "http", "port": 8080, "protocol": "TCP"}),
                0x0e87_4d56_7709_0ee5_c32a_fa85_f637_c347_u128,
                0x2530_4a33_da9e_6ece_350a_4142_a45f_5b75_u128,
            ),
            (
                json!({"name": "https", "port": 8443, "protocol": "TCP", "appProtocol": "http2"}),
                0x5de6_fa82_9af7_335e_17fb_4303_0644_30dc,
                0xf855_9419_a8ac_0f54_dcf2_8d90_a004_9d6e,
            ),
            (
                json!({"name": "", "port": 53, "protocol": "UDP"}),
                0x755b_2d9c_189e_ac11_bdf3_1eab_b97f_10f3,
                0x6664_b179_42a8_04b5_0d12_b277_797d_312d,
            ),
        ] {
            let slice: EndpointPort = serde_json::from_value(port.clone()).unwrap();
            let subset: SubsetPort = serde_json::from_value(port.clone()).unwrap();
            assert_eq!((rank(&slice), subset_rank(&subset)), (in_slice, in_subset), "{port}");
        }
    }
}
