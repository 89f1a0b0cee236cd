//! The one way to write down the subsets of Endpoints: addresses that offer the same ports stand
//! together, in order.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset};

use super::ports::order_subset_ports;

/// What tells addresses apart: Pods on the network of their node share one.
type AddressKey = (String, Option<String>);
/// What tells ports apart.
type PortKey = (Option<String>, i32, Option<String>, Option<String>);
/// Whether each address is ready.
type Ready = BTreeMap<AddressKey, bool>;

/// The same endpoints, written down in the one way.
pub(crate) fn repack(subsets: &[EndpointSubset]) -> Vec<EndpointSubset> {
    let mut addresses: BTreeMap<AddressKey, &EndpointAddress> = BTreeMap::new();
    let mut by_port: BTreeMap<Option<PortKey>, (Option<&EndpointPort>, Ready)> = BTreeMap::new();
    for subset in subsets {
        let ports = subset.ports.as_deref().unwrap_or_default();
        let none = if ports.is_empty() { Some(None) } else { None };
        for port in ports.iter().map(Some).chain(none) {
            let (_, ready) =
                by_port.entry(port.map(port_key)).or_insert_with(|| (port, Ready::new()));
            for (all, is_ready) in [(&subset.addresses, true), (&subset.not_ready_addresses, false)]
            {
                for address in all.iter().flatten() {
                    let key = address_key(address);
                    addresses.entry(key.clone()).or_insert(address);
                    // One that is not ready somewhere is not ready.
                    let known = ready.entry(key).or_insert(is_ready);
                    *known = *known && is_ready;
                }
            }
        }
    }
    let mut by_addresses: BTreeMap<Ready, Vec<EndpointPort>> = BTreeMap::new();
    for (port, ready) in by_port.into_values() {
        by_addresses.entry(ready).or_default().extend(port.cloned());
    }
    by_addresses.into_iter().map(|(ready, ports)| subset(&addresses, &ready, ports)).collect()
}

fn subset(
    addresses: &BTreeMap<AddressKey, &EndpointAddress>,
    ready: &Ready,
    mut ports: Vec<EndpointPort>,
) -> EndpointSubset {
    let of = |wanted: bool| {
        let keys = ready.iter().filter(|(_, is_ready)| **is_ready == wanted).map(|(key, _)| key);
        not_empty(keys.filter_map(|key| addresses.get(key)).map(|one| (*one).clone()).collect())
    };
    order_subset_ports(&mut ports);
    EndpointSubset { addresses: of(true), not_ready_addresses: of(false), ports: not_empty(ports) }
}

fn not_empty<T>(all: Vec<T>) -> Option<Vec<T>> {
    (!all.is_empty()).then_some(all)
}

fn address_key(address: &EndpointAddress) -> AddressKey {
    (address.ip.clone(), address.target_ref.as_ref().and_then(|target| target.uid.clone()))
}

fn port_key(port: &EndpointPort) -> PortKey {
    (port.name.clone(), port.port, port.protocol.clone(), port.app_protocol.clone())
}
