//! An endpoint made of a Pod.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod, Service, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort};
use steersman_values::IpFamily;

use crate::pod;
use crate::service::{
    are_the_same_everywhere, find_port, order_ports, pod_addresses, sets_hostname,
};

/// The zone of a node, as its label says.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

/// A Pod that a Service selects, as one of the families sees it.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) pod: &'a Pod,
    pub(super) node: Option<&'a Node>,
    pub(super) service: &'a Service,
    pub(super) family: IpFamily,
}

impl Candidate<'_> {
    /// Whether it has an address of the family.
    pub(super) fn has_address(&self) -> bool {
        pod_addresses(self.pod, self.family).next().is_some()
    }

    /// The endpoint that it is.
    pub(super) fn endpoint(&self) -> Endpoint {
        let pod = self.pod;
        let (ready, serving, terminating) = self.conditions();
        let addresses = pod_addresses(pod, self.family).map(Cow::into_owned).collect();
        Endpoint {
            addresses,
            conditions: Some(EndpointConditions {
                ready: Some(ready),
                serving: Some(serving),
                terminating: Some(terminating),
            }),
            target_ref: Some(reference(pod)),
            node_name: self.node_name().map(str::to_owned),
            zone: self.node.and_then(zone).map(str::to_owned),
            hostname: sets_hostname(pod, self.service).map(str::to_owned),
            ..Endpoint::default()
        }
    }

    /// Whether it is this endpoint, but for hints, which follow from it. Nothing is made for that: a
    /// Service may have thousands that are as they were.
    pub(super) fn is(&self, endpoint: &Endpoint) -> bool {
        let (ready, serving, terminating) = self.conditions();
        let conditions = endpoint.conditions.as_ref();
        conditions.is_some_and(|it| {
            (it.ready, it.serving, it.terminating)
                == (Some(ready), Some(serving), Some(terminating))
        }) && endpoint.target_ref.as_ref().is_some_and(|target| is_of(target, self.pod))
            && endpoint.node_name.as_deref() == self.node_name()
            && endpoint.zone.as_deref() == self.node.and_then(zone)
            && endpoint.hostname.as_deref() == sets_hostname(self.pod, self.service)
            && endpoint.addresses.iter().map(Cow::from).eq(pod_addresses(self.pod, self.family))
    }

    /// Whether it is ready, serves, and is on its way out.
    fn conditions(&self) -> (bool, bool, bool) {
        let serving = pod::is_ready(self.pod);
        let terminating = self.pod.metadata.deletion_timestamp.is_some();
        (publishes_not_ready(self.service) || serving && !terminating, serving, terminating)
    }

    fn node_name(&self) -> Option<&str> {
        let spec = self.pod.spec.as_ref()?;
        spec.node_name.as_deref().filter(|name| !name.is_empty())
    }
}

/// Whether a reference is to this Pod, as [`reference`](fn@reference) makes it.
fn is_of(target: &ObjectReference, pod: &Pod) -> bool {
    let ObjectReference { api_version, field_path, kind, name, namespace, uid, .. } = target;
    let meta = &pod.metadata;
    (uid, name, namespace) == (&meta.uid, &meta.name, &meta.namespace)
        && kind.as_deref() == Some("Pod")
        && (api_version, field_path) == (&None, &None)
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

/// Where the ports of a Service lead to on every Pod, unless that depends on the Pod.
pub(super) fn common_ports(spec: &ServiceSpec) -> Option<Vec<EndpointPort>> {
    let same = are_the_same_everywhere(spec.ports.as_deref().unwrap_or_default());
    same.then(|| ports(spec, &Pod::default()))
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
