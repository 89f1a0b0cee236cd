//! Services. Addresses and node ports are allocated elsewhere; here they are only kept.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::Strategy;
use super::document::{each, fill, fill_text, is_empty, items, one_of, remove, set, text, within};
use super::pod::validation::{port_number, protocol};
use crate::field::FieldError;
use crate::names;

/// How long a client sticks to its pod, unless the service says otherwise.
const AFFINITY_SECONDS: i64 = 3 * 3600;

/// The strategy of services.
#[derive(Debug)]
pub(super) struct Service;

impl Strategy for Service {
    fn default(&self, service: &mut Value) {
        within(service, "spec", |spec| {
            fill_text(spec, "type", "ClusterIP");
            affinity(spec);
            each(spec, "ports", |port| {
                fill_text(port, "protocol", "TCP");
                let own = port["port"].clone();
                if port["targetPort"] == 0 || port["targetPort"] == "" {
                    remove(port, "targetPort");
                }
                if !own.is_null() {
                    fill(port, "targetPort", own);
                }
            });
            traffic(spec);
            addresses(spec);
        });
    }

    fn prepare_create(&self, service: &mut Value) {
        set(service, "status", json!({"loadBalancer": {}}));
    }

    /// What was allocated stays, unless the client says something else.
    fn prepare_update(&self, old: &Value, new: &mut Value) {
        self.default(new);
        let (old, Some(new)) = (&old["spec"], new.get_mut("spec")) else { return };
        if old["type"] == "ExternalName" || new["type"] == "ExternalName" {
            return;
        }
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if !old[key].is_null() && (new[key].is_null() || new[key] == "") {
                set(new, key, old[key].clone());
            }
        }
        if has_node_ports(old) && has_node_ports(new) {
            let taken = items(&old["ports"]).to_vec();
            each(new, "ports", |port| {
                let same =
                    |o: &&Value| o["port"] == port["port"] && o["protocol"] == port["protocol"];
                if let Some(old) = taken.iter().find(same).filter(|o| !o["nodePort"].is_null()) {
                    fill(port, "nodePort", old["nodePort"].clone());
                }
            });
        }
    }

    fn validate_create(&self, service: &Value) -> Vec<FieldError> {
        let spec = &service["spec"];
        let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
        let mut errors: Vec<_> = one_of(spec, "spec", "type", &types).into_iter().collect();
        errors.extend(one_of(spec, "spec", "sessionAffinity", &["ClientIP", "None"]));
        errors.extend(names::validate_labels(&spec["selector"], "spec.selector"));
        let external = spec["type"] == "ExternalName";
        if external && text(&spec["externalName"]).is_empty() {
            errors.push(FieldError::required("spec.externalName", ""));
        }
        if !external && spec["clusterIP"] != "None" && is_empty(&spec["ports"]) {
            errors.push(FieldError::required("spec.ports", ""));
        }
        errors.extend(ports(spec));
        errors
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        let (old, new) = (&old["spec"], &new["spec"]);
        let given = text(&old["clusterIP"]);
        let keeps = new["type"] != "ExternalName" && old["type"] != "ExternalName";
        if keeps && !given.is_empty() && new["clusterIP"] != given {
            let ips = json!([text(&new["clusterIP"])]);
            let detail = "may not change once set";
            errors.push(FieldError::invalid("spec.clusterIPs[0]", &ips, detail));
        }
        errors
    }
}

fn affinity(spec: &mut Value) {
    fill_text(spec, "sessionAffinity", "None");
    if spec["sessionAffinity"] == "ClientIP" {
        within(spec, "sessionAffinityConfig", |config| {
            within(config, "clientIP", |ip| fill(ip, "timeoutSeconds", AFFINITY_SECONDS));
        });
    } else {
        remove(spec, "sessionAffinityConfig");
    }
}

fn traffic(spec: &mut Value) {
    let reachable = has_node_ports(spec);
    let kind = text(&spec["type"]).to_owned();
    let from_outside = reachable || (kind == "ClusterIP" && !is_empty(&spec["externalIPs"]));
    if from_outside {
        fill_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind != "ExternalName" {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// One family, and the two fields for addresses in step.
fn addresses(spec: &mut Value) {
    if spec["type"] == "ExternalName" {
        return;
    }
    fill(spec, "ipFamilyPolicy", "SingleStack");
    if is_empty(&spec["ipFamilies"]) {
        set(spec, "ipFamilies", json!(["IPv4"]));
    }
    match (text(&spec["clusterIP"]).to_owned(), text(&spec["clusterIPs"][0]).to_owned()) {
        (one, many) if many.is_empty() && !one.is_empty() => set(spec, "clusterIPs", vec![one]),
        (one, many) if one.is_empty() && !many.is_empty() => set(spec, "clusterIP", many),
        _ => {}
    }
}

fn has_node_ports(spec: &Value) -> bool {
    spec["type"] == "NodePort" || spec["type"] == "LoadBalancer"
}

fn ports(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (mut named, mut taken) = (HashSet::new(), HashSet::new());
    let several = items(&spec["ports"]).len() > 1;
    for (i, port) in items(&spec["ports"]).iter().enumerate() {
        let path = format!("spec.ports[{i}]");
        let field = format!("{path}.name");
        match text(&port["name"]) {
            "" if several => errors.push(FieldError::required(field, "")),
            "" => {}
            name => {
                errors.extend(names::invalid(&field, name, names::dns1123_label));
                if !named.insert(name) {
                    errors.push(FieldError::duplicate(field, &port["name"]));
                }
            }
        }
        errors.extend(port_number(port, &path, "port"));
        errors.extend(protocol(port, &path));
        match &port["targetPort"] {
            Value::Number(_) => errors.extend(port_number(port, &path, "targetPort")),
            Value::String(name) => {
                let field = format!("{path}.targetPort");
                errors.extend(names::invalid(&field, name, names::port_name));
            }
            _ => {}
        }
        if !taken.insert((port["port"].as_i64(), text(&port["protocol"]))) {
            let key = json!({"port": port["port"], "protocol": port["protocol"]});
            errors.push(FieldError::duplicate(path, &key));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(spec: Value) -> Value {
        let mut service = json!({"metadata": {"name": "web"}});
        service["spec"] = spec;
        Service.default(&mut service);
        service
    }

    fn complaints(spec: Value) -> Vec<String> {
        Service.validate_create(&service(spec)).iter().map(FieldError::message).collect()
    }

    #[test]
    fn a_service_is_filled_in_as_kubernetes_does() {
        let service = service(json!({"ports": [{"port": 80}]}));
        assert_eq!(
            service["spec"],
            json!({
                "type": "ClusterIP", "sessionAffinity": "None",
                "internalTrafficPolicy": "Cluster",
                "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
                "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}],
            })
        );
    }

    #[test]
    fn ports_are_checked() {
        for (spec, expected) in [
            (json!({}), "spec.ports: Required value"),
            (
                json!({"ports": [{"port": 0}]}),
                "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            ),
            (
                json!({"ports": [{"port": 1, "name": "a"}, {"port": 2}]}),
                "spec.ports[1].name: Required value",
            ),
            (
                json!({"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]}),
                "spec.ports[1].name: Duplicate value: \"a\"",
            ),
            (
                json!({"ports": [{"port": 1, "protocol": "QUIC"}]}),
                "spec.ports[0].protocol: Unsupported value: \"QUIC\": supported values: \
                 \"SCTP\", \"TCP\", \"UDP\"",
            ),
            (
                json!({"type": "Magic", "ports": [{"port": 1}]}),
                "spec.type: Unsupported value: \"Magic\": supported values: \"ClusterIP\", \
                 \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
            ),
        ] {
            assert!(complaints(spec.clone()).contains(&expected.to_owned()), "{spec}");
        }
        for spec in [
            json!({"clusterIP": "None"}),
            json!({"type": "ExternalName", "externalName": "example.com"}),
            json!({"ports": [{"port": 80, "targetPort": "http"}]}),
        ] {
            assert_eq!(complaints(spec.clone()), Vec::<String>::new(), "{spec}");
        }
    }

    #[test]
    fn an_update_keeps_what_was_allocated() {
        let old = service(json!({
            "type": "NodePort", "clusterIP": "10.0.0.1",
            "ports": [{"port": 80, "nodePort": 30080}],
        }));
        let mut new = service(json!({"type": "NodePort", "ports": [{"port": 80}]}));
        Service.prepare_update(&old, &mut new);
        assert_eq!(new["spec"]["clusterIP"], "10.0.0.1");
        assert_eq!(new["spec"]["clusterIPs"], json!(["10.0.0.1"]));
        assert_eq!(new["spec"]["ports"][0]["nodePort"], 30080);
        assert!(Service.validate_update(&old, &new).is_empty());

        new["spec"]["clusterIP"] = json!("10.0.0.2");
        let errors = Service.validate_update(&old, &new);
        assert!(errors[0].message().ends_with("may not change once set"));
    }
}
