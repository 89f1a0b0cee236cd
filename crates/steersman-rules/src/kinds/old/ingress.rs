//! Ingresses and their classes.

use serde_json::{Value, json};

use super::service::ingress_point;
use crate::field::FieldError;
use crate::names;
use crate::rules::Rules;
use crate::rules::address;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill_text, items, text, within_existing};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const CONTROLLER_MAX: usize = 250;

/// Pieces that a path which is compared literally may not have, and may not end with.
const PATH_PIECES: &[&str] = &["//", "/./", "/../", "%2f", "%2F"];
const PATH_ENDS: &[&str] = &["/..", "/."];

/// The strategy of ingresses.
pub(in crate::kinds) const INGRESS: Rules = Rules {
    status: Some(|| json!({"loadBalancer": {}})),
    check: ingress,
    check_status: status,
    warn: |ingress, _| {
        let old = &ingress["metadata"]["annotations"][CLASS_ANNOTATION];
        let warning = "annotation \"kubernetes.io/ingress.class\" is deprecated, please use \
                       'spec.ingressClassName' instead";
        if old.is_null() { Vec::new() } else { vec![warning.to_owned()] }
    },
    ..Rules::NONE
};

/// The strategy of ingress classes.
pub(in crate::kinds) const INGRESS_CLASS: Rules = Rules {
    default: |class| {
        within_existing(class, "spec", |spec| {
            within_existing(spec, "parameters", |p| fill_text(p, "scope", "Cluster"));
        });
    },
    check: class,
    change: |class, old, errors| {
        let spec = class.at("spec");
        spec.at("controller").unchanged(&old["spec"]["controller"], errors);
    },
    ..Rules::NONE
};

fn ingress(ingress: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = ingress.at("spec");
    let rules = spec.at("rules");
    let backend = spec.at("defaultBackend");
    if rules.is_empty() && backend.is_absent() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid("spec", &json!([]), detail));
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
    let (kind, route) = (path.at("pathType"), path.at("path"));
    let absolute = route.text().starts_with('/');
    match kind.value.as_str() {
        None => return errors.push(kind.required("pathType must be specified")),
        Some("Exact" | "Prefix") => {
            if !absolute {
                let given = Value::from(route.text());
                let detail = "must be an absolute path";
                errors.push(FieldError::invalid(route.path(), &given, detail));
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
    let (resource, service) = (backend.at("resource"), backend.at("service"));
    let mistake = |detail| FieldError::invalid(backend.path(), &Value::from(""), detail);
    match (resource.is_absent(), service.is_absent()) {
        (false, false) => errors.push(mistake("cannot set both resource and service backends")),
        (true, true) => errors.push(mistake("resource or service backend is required")),
        (false, true) => reference(&resource, errors),
        (true, false) => {
            service.at("name").requires(names::dns1123_label, errors);
            let port = service.at("port");
            let (name, number) = (port.at("name"), port.at("number"));
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

fn reference(part: &At<'_, '_>, errors: &mut Errors) {
    let group = part.at("apiGroup");
    if group.is_set() {
        group.follows(names::dns1123_subdomain, errors);
    }
    part.at("kind").requires(names::path_segment, errors);
    part.at("name").requires(names::path_segment, errors);
}

fn status(ingress: &At<'_, '_>, old: &Value, errors: &mut Errors) {
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

fn class(class: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = class.at("spec");
    let controller = spec.at("controller");
    if controller.text().len() > CONTROLLER_MAX {
        errors.push(FieldError::too_long("spec.controller", CONTROLLER_MAX));
    }
    names::domain_prefixed_path(controller.text(), "spec.controller", errors);
    let parameters = spec.at("parameters");
    if parameters.is_absent() {
        return;
    }
    reference(&parameters, errors);
    let (scope, namespace) = (parameters.at("scope"), parameters.at("namespace"));
    match (scope.text(), namespace.is_absent()) {
        ("Namespace", true) => {
            errors.push(namespace.required("`parameters.scope` is set to 'Namespace'"));
        }
        ("Namespace", false) => namespace.follows(names::dns1123_label, errors),
        ("Cluster", false) => {
            errors.push(namespace.forbidden("`parameters.scope` is set to 'Cluster'"));
        }
        ("Cluster", true) => {}
        _ => scope.requires_one_of(&["Cluster", "Namespace"], errors),
    }
}
