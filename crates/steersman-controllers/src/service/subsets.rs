//! The one way to write down the subsets of Endpoints: addresses that offer the same ports stand
//! together, in order.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset};

use super::ports::order_subset_ports;

/// What tells addresses apart: Pods on the network of their node share one.
type AddressKey<'a> = (&'a str, Option<&'a str>);
/// What tells ports apart.
type PortKey<'a> = (Option<&'a str>, i32, Option<&'a str>, Option<&'a str>);
/// Whether each address is ready.
type Ready<'a> = BTreeMap<AddressKey<'a>, bool>;

/// The same endpoints, written down in the one way.
pub(crate) fn repack(subsets: &[EndpointSubset]) -> Vec<EndpointSubset> {
    let mut addresses: BTreeMap<AddressKey<'_>, &EndpointAddress> = BTreeMap::new();
    let mut by_port: BTreeMap<Option<PortKey<'_>>, (Option<&EndpointPort>, Ready<'_>)> =
        BTreeMap::new();
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
                    addresses.entry(key).or_insert(address);
                    // One that is not ready somewhere is not ready.
                    let known = ready.entry(key).or_insert(is_ready);
                    *known = *known && is_ready;
                }
            }
        }
    }
    let mut by_addresses: BTreeMap<Ready<'_>, Vec<EndpointPort>> = BTreeMap::new();
    for (port, ready) in by_port.into_values() {
        by_addresses.entry(ready).or_default().extend(port.cloned());
    }
    by_addresses.into_iter().map(|(ready, ports)| subset(&addresses, &ready, ports)).collect()
}

fn subset(
    addresses: &BTreeMap<AddressKey<'_>, &EndpointAddress>,
    ready: &Ready<'_>,
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

fn address_key(address: &EndpointAddress) -> AddressKey<'_> {
    (&address.ip, address.target_ref.as_ref().and_then(|target| target.uid.as_deref()))
}

fn port_key(port: &EndpointPort) -> PortKey<'_> {
    let EndpointPort { name, port, protocol, app_protocol } = port;
    (name.as_deref(), *port, protocol.as_deref(), app_protocol.as_deref())
}
