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
use crate::rules::document::{each, fill, same, text};
use crate::table::cells::{at_most_or_unset, items, printed};
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

/// So many ports and addresses are shown.
const SHOWN: usize = 3;

const RULES: Rules = Rules {
    default: |slice| {
        each(slice, "ports", |port| {
            fill(port, "name", "");
            fill(port, "protocol", "TCP");
        });
    },
    check,
    create: |slice| drop_topology(&Value::Null, slice),
    keep: drop_topology,
    change: |slice, old, errors| slice.at("addressType").unchanged(&old["addressType"], errors),
    warn: warnings,
    // Their labels say which service they are of.
    is_new_generation: |old, new| old["metadata"]["labels"] != new["metadata"]["labels"],
    ..Rules::NONE
};

/// Who keep slices, and keep odd addresses out of them.
const CONTROLLERS: [&str; 2] =
    ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The topology of older versions can only be read. Where it named the node of an endpoint, that is
/// kept as the name of its node.
fn drop_topology(old: &Value, slice: &mut Value) {
    if !old.is_null() && same(&old["endpoints"], &slice["endpoints"]) {
        return;
    }
    let named = |endpoint: &Value, node: &str| endpoint["deprecatedTopology"][HOSTNAME] == node;
    each(slice, "endpoints", |endpoint| {
        let Some(fields) = endpoint.as_object_mut() else { return };
        let Some(topology) = fields.remove("deprecatedTopology") else { return };
        let node = text(&topology[HOSTNAME]);
        let is_known = old_items(old).any(|endpoint| !node.is_empty() && named(endpoint, node));
        if is_known && !fields.contains_key("nodeName") && names::dns1123_subdomain(node).is_empty()
        {
            fields.insert("nodeName".to_owned(), node.into());
        }
    });
}

fn old_items(old: &Value) -> impl Iterator<Item = &Value> {
    items(&old["endpoints"]).iter()
}

fn warnings(slice: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none() && slice["addressType"] == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let keeper = text(&slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"]);
    if CONTROLLERS.contains(&keeper) {
        return warnings;
    }
    for (i, endpoint) in items(&slice["endpoints"]).iter().enumerate() {
        for (j, address) in items(&endpoint["addresses"]).iter().enumerate() {
            let path = format!("endpoints[{i}].addresses[{j}]");
            warnings.extend(address::ip_warning(&path, text(address)));
        }
    }
    warnings
}

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
        port.at("protocol").requires_known(PROTOCOLS, errors);
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
    if hint_names(&hints, "forZones", names::label_value, errors) {
        hint_names(&hints, "forNodes", names::dns1123_subdomain, errors);
    }
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

/// Whether there are so few that they were looked at.
fn hint_names(
    hints: &At<'_, '_>,
    list: &str,
    rule: fn(&str) -> Vec<String>,
    errors: &mut Errors,
) -> bool {
    let all = hints.at(list);
    if all.len() > HINTS_MAX {
        errors.push(all.too_many(HINTS_MAX));
        return false;
    }
    let mut seen = HashSet::new();
    for hint in hints.each(list) {
        let name = hint.at("name");
        if !seen.insert(name.text()) {
            errors.push(name.duplicate());
        }
        name.follows(rule, errors);
    }
    true
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
    at_most_or_unset(&ports, SHOWN).into()
}

fn shown_endpoints(slice: &Value, _: Timestamp) -> Value {
    let endpoints = items(&slice["endpoints"]).iter();
    let all: Vec<_> =
        endpoints.flat_map(|e| items(&e["addresses"])).map(|a| text(a).to_owned()).collect();
    at_most_or_unset(&all, SHOWN).into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{HOSTNAME, RULES};

    #[test]
    fn topology_of_older_versions_is_dropped_and_a_node_it_named_is_kept() {
        let of = |endpoint: Value| json!({"endpoints": [endpoint]});
        let old = of(json!({"addresses": ["10.0.0.1"], "deprecatedTopology": {HOSTNAME: "n1"}}));
        let mut new = of(json!({"deprecatedTopology": {"a": "b"}}));
        RULES.prepare_create(&mut new);
        assert_eq!(new, of(json!({})));
        let mut new = of(json!({"addresses": [], "deprecatedTopology": {HOSTNAME: "n1"}}));
        RULES.prepare_update(&old, &mut new);
        assert_eq!(new, of(json!({"addresses": [], "nodeName": "n1"})));
        let mut new = of(json!({"addresses": [], "deprecatedTopology": {HOSTNAME: "n2"}}));
        RULES.prepare_update(&old, &mut new);
        assert_eq!(new, of(json!({"addresses": []})), "nobody said so before");
        let mut same = old.clone();
        RULES.prepare_update(&old, &mut same);
        assert_eq!(same, old, "what is left alone stays");
    }

    #[test]
    fn people_are_told_of_names_and_odd_addresses_and_controllers_are_not() {
        let mut slice = json!({"addressType": "FQDN", "endpoints": [{"addresses": ["a.example"]}]});
        let deprecated = "spec.addressType: FQDN endpoints are deprecated";
        assert_eq!((RULES.warn)(&slice, None), [deprecated]);
        assert!((RULES.warn)(&slice, Some(&slice)).is_empty());
        slice =
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1", "010.0.0.2"]}]});
        let odd = "endpoints[0].addresses[1]: non-standard IP address \"010.0.0.2\" is invalid: \
                   use \"10.0.0.2\"";
        assert_eq!((RULES.warn)(&slice, Some(&slice)), [odd]);
        slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] =
            "endpointslice-controller.k8s.io".into();
        assert!((RULES.warn)(&slice, None).is_empty());
    }
}
