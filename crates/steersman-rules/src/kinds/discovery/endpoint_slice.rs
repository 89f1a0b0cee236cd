//! Endpoint slices: some of the addresses behind a service, all of one type.

use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::field::FieldError;
use crate::kinds::core::endpoints::{PROTOCOLS, app_protocol, node_name};
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::address;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill, text};
use crate::table::cells::{at_most, items, printed};
use crate::table::{Column, age};

/// What is said of `EndpointSlice`.
pub(super) const KIND: Kind = Kind {
    plural: "endpointslices",
    name: "EndpointSlice",
    traits: &[Trait::Generation],
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;
const HINTS_MAX: usize = 8;
const TOPOLOGY_MAX: usize = 16;

const RULES: Rules = Rules {
    default: |slice| {
        each(slice, "ports", |port| {
            fill(port, "name", "");
            fill(port, "protocol", "TCP");
        });
    },
    check,
    change: |slice, old, errors| slice.at("addressType").unchanged(&old["addressType"], errors),
    // Their labels say which service they are of.
    is_new_generation: |old, new| old["metadata"]["labels"] != new["metadata"]["labels"],
    ..Rules::NONE
};

fn check(slice: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    slice.at("addressType").requires_one_of(&["FQDN", "IPv4", "IPv6"], errors);
    ports(slice, errors);
    if !old.is_null() && slice.value["endpoints"] == old["endpoints"] {
        return;
    }
    let endpoints = slice.at("endpoints");
    if endpoints.len() > ENDPOINTS_MAX {
        errors.push(endpoints.too_many(ENDPOINTS_MAX));
        return;
    }
    let kind = text(&slice.value["addressType"]);
    slice.each("endpoints").for_each(|endpoint| check_endpoint(&endpoint, kind, errors));
}

fn ports(slice: &At<'_, '_>, errors: &mut Errors) {
    let ports = slice.at("ports");
    if ports.len() > PORTS_MAX {
        errors.push(ports.too_many(PORTS_MAX));
        return;
    }
    let mut seen = HashSet::new();
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

fn check_endpoint(endpoint: &At<'_, '_>, kind: &str, errors: &mut Errors) {
    let addresses = endpoint.at("addresses");
    if addresses.is_empty() {
        errors.push(addresses.required("must contain at least 1 address"));
    } else if addresses.len() > ADDRESSES_MAX {
        errors.push(addresses.too_many(ADDRESSES_MAX));
    }
    for address in endpoint.each("addresses") {
        check_address(&address, &addresses, kind, errors);
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

fn check_address(address: &At<'_, '_>, list: &At<'_, '_>, kind: &str, errors: &mut Errors) {
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

fn columns() -> Vec<Column> {
    vec![
        Column::field("AddressType", "addressType", ""),
        Column::text("Ports", shown_ports),
        Column::text("Endpoints", shown_endpoints),
        age(),
    ]
}

fn shown_ports(slice: &Value, _: Timestamp) -> Value {
    let port = |port: &Value| match (&port["port"], &port["name"]) {
        (Value::Null, Value::Null) => "*".to_owned(),
        (Value::Null, name) => text(name).to_owned(),
        (number, _) => printed(number),
    };
    let ports: Vec<_> = items(&slice["ports"]).iter().map(port).collect();
    at_most_or_unset(&ports)
}

fn shown_endpoints(slice: &Value, _: Timestamp) -> Value {
    let endpoints = items(&slice["endpoints"]).iter();
    let all: Vec<_> =
        endpoints.flat_map(|e| items(&e["addresses"])).map(|a| text(a).to_owned()).collect();
    at_most_or_unset(&all)
}

fn at_most_or_unset(list: &[String]) -> Value {
    if list.is_empty() { "<unset>".into() } else { at_most(list, 3).into() }
}
