//! The Endpoints of a Service: objects in, the object out.

use std::borrow::Cow;
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
    HEADLESS, TRIGGER_TIME, are_the_same_everywhere, canonical, families_of, find_port,
    has_cluster_ip, is_endpoint, names, pod_addresses, repack, same_target, sets_hostname,
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
    let (subsets, truncated) = subsets(service, spec, pods);
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
    let [before, after] = [current, wanted].map(|it| it.subsets.as_deref().unwrap_or_default());
    current.metadata.labels == wanted.metadata.labels
        && over(current) == over(wanted)
        && (are_same(before, after) || are_same(&repack(before), after))
}

/// Whether subsets are the same. Versions of Pods, which others write, do not matter.
fn are_same(a: &[EndpointSubset], b: &[EndpointSubset]) -> bool {
    type Addresses = Option<Vec<EndpointAddress>>;
    let address = |(a, b): (&EndpointAddress, &EndpointAddress)| {
        (&a.ip, &a.hostname, &a.node_name) == (&b.ip, &b.hostname, &b.node_name)
            && same_target(a.target_ref.as_ref(), b.target_ref.as_ref())
    };
    let addresses = |a: &Addresses, b: &Addresses| {
        let [a, b] = [a, b].map(|all| all.as_deref().unwrap_or_default());
        a.len() == b.len() && a.iter().zip(b).all(address)
    };
    let subset = |(a, b): (&EndpointSubset, &EndpointSubset)| {
        a.ports == b.ports
            && addresses(&a.addresses, &b.addresses)
            && addresses(&a.not_ready_addresses, &b.not_ready_addresses)
    };
    a.len() == b.len() && a.iter().zip(b).all(subset)
}

/// The subsets, and whether something was left out of them.
fn subsets(
    service: &Service,
    spec: &ServiceSpec,
    pods: &[Arc<Pod>],
) -> (Vec<EndpointSubset>, bool) {
    let publishes = spec.publish_not_ready_addresses.unwrap_or(false);
    let ports = spec.ports.as_deref().unwrap_or_default();
    let family = family_of(spec);
    let is_headless = spec.cluster_ip.as_deref() == Some("None");
    let mut found: Vec<Found<'_>> = Vec::new();
    for pod in pods.iter().filter(|pod| is_endpoint(pod, publishes)) {
        let Some(ip) = address_of(pod, family) else { continue };
        found.push(Found { ip, pod, ready: publishes || pod::is_ready(pod) });
    }
    if ports.is_empty() && !is_headless {
        return (Vec::new(), false);
    }
    if are_the_same_everywhere(ports) {
        let ports = ports
            .iter()
            .filter_map(|port| Some(endpoint_port(port, find_port(&Pod::default(), port)?)));
        return one_subset(service, found, ports.collect());
    }
    let mut subsets = Vec::new();
    for found in found {
        let own = ports.iter().filter_map(|port| Some((port, find_port(found.pod, port)?)));
        subsets.extend(own.map(|(port, number)| {
            let address = found.address(service);
            single(address, found.ready, Some(vec![endpoint_port(port, number)]))
        }));
    }
    let mut subsets = repack(&subsets);
    let truncated = truncate(&mut subsets);
    (subsets, truncated)
}

/// A Pod with the address by which it is found.
struct Found<'a> {
    ip: Cow<'a, str>,
    pod: &'a Pod,
    ready: bool,
}

impl Found<'_> {
    /// As [`repack`] puts addresses in order and tells them apart.
    fn key(&self) -> (&str, Option<&str>) {
        (&self.ip, self.pod.metadata.uid.as_deref())
    }

    fn address(&self, service: &Service) -> EndpointAddress {
        let pod = self.pod;
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        EndpointAddress {
            ip: self.ip.clone().into_owned(),
            hostname: sets_hostname(pod, service).map(str::to_owned),
            node_name: Some(node.unwrap_or_default()),
            target_ref: Some(ObjectReference {
                kind: Some("Pod".into()),
                namespace: pod.metadata.namespace.clone(),
                name: pod.metadata.name.clone(),
                uid: pod.metadata.uid.clone(),
                ..ObjectReference::default()
            }),
        }
    }
}

/// The same as [`repack`] and [`truncate`] make of Pods that all have the same ports, as nearly
/// always. A Service may have thousands of Pods, of which most are left out, so addresses are made
/// only of those that are not.
fn one_subset(
    service: &Service,
    mut found: Vec<Found<'_>>,
    ports: Vec<EndpointPort>,
) -> (Vec<EndpointSubset>, bool) {
    found.sort_by(|a, b| a.key().cmp(&b.key()));
    found.dedup_by(|next, first| {
        let same = next.key() == first.key();
        first.ready &= next.ready || !same;
        same
    });
    let Some(any) = found.first() else { return (Vec::new(), false) };
    let ports = repack(&[single(any.address(service), true, Some(ports))]);
    let ports = ports.into_iter().next().and_then(|subset| subset.ports);
    let (ready, not_ready): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| found.ready);
    let truncated = ready.len() + not_ready.len() > MAX;
    let room = MAX.saturating_sub(ready.len());
    let told = |all: Vec<Found<'_>>, most: usize| -> Option<Vec<EndpointAddress>> {
        let told: Vec<_> = all.iter().take(most).map(|found| found.address(service)).collect();
        (!told.is_empty()).then_some(told)
    };
    let (addresses, not_ready_addresses) = (told(ready, MAX), told(not_ready, room));
    (vec![EndpointSubset { addresses, not_ready_addresses, ports }], truncated)
}

/// The first family of the Service; if it says none, each Pod tells by its own.
fn family_of(spec: &ServiceSpec) -> Option<IpFamily> {
    let is_said = spec.ip_families.as_ref().is_some_and(|said| !said.is_empty());
    (is_said || has_cluster_ip(spec)).then(|| families_of(spec).first().copied()).flatten()
}

/// The address of a Pod in a family, or in that of its first address.
fn address_of(pod: &Pod, family: Option<IpFamily>) -> Option<Cow<'_, str>> {
    let own = || pod.status.as_ref().and_then(|status| canonical(status.pod_ip.as_deref()?));
    let family = family.unwrap_or_else(|| own().map_or(IpFamily::V4, IpFamily::of));
    pod_addresses(pod, family).next()
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
