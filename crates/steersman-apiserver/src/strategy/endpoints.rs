//! Endpoints and `EndpointSlices`: the addresses behind services.

use serde_json::Value;

use super::address;
use super::document::{each, fill, fill_text, text};
use super::part::{Errors, Part};
use super::rules::Rules;
use crate::field::FieldError;
use crate::names;

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const SLICE_ENDPOINTS_MAX: usize = 1000;
const SLICE_ADDRESSES_MAX: usize = 100;
const SLICE_PORTS_MAX: usize = 20_000;
const HINTS_MAX: usize = 8;
const TOPOLOGY_MAX: usize = 16;

/// The strategy of endpoints.
pub(super) const ENDPOINTS: Rules = Rules {
    default: |object| {
        each(object, "subsets", |subset| {
            each(subset, "ports", |port| fill_text(port, "protocol", "TCP"));
        });
    },
    check: endpoints,
    warn: |_| {
        vec!["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".into()]
    },
    ..Rules::NONE
};

/// The strategy of endpoint slices.
pub(super) const ENDPOINT_SLICE: Rules = Rules {
    default: |slice| {
        each(slice, "ports", |port| {
            fill(port, "name", "");
            fill(port, "protocol", "TCP");
        });
    },
    check: slice,
    change: |slice, old, errors| slice.field("addressType").unchanged(&old["addressType"], errors),
    ..Rules::NONE
};

/// Subsets of old that are still the same may be what they are.
fn endpoints(object: &Part<'_>, old: &Value, errors: &mut Errors) {
    if !old.is_null() && object.value["subsets"] == old["subsets"] {
        return;
    }
    for subset in object.each("subsets") {
        let empty = |key| subset.field(key).is_empty();
        if empty("addresses") && empty("notReadyAddresses") {
            errors.push(subset.required("must specify `addresses` or `notReadyAddresses`"));
        }
        for list in ["addresses", "notReadyAddresses"] {
            subset.each(list).for_each(|address| endpoint_address(&address, errors));
        }
        let several = subset.field("ports").len() > 1;
        for port in subset.each("ports") {
            let name = port.field("name");
            if !name.is_empty() {
                name.follows(names::dns1123_label, errors);
            } else if several {
                errors.push(name.required(""));
            }
            port.field("port").port(errors);
            port.field("protocol").one_of(PROTOCOLS, errors);
            app_protocol(&port, errors);
        }
    }
}

fn endpoint_address(address: &Part<'_>, errors: &mut Errors) {
    let ip = address.field("ip");
    address::strict_ip(&ip, errors);
    let host = address.field("hostname");
    if !host.is_empty() {
        host.follows(names::dns1123_label, errors);
    }
    node_name(address, errors);
    address::endpoint_ip(&ip, errors);
}

fn node_name(part: &Part<'_>, errors: &mut Errors) {
    let node = part.field("nodeName");
    if !node.is_absent() {
        node.follows(names::dns1123_subdomain, errors);
    }
}

fn app_protocol(port: &Part<'_>, errors: &mut Errors) {
    let protocol = port.field("appProtocol");
    if !protocol.is_absent() {
        protocol.follows(names::qualified_name, errors);
    }
}

fn slice(slice: &Part<'_>, old: &Value, errors: &mut Errors) {
    slice.field("addressType").one_of(&["FQDN", "IPv4", "IPv6"], errors);
    slice_ports(slice, errors);
    if !old.is_null() && slice.value["endpoints"] == old["endpoints"] {
        return;
    }
    let endpoints = slice.field("endpoints");
    if endpoints.len() > SLICE_ENDPOINTS_MAX {
        errors.push(too_many(&endpoints, SLICE_ENDPOINTS_MAX));
        return;
    }
    let kind = text(&slice.value["addressType"]);
    slice.each("endpoints").for_each(|endpoint| slice_endpoint(&endpoint, kind, errors));
}

fn too_many(part: &Part<'_>, max: usize) -> FieldError {
    FieldError::too_many(part.path(), part.len(), max)
}

fn slice_ports(slice: &Part<'_>, errors: &mut Errors) {
    let ports = slice.field("ports");
    if ports.len() > SLICE_PORTS_MAX {
        errors.push(too_many(&ports, SLICE_PORTS_MAX));
        return;
    }
    let mut seen = std::collections::HashSet::new();
    for port in slice.each("ports") {
        let name = port.field("name");
        if !name.is_empty() {
            name.follows(names::dns1123_label, errors);
        }
        if !seen.insert(text(&port.value["name"])) {
            errors.push(name.duplicate());
        }
        port.field("protocol").one_of(PROTOCOLS, errors);
        app_protocol(&port, errors);
    }
}

fn slice_endpoint(endpoint: &Part<'_>, kind: &str, errors: &mut Errors) {
    let addresses = endpoint.field("addresses");
    if addresses.is_empty() {
        errors.push(addresses.required("must contain at least 1 address"));
    } else if addresses.len() > SLICE_ADDRESSES_MAX {
        errors.push(too_many(&addresses, SLICE_ADDRESSES_MAX));
    }
    for address in endpoint.each("addresses") {
        slice_address(&address, &addresses, kind, errors);
    }
    node_name(endpoint, errors);
    let topology = endpoint.field("deprecatedTopology");
    if !topology.is_absent() {
        if topology.len() > TOPOLOGY_MAX {
            errors.push(too_many(&topology, TOPOLOGY_MAX));
        }
        errors.extend(names::validate_labels(topology.value, &topology.path()));
    }
    let host = endpoint.field("hostname");
    if !host.is_absent() {
        host.follows(names::dns1123_label, errors);
    }
    let hints = endpoint.field("hints");
    hint_names(&hints, "forZones", names::label_value, errors);
    hint_names(&hints, "forNodes", names::dns1123_subdomain, errors);
}

fn slice_address(address: &Part<'_>, list: &Part<'_>, kind: &str, errors: &mut Errors) {
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

fn hint_names(hints: &Part<'_>, list: &str, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
    let all = hints.field(list);
    if all.len() > HINTS_MAX {
        errors.push(too_many(&all, HINTS_MAX));
        return;
    }
    let mut seen = Vec::new();
    for hint in hints.each(list) {
        let name = hint.field("name");
        if seen.contains(&name.text().to_owned()) {
            errors.push(name.duplicate());
        }
        seen.push(name.text().to_owned());
        name.follows(rule, errors);
    }
}
