//! The Endpoints of a Service: objects in, the object out.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, ObjectReference, Pod, Service,
    ServicePort, ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman_values::IpFamily;

use crate::pod;
use crate::service::{
    HEADLESS, TRIGGER_TIME, canonical, families_of, find_port, has_cluster_ip, is_endpoint, names,
    pod_addresses, repack, sets_hostname,
};

/// The most addresses in one object.
const MAX: usize = 1000;
/// Says that there are more, and that they were left out.
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
/// Who keeps Endpoints.
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";

/// Whether these are kept by this controller.
pub(super) fn is_ours(endpoints: &Endpoints) -> bool {
    let labels = endpoints.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(MANAGED_BY)).is_some_and(|manager| manager == MANAGER)
}

/// The Endpoints of a Service that selects these Pods, if they are to be written.
pub(super) fn plan(
    service: &Service,
    pods: &[Arc<Pod>],
    current: Option<&Endpoints>,
    time: Option<Timestamp>,
) -> Option<Endpoints> {
    let spec = service.spec.as_ref()?;
    let mut subsets = subsets(service, spec, pods);
    let truncated = truncate(&mut subsets);
    let (namespace, name) = names(service);
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        ..ObjectMeta::default()
    };
    let mut wanted = current.cloned().unwrap_or(Endpoints { metadata, subsets: None });
    wanted.subsets = (!subsets.is_empty()).then_some(subsets);
    wanted.metadata.labels = Some(labels(service, spec));
    let annotations = wanted.metadata.annotations.get_or_insert_default();
    set(annotations, OVER_CAPACITY, truncated.then(|| "truncated".to_owned()));
    if current.is_some_and(|current| is_same(current, &wanted)) {
        return None;
    }
    let annotations = wanted.metadata.annotations.get_or_insert_default();
    set(annotations, TRIGGER_TIME, time.map(|time| time.to_string()));
    Some(wanted)
}

fn set(annotations: &mut BTreeMap<String, String>, key: &str, value: Option<String>) {
    match value {
        Some(value) => drop(annotations.insert(key.to_owned(), value)),
        None => drop(annotations.remove(key)),
    }
}

fn labels(service: &Service, spec: &ServiceSpec) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(HEADLESS);
    if !has_cluster_ip(spec) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels
}

/// Whether nothing would be told that is not told already.
fn is_same(current: &Endpoints, wanted: &Endpoints) -> bool {
    let over = |endpoints: &Endpoints| {
        endpoints.metadata.annotations.as_ref().and_then(|all| all.get(OVER_CAPACITY)).cloned()
    };
    let current_subsets = without_versions(current.subsets.as_deref().unwrap_or_default());
    let wanted_subsets = wanted.subsets.as_deref().unwrap_or_default();
    current.metadata.labels == wanted.metadata.labels
        && over(current) == over(wanted)
        && (current_subsets == wanted_subsets || repack(&current_subsets) == wanted_subsets)
}

/// Versions of Pods, which others write, do not matter.
fn without_versions(subsets: &[EndpointSubset]) -> Vec<EndpointSubset> {
    let mut subsets = subsets.to_vec();
    for subset in &mut subsets {
        let both = [&mut subset.addresses, &mut subset.not_ready_addresses];
        let targets = both.into_iter().flatten().flatten().filter_map(|it| it.target_ref.as_mut());
        targets.for_each(|target| target.resource_version = None);
    }
    subsets
}

fn subsets(service: &Service, spec: &ServiceSpec, pods: &[Arc<Pod>]) -> Vec<EndpointSubset> {
    let publishes = spec.publish_not_ready_addresses.unwrap_or(false);
    let ports = spec.ports.as_deref().unwrap_or_default();
    let mut subsets = Vec::new();
    for pod in pods.iter().filter(|pod| is_endpoint(pod, publishes)) {
        let Some(address) = address(service, spec, pod) else { continue };
        let ready = publishes || pod::is_ready(pod);
        if ports.is_empty() && spec.cluster_ip.as_deref() == Some("None") {
            subsets.push(single(address.clone(), ready, None));
        }
        let found = ports.iter().filter_map(|port| Some((port, find_port(pod, port)?)));
        subsets.extend(found.map(|(port, number)| {
            single(address.clone(), ready, Some(vec![endpoint_port(port, number)]))
        }));
    }
    repack(&subsets)
}

/// The address of a Pod in the first family of the Service.
fn address(service: &Service, spec: &ServiceSpec, pod: &Pod) -> Option<EndpointAddress> {
    let is_said = spec.ip_families.as_ref().is_some_and(|said| !said.is_empty());
    let own = pod.status.as_ref().and_then(|status| canonical(status.pod_ip.as_deref()?));
    let family = if is_said || has_cluster_ip(spec) {
        families_of(spec).first().copied()?
    } else {
        own.map_or(IpFamily::V4, IpFamily::of)
    };
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    Some(EndpointAddress {
        ip: pod_addresses(pod, family).into_iter().next()?,
        hostname: sets_hostname(pod, service).map(str::to_owned),
        node_name: Some(node.unwrap_or_default()),
        target_ref: Some(ObjectReference {
            kind: Some("Pod".into()),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        }),
    })
}

fn single(
    address: EndpointAddress,
    ready: bool,
    ports: Option<Vec<EndpointPort>>,
) -> EndpointSubset {
    let address = Some(vec![address]);
    let (addresses, not_ready_addresses) = if ready { (address, None) } else { (None, address) };
    EndpointSubset { addresses, not_ready_addresses, ports }
}

fn endpoint_port(port: &ServicePort, number: i32) -> EndpointPort {
    EndpointPort {
        name: port.name.clone().filter(|name| !name.is_empty()),
        port: number,
        protocol: port.protocol.clone(),
        app_protocol: port.app_protocol.clone(),
    }
}

/// Leaves out what is too much: first of those that are not ready, then of the others, from each
/// subset its share. Says whether anything was left out.
fn truncate(subsets: &mut [EndpointSubset]) -> bool {
    let count = |addresses: &Option<Vec<EndpointAddress>>| addresses.iter().flatten().count();
    let ready: usize = subsets.iter().map(|subset| count(&subset.addresses)).sum();
    let not_ready: usize = subsets.iter().map(|subset| count(&subset.not_ready_addresses)).sum();
    if ready + not_ready <= MAX {
        return false;
    }
    let (total, most) = if ready > MAX { (ready, MAX) } else { (not_ready, MAX - ready) };
    let mut left = most;
    for subset in subsets {
        if ready > MAX {
            subset.not_ready_addresses = None;
        }
        let list =
            if ready > MAX { &mut subset.addresses } else { &mut subset.not_ready_addresses };
        let share = (count(list) * most).div_ceil(total).min(left);
        if let Some(list) = list {
            list.truncate(share);
        }
        left -= count(list);
    }
    true
}
