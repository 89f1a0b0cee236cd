//! Endpoints: the addresses behind a service, all in one object.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::address;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill_text};
use crate::table::cells::{at_most, items, number, text};
use crate::table::{Column, age};

/// What is said of `Endpoints`.
pub(super) const KIND: Kind = Kind {
    plural: "endpoints",
    name: "Endpoints",
    short_names: &["ep"],
    traits: &[Trait::CreateOnUpdate],
    storage_prefix: Some("services/endpoints"),
    deprecation: Some(DEPRECATION),
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const DEPRECATION: &str =
    "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";

/// What a port may speak.
pub(in crate::kinds) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

const RULES: Rules = Rules {
    default: |object| {
        each(object, "subsets", |subset| {
            each(subset, "ports", |port| fill_text(port, "protocol", "TCP"));
        });
    },
    check,
    warn: |object, _| warnings(&At::root(object)),
    ..Rules::NONE
};

/// Subsets of old that are still the same may be what they are.
fn check(object: &At<'_, '_>, old: &Value, errors: &mut Errors) {
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

/// The controller writes no odd addresses, so its own are not looked at.
fn warnings(object: &At<'_, '_>) -> Vec<String> {
    if object.value["metadata"]["labels"][MANAGED_BY] == "endpoint-controller" {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for subset in object.each("subsets") {
        for list in ["addresses", "notReadyAddresses"] {
            let told = subset.each(list).filter_map(|address| {
                let ip = address.at("ip");
                address::ip_warning(&ip.path(), ip.text())
            });
            warnings.extend(told);
        }
    }
    warnings
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

/// The name of the node that an address is on must be one.
pub(in crate::kinds) fn node_name(part: &At<'_, '_>, errors: &mut Errors) {
    let node = part.at("nodeName");
    if node.is_set() {
        node.follows(names::dns1123_subdomain, errors);
    }
}

/// What a port speaks above its protocol must be a name.
pub(in crate::kinds) fn app_protocol(port: &At<'_, '_>, errors: &mut Errors) {
    let protocol = port.at("appProtocol");
    if protocol.is_set() {
        protocol.follows(names::qualified_name, errors);
    }
}

fn columns() -> Vec<Column> {
    vec![Column::text("Endpoints", endpoints), age()]
}

fn endpoints(object: &Value, _: Timestamp) -> Value {
    let mut all = Vec::new();
    if items(&object["subsets"]).is_empty() {
        return "<none>".into();
    }
    for subset in items(&object["subsets"]) {
        let addresses = items(&subset["addresses"]).iter().map(|a| text(&a["ip"]));
        match items(&subset["ports"]) {
            [] => all.extend(addresses.map(str::to_owned)),
            ports => {
                all.extend(ports.iter().flat_map(|port| {
                    addresses.clone().map(|ip| host_port(ip, number(&port["port"])))
                }));
            }
        }
    }
    if all.is_empty() { "".into() } else { at_most(&all, 3).into() }
}

fn host_port(ip: &str, port: i64) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::RULES;

    #[test]
    fn odd_addresses_are_warned_of_unless_the_controller_wrote_them() {
        let addresses = json!([{"ip": "10.0.0.1"}, {"ip": "FD00::1"}]);
        let mut object = json!({"subsets": [{"notReadyAddresses": addresses}]});
        assert_eq!(
            RULES.warnings(&object, None),
            ["subsets[0].notReadyAddresses[1].ip: IPv6 address \"FD00::1\" should be in RFC 5952 \
              canonical format (\"fd00::1\")"]
        );
        object["metadata"]["labels"] =
            json!({"endpoints.kubernetes.io/managed-by": "endpoint-controller"});
        assert_eq!(RULES.warnings(&object, None), [""; 0]);
    }
}
