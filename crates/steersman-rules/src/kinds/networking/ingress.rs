//! `Ingress`: every route leads to exactly one backend, a service or an object of any kind, by
//! paths that are compared as their type says.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::object_reference::object_reference;
use crate::field::FieldError;
use crate::kinds::core::service::ingress_point;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::address;
use crate::rules::at::{At, Errors};
use crate::rules::document::{items, text};
use crate::rules::status_addresses;
use crate::table::cells::load_balancer;
use crate::table::{Column, age};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// Pieces that a path which is compared literally may not have, and may not end with.
const PATH_PIECES: &[&str] = &["//", "/./", "/../", "%2f", "%2F"];
const PATH_ENDS: &[&str] = &["/..", "/."];

/// What is said of `Ingress`.
pub(super) const KIND: Kind = Kind {
    plural: "ingresses",
    name: "Ingress",
    short_names: &["ing"],
    traits: &[Trait::Generation, Trait::Status],
    storage_prefix: Some("ingress"),
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    status: Some(|| json!({"loadBalancer": {}})),
    check,
    check_status,
    warn_status: status_addresses::of_load_balancer,
    warn: |ingress, old| if old.is_none() { warnings(ingress) } else { Vec::new() },
    ..Rules::NONE
};

fn check(ingress: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = ingress.at("spec");
    let rules = spec.at("rules");
    let backend = spec.at("defaultBackend");
    if rules.is_empty() && backend.is_absent() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(spec.with(rules.value).invalid(detail));
    }
    if backend.is_set() {
        check_backend(&backend, errors);
    }
    for rule in spec.each("rules") {
        check_rule(&rule, errors);
    }
    for tls in spec.each("tls") {
        check_tls(&tls, old, errors);
    }
    let class = spec.at("ingressClassName");
    if class.is_set() {
        class.follows(names::dns1123_subdomain, errors);
    }
    let annotation = &ingress.value["metadata"]["annotations"][CLASS_ANNOTATION];
    let both = !annotation.is_null() && class.is_set();
    if old.is_null() && both && annotation != class.value {
        let detail = "must match `ingressClassName` when both are specified";
        let field = format!("annotations.{CLASS_ANNOTATION}");
        errors.push(FieldError::invalid(field, annotation, detail));
    }
}

fn check_rule(rule: &At<'_, '_>, errors: &mut Errors) {
    let host = rule.at("host");
    if !host.is_empty() {
        if address::parse_ip(host.text()).is_some() {
            errors.push(host.invalid("must be a DNS name, not an IP address"));
        }
        host.follows(names::host_or_wildcard, errors);
    }
    let http = rule.at("http");
    if http.is_absent() {
        return;
    }
    http.at("paths").require(errors);
    http.each("paths").for_each(|path| check_path(&path, errors));
}

fn check_path(path: &At<'_, '_>, errors: &mut Errors) {
    let kind = path.at("pathType");
    let route = path.at("path");
    let absolute = route.text().starts_with('/');
    match kind.value.as_str() {
        None => return errors.push(kind.required("pathType must be specified")),
        Some("Exact" | "Prefix") => {
            if !absolute {
                errors.push(route.invalid_value(route.text(), "must be an absolute path"));
            }
            for piece in PATH_PIECES.iter().filter(|piece| route.text().contains(**piece)) {
                errors.push(route.invalid(&format!("must not contain '{piece}'")));
            }
            for end in PATH_ENDS.iter().filter(|end| route.text().ends_with(**end)) {
                errors.push(route.invalid(&format!("cannot end with '{end}'")));
            }
        }
        Some("ImplementationSpecific") => {
            if !route.is_empty() && !absolute {
                errors.push(route.invalid("must be an absolute path"));
            }
        }
        Some(_) => {
            errors.push(kind.not_supported(&["Exact", "ImplementationSpecific", "Prefix"]));
        }
    }
    check_backend(&path.at("backend"), errors);
}

fn check_backend(backend: &At<'_, '_>, errors: &mut Errors) {
    let resource = backend.at("resource");
    let service = backend.at("service");
    let mistake = |detail| backend.invalid_value("", detail);
    match (resource.is_absent(), service.is_absent()) {
        (false, false) => errors.push(mistake("cannot set both resource and service backends")),
        (true, true) => errors.push(mistake("resource or service backend is required")),
        (false, true) => object_reference(&resource, errors),
        (true, false) => {
            service.at("name").requires(names::dns1123_label, errors);
            let port = service.at("port");
            let name = port.at("name");
            let number = port.at("number");
            match (name.is_empty(), number.number_or_zero() == 0) {
                (false, false) => {
                    errors.push(mistake("cannot set both port name & port number"));
                }
                (false, true) => name.follows(names::port_name, errors),
                (true, false) => number.port(errors),
                (true, true) => errors.push(backend.required("port name or number is required")),
            }
        }
    }
}

/// The name of a secret is not looked at where the stored object had a wrong one already.
fn check_tls(tls: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    for host in tls.each("hosts") {
        host.follows(names::host_or_wildcard, errors);
    }
    let secret = tls.at("secretName");
    let odd = |tls: &Value| {
        let name = text(&tls["secretName"]);
        !name.is_empty() && !names::dns1123_subdomain(name).is_empty()
    };
    if !secret.is_empty() && !items(&old["spec"]["tls"]).iter().any(odd) {
        secret.follows(names::dns1123_subdomain, errors);
    }
}

fn check_status(ingress: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let before: Value = items(&old["status"]["loadBalancer"]["ingress"])
        .iter()
        .map(|point| point["ip"].clone())
        .collect();
    let status = ingress.at("status");
    let balancer = status.at("loadBalancer");
    for point in balancer.each("ingress") {
        ingress_point(&point, &before, errors);
    }
}

fn warnings(ingress: &Value) -> Vec<String> {
    let annotated = !ingress["metadata"]["annotations"][CLASS_ANNOTATION].is_null();
    if !annotated || !ingress["spec"]["ingressClassName"].is_null() {
        return Vec::new();
    }
    let warning = "annotation \"kubernetes.io/ingress.class\" is deprecated, please use \
                   'spec.ingressClassName' instead";
    vec![warning.to_owned()]
}

fn columns() -> Vec<Column> {
    vec![
        Column::field("Class", "spec.ingressClassName", "<none>"),
        Column::text("Hosts", hosts),
        Column::text("Address", |ingress, _| load_balancer(ingress).into()),
        Column::text("Ports", |ingress, _| {
            let tls = !items(&ingress["spec"]["tls"]).is_empty();
            if tls { "80, 443".into() } else { "80".into() }
        }),
        age(),
    ]
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
