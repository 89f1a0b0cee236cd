//! Endpoints and `EndpointSlices`: the addresses behind services.

use serde_json::Value;

use crate::field::FieldError;
use crate::names;
use crate::rules::Rules;
use crate::rules::address;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill, fill_text, text};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const SLICE_ENDPOINTS_MAX: usize = 1000;
const SLICE_ADDRESSES_MAX: usize = 100;
const SLICE_PORTS_MAX: usize = 20_000;
const HINTS_MAX: usize = 8;
const TOPOLOGY_MAX: usize = 16;

/// The strategy of endpoints.
pub(in crate::kinds) const ENDPOINTS: Rules = Rules {
    default: |object| {
        each(object, "subsets", |subset| {
            each(subset, "ports", |port| fill_text(port, "protocol", "TCP"));
        });
    },
    check: endpoints,
    warn: |_, _| {
        vec!["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".into()]
    },
    ..Rules::NONE
};

/// The strategy of endpoint slices.
pub(in crate::kinds) const ENDPOINT_SLICE: Rules = Rules {
    default: |slice| {
        each(slice, "ports", |port| {
            fill(port, "name", "");
            fill(port, "protocol", "TCP");
        });
    },
    check: slice,
    change: |slice, old, errors| slice.at("addressType").unchanged(&old["addressType"], errors),
    // Their labels say which service they are of.
    is_new_generation: |old, new| old["metadata"]["labels"] != new["metadata"]["labels"],
    ..Rules::NONE
};

/// Subsets of old that are still the same may be what they are.
fn endpoints(object: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    if !old.is_null() && object.value["subsets"] == old["subsets"] {
        return;
    }
    for subset in object.each("subsets") {
        let empty = |key| subset.at(key).is_empty();
        if empty("addresses") && empty("notReadyAddresses") {
            errors.push(subset.required("must specify `addresses` or `notReadyAddresses`"));
        }
        for list in ["addresses", "notReadyAddresses"] {
            subset.each(list).for_each(|address| endpoint_address(&address, errors));
        }
        let several = subset.at("ports").len() > 1;
        for port in subset.each("ports") {
            let name = port.at("name");
            if !name.is_empty() {
                name.follows(names::dns1123_label, errors);
            } else if several {
                errors.push(name.required(""));
            }
            port.at("port").port(errors);
            port.at("protocol").requires_one_of(PROTOCOLS, errors);
            app_protocol(&port, errors);
        }
    }
}

fn endpoint_address(address: &At<'_, '_>, errors: &mut Errors) {
    let ip = address.at("ip");
    address::strict_ip(&ip, errors);
    let host = address.at("hostname");
    if !host.is_empty() {
        host.follows(names::dns1123_label, errors);
    }
    node_name(address, errors);
    address::endpoint_ip(&ip, errors);
}

fn node_name(part: &At<'_, '_>, errors: &mut Errors) {
    let node = part.at("nodeName");
    if node.is_set() {
        node.follows(names::dns1123_subdomain, errors);
    }
}

fn app_protocol(port: &At<'_, '_>, errors: &mut Errors) {
    let protocol = port.at("appProtocol");
    if protocol.is_set() {
        protocol.follows(names::qualified_name, errors);
    }
}

fn slice(slice: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    slice.at("addressType").requires_one_of(&["FQDN", "IPv4", "IPv6"], errors);
    slice_ports(slice, errors);
    if !old.is_null() && slice.value["endpoints"] == old["endpoints"] {
        return;
    }
    let endpoints = slice.at("endpoints");
    if endpoints.len() > SLICE_ENDPOINTS_MAX {
        errors.push(endpoints.too_many(SLICE_ENDPOINTS_MAX));
        return;
    }
    let kind = text(&slice.value["addressType"]);
    slice.each("endpoints").for_each(|endpoint| slice_endpoint(&endpoint, kind, errors));
}

fn slice_ports(slice: &At<'_, '_>, errors: &mut Errors) {
    let ports = slice.at("ports");
    if ports.len() > SLICE_PORTS_MAX {
        errors.push(ports.too_many(SLICE_PORTS_MAX));
        return;
    }
    let mut seen = std::collections::HashSet::new();
    for port in slice.each("ports") {
        let name = port.at("name");
        if !name.is_empty() {
            name.follows(names::dns1123_label, errors);
        }
        if !seen.insert(text(&port.value["name"])) {
            errors.push(name.duplicate());
        }
        port.at("protocol").requires_one_of(PROTOCOLS, errors);
        app_protocol(&port, errors);
    }
}

fn slice_endpoint(endpoint: &At<'_, '_>, kind: &str, errors: &mut Errors) {
    let addresses = endpoint.at("addresses");
    if addresses.is_empty() {
        errors.push(addresses.required("must contain at least 1 address"));
    } else if addresses.len() > SLICE_ADDRESSES_MAX {
        errors.push(addresses.too_many(SLICE_ADDRESSES_MAX));
    }
    for address in endpoint.each("addresses") {
        slice_address(&address, &addresses, kind, errors);
    }
    node_name(endpoint, errors);
    let topology = endpoint.at("deprecatedTopology");
    if topology.is_set() {
        if topology.len() > TOPOLOGY_MAX {
            errors.push(topology.too_many(TOPOLOGY_MAX));
        }
        errors.extend(names::validate_labels(topology.value, &topology.path()));
    }
    let host = endpoint.at("hostname");
    if host.is_set() {
        host.follows(names::dns1123_label, errors);
    }
    let hints = endpoint.at("hints");
    hint_names(&hints, "forZones", names::label_value, errors);
    hint_names(&hints, "forNodes", names::dns1123_subdomain, errors);
}

fn slice_address(address: &At<'_, '_>, list: &At<'_, '_>, kind: &str, errors: &mut Errors) {
    let before = errors.len();
    match kind {
        "IPv4" => drop(address::strict_ip(address, errors)),
        "IPv6" => address::canonical_ip(address, errors),
        "FQDN" => return names::fully_qualified_domain(address.text(), &address.path(), errors),
        _ => return,
    }
    if errors.len() > before {
        return;
    }
    if address::is_ipv6(address.text()) != (kind == "IPv6") {
        let detail = format!("must be an {kind} address");
        errors.push(FieldError::invalid(list.path(), address.value, &detail));
    }
    address::endpoint_ip(address, errors);
}

fn hint_names(hints: &At<'_, '_>, list: &str, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
    let all = hints.at(list);
    if all.len() > HINTS_MAX {
        errors.push(all.too_many(HINTS_MAX));
        return;
    }
    let mut seen = Vec::new();
    for hint in hints.each(list) {
        let name = hint.at("name");
        if seen.contains(&name.text().to_owned()) {
            errors.push(name.duplicate());
        }
        seen.push(name.text().to_owned());
        name.follows(rule, errors);
    }
}
