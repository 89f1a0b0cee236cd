//! Services, their endpoints, and what lets traffic in.

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{at_most, items, labels, number, or_none, printed, selector, text, texts};
use super::{Column, age};

pub(super) fn columns(group: &str, kind: &str) -> Option<Vec<Column>> {
    Some(match (group, kind) {
        ("", "Service") => vec![
            Column::field("Type", "spec.type", ""),
            Column::text("Cluster-IP", cluster_ip),
            Column::text("External-IP", external_ip),
            Column::text("Port(s)", service_ports),
            age(),
            Column::text("Selector", |service, _| labels(&service["spec"]["selector"]).into())
                .wide(),
        ],
        ("", "Endpoints") => vec![Column::text("Endpoints", endpoints), age()],
        ("discovery.k8s.io", "EndpointSlice") => vec![
            Column::field("AddressType", "addressType", ""),
            Column::text("Ports", slice_ports),
            Column::text("Endpoints", slice_endpoints),
            age(),
        ],
        ("networking.k8s.io", "Ingress") => vec![
            Column::field("Class", "spec.ingressClassName", "<none>"),
            Column::text("Hosts", hosts),
            Column::text("Address", |ingress, _| load_balancer(ingress).into()),
            Column::text("Ports", |ingress, _| {
                let tls = !items(&ingress["spec"]["tls"]).is_empty();
                if tls { "80, 443".into() } else { "80".into() }
            }),
            age(),
        ],
        ("networking.k8s.io", "IngressClass") => vec![
            Column::text("Name", class_name).called_name(),
            Column::field("Controller", "spec.controller", ""),
            Column::text("Parameters", parameters),
            age(),
        ],
        ("networking.k8s.io", "NetworkPolicy") => vec![
            Column::text("Pod-Selector", |o, _| selector(&o["spec"]["podSelector"]).into()),
            age(),
        ],
        ("networking.k8s.io", "IPAddress") => {
            vec![Column::text("ParentRef", parent), age().unannounced()]
        }
        ("networking.k8s.io", "ServiceCIDR") => {
            vec![Column::text("CIDRs", |o, _| texts(&o["spec"]["cidrs"]).into()), age()]
        }
        _ => return None,
    })
}

fn cluster_ip(service: &Value, _: Timestamp) -> Value {
    let spec = &service["spec"];
    let first = text(&spec["clusterIPs"][0]);
    or_none(if first.is_empty() { text(&spec["clusterIP"]) } else { first })
}

fn external_ip(service: &Value, _: Timestamp) -> Value {
    let spec = &service["spec"];
    let external = texts(&spec["externalIPs"]);
    match text(&spec["type"]) {
        "ExternalName" => text(&spec["externalName"]).into(),
        "LoadBalancer" => {
            let both = [load_balancer(service), external];
            let known: Vec<_> = both.into_iter().filter(|ip| !ip.is_empty()).collect();
            if known.is_empty() { "<pending>".into() } else { known.join(",").into() }
        }
        "ClusterIP" | "NodePort" => or_none(&external),
        _ => "<unknown>".into(),
    }
}

/// The addresses a load balancer reported, sorted, each once.
fn load_balancer<'a>(object: &'a Value) -> String {
    let ingress = items(&object["status"]["loadBalancer"]["ingress"]).iter();
    let address =
        |i: &'a Value| [text(&i["ip"]), text(&i["hostname"])].into_iter().find(|a| !a.is_empty());
    let mut addresses: Vec<_> = ingress.filter_map(address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.join(",")
}

fn service_ports(service: &Value, _: Timestamp) -> Value {
    let port = |port: &Value| match number(&port["nodePort"]) {
        0 => format!("{}/{}", number(&port["port"]), text(&port["protocol"])),
        node => format!("{}:{node}/{}", number(&port["port"]), text(&port["protocol"])),
    };
    let ports: Vec<_> = items(&service["spec"]["ports"]).iter().map(port).collect();
    or_none(&ports.join(","))
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

fn slice_ports(slice: &Value, _: Timestamp) -> Value {
    let port = |port: &Value| match (&port["port"], &port["name"]) {
        (Value::Null, Value::Null) => "*".to_owned(),
        (Value::Null, name) => text(name).to_owned(),
        (number, _) => printed(number),
    };
    let ports: Vec<_> = items(&slice["ports"]).iter().map(port).collect();
    at_most_or_unset(&ports)
}

fn slice_endpoints(slice: &Value, _: Timestamp) -> Value {
    let endpoints = items(&slice["endpoints"]).iter();
    let all: Vec<_> =
        endpoints.flat_map(|e| items(&e["addresses"])).map(|a| text(a).to_owned()).collect();
    at_most_or_unset(&all)
}

fn at_most_or_unset(list: &[String]) -> Value {
    if list.is_empty() { "<unset>".into() } else { at_most(list, 3).into() }
}

fn hosts(ingress: &Value, _: Timestamp) -> Value {
    let rules = items(&ingress["spec"]["rules"]);
    let mut hosts: Vec<&str> = Vec::new();
    for host in rules.iter().map(|rule| text(&rule["host"])) {
        if hosts.len() == 3 {
            // What is left is counted in rules, whether they have a host or not.
            return format!("{} + {} more...", hosts.join(","), rules.len() - 3).into();
        }
        hosts.extend((!host.is_empty()).then_some(host));
    }
    if hosts.is_empty() { "*".into() } else { hosts.join(",").into() }
}

fn class_name(class: &Value, _: Timestamp) -> Value {
    let annotations = &class["metadata"]["annotations"];
    let default = annotations["ingressclass.kubernetes.io/is-default-class"] == "true";
    let name = text(&class["metadata"]["name"]);
    if default { format!("{name} (default)").into() } else { name.into() }
}

fn parameters(class: &Value, _: Timestamp) -> Value {
    let parameters = &class["spec"]["parameters"];
    let (kind, name) = (text(&parameters["kind"]), text(&parameters["name"]));
    match text(&parameters["apiGroup"]) {
        _ if parameters.is_null() => "<none>".into(),
        "" => format!("{kind}/{name}").into(),
        group => format!("{kind}.{group}/{name}").into(),
    }
}

fn parent(address: &Value, _: Timestamp) -> Value {
    let parent = &address["spec"]["parentRef"];
    let keys = ["resource", "group", "namespace", "name"];
    let [resource, group, namespace, name] = keys.map(|key| text(&parent[key]));
    let dot = if group.is_empty() { "" } else { "." };
    let slash = if namespace.is_empty() { "" } else { "/" };
    or_none(&if parent.is_null() {
        String::new()
    } else {
        let kind = format!("{resource}{dot}{group}").to_lowercase();
        format!("{kind}{slash}{namespace}/{name}")
    })
}
