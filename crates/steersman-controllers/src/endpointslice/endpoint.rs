//! An endpoint made of a Pod.

use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod, Service, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort};
use steersman_values::IpFamily;

use crate::pod;
use crate::service::{find_port, order_ports, pod_addresses, sets_hostname};

/// The zone of a node, as its label says.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

/// The endpoint that a Pod is, with its addresses of one family.
pub(super) fn endpoint(
    pod: &Pod,
    node: Option<&Node>,
    service: &Service,
    family: IpFamily,
) -> Endpoint {
    let serving = pod::is_ready(pod);
    let terminating = pod.metadata.deletion_timestamp.is_some();
    let publishes = publishes_not_ready(service);
    let spec = pod.spec.as_ref();
    Endpoint {
        addresses: pod_addresses(pod, family),
        conditions: Some(EndpointConditions {
            ready: Some(publishes || serving && !terminating),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        target_ref: Some(reference(pod)),
        node_name: spec.and_then(|spec| spec.node_name.clone()).filter(|name| !name.is_empty()),
        zone: node.and_then(zone).map(str::to_owned),
        hostname: sets_hostname(pod, service).map(str::to_owned),
        ..Endpoint::default()
    }
}

fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".into()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// The zone that a node is in, if it says so.
pub(super) fn zone(node: &Node) -> Option<&str> {
    let zone = node.metadata.labels.as_ref()?.get(ZONE)?;
    Some(zone.as_str()).filter(|zone| !zone.is_empty())
}

/// Whether the Service wants Pods to be found that are not ready.
pub(super) fn publishes_not_ready(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses).unwrap_or(false)
}

/// Where the ports of a Service lead to on a Pod; those that it does not have are left out.
pub(super) fn ports(spec: &ServiceSpec, pod: &Pod) -> Vec<EndpointPort> {
    let of_port = |port| {
        let found = find_port(pod, port)?;
        Some(EndpointPort {
            name: Some(port.name.clone().unwrap_or_default()),
            port: Some(found),
            protocol: port.protocol.clone(),
            app_protocol: port.app_protocol.clone(),
        })
    };
    let mut ports: Vec<EndpointPort> = spec.ports.iter().flatten().filter_map(of_port).collect();
    order_ports(&mut ports);
    ports
}
