//! Ingresses and their classes.

use serde_json::{Value, json};

use super::address;
use super::document::{fill_text, items, text, within_existing};
use super::part::{Errors, Part};
use super::rules::Rules;
use super::service::ingress_point;
use crate::field::FieldError;
use crate::names;

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const CONTROLLER_MAX: usize = 250;

/// Pieces that a path which is compared literally may not have, and may not end with.
const PATH_PIECES: &[&str] = &["//", "/./", "/../", "%2f", "%2F"];
const PATH_ENDS: &[&str] = &["/..", "/."];

/// The strategy of ingresses.
pub(super) const INGRESS: Rules = Rules {
    status: Some(|| json!({"loadBalancer": {}})),
    check: ingress,
    check_status: status,
    warn: |ingress| {
        let old = &ingress["metadata"]["annotations"][CLASS_ANNOTATION];
        let warning = "annotation \"kubernetes.io/ingress.class\" is deprecated, please use \
                       'spec.ingressClassName' instead";
        if old.is_null() { Vec::new() } else { vec![warning.to_owned()] }
    },
    ..Rules::NONE
};

/// The strategy of ingress classes.
pub(super) const INGRESS_CLASS: Rules = Rules {
    default: |class| {
        within_existing(class, "spec", |spec| {
            within_existing(spec, "parameters", |p| fill_text(p, "scope", "Cluster"));
        });
    },
    check: class,
    change: |class, old, errors| {
        let spec = class.field("spec");
        spec.field("controller").unchanged(&old["spec"]["controller"], errors);
    },
    ..Rules::NONE
};

fn ingress(ingress: &Part<'_>, old: &Value, errors: &mut Errors) {
    let spec = ingress.field("spec");
    let rules = spec.field("rules");
    let backend = spec.field("defaultBackend");
    if rules.is_empty() && backend.is_absent() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid("spec", rules.value, detail));
    }
    if !backend.is_absent() {
        check_backend(&backend, errors);
    }
    for rule in spec.each("rules") {
        check_rule(&rule, errors);
    }
    for tls in spec.each("tls") {
        check_tls(&tls, old, errors);
    }
    let class = spec.field("ingressClassName");
    if !class.is_absent() {
        class.follows(names::dns1123_subdomain, errors);
    }
    let annotation = &ingress.value["metadata"]["annotations"][CLASS_ANNOTATION];
    let both = !annotation.is_null() && !class.is_absent();
    if old.is_null() && both && annotation != class.value {
        let detail = "must match `ingressClassName` when both are specified";
        let field = format!("annotations.{CLASS_ANNOTATION}");
        errors.push(FieldError::invalid(field, annotation, detail));
    }
}

fn check_tls(tls: &Part<'_>, old: &Value, errors: &mut Errors) {
    for host in tls.each("hosts") {
        host.follows(names::host_or_wildcard, errors);
    }
    let secret = tls.field("secretName");
    let odd = |tls: &Value| {
        let name = text(&tls["secretName"]);
        !name.is_empty() && !names::dns1123_subdomain(name).is_empty()
    };
    if !secret.is_empty() && !items(&old["spec"]["tls"]).iter().any(odd) {
        secret.follows(names::dns1123_subdomain, errors);
    }
}

fn check_rule(rule: &Part<'_>, errors: &mut Errors) {
    let host = rule.field("host");
    if !host.is_empty() {
        if address::parse_ip(host.text()).is_some() {
            errors.push(host.invalid("must be a DNS name, not an IP address"));
        }
        host.follows(names::host_or_wildcard, errors);
    }
    let http = rule.field("http");
    if http.is_absent() {
        return;
    }
    http.field("paths").need(errors);
    http.each("paths").for_each(|path| check_path(&path, errors));
}

fn check_path(path: &Part<'_>, errors: &mut Errors) {
    let (kind, route) = (path.field("pathType"), path.field("path"));
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
            errors.push(kind.unsupported(&["Exact", "ImplementationSpecific", "Prefix"]));
        }
    }
    check_backend(&path.field("backend"), errors);
}

fn check_backend(backend: &Part<'_>, errors: &mut Errors) {
    let (resource, service) = (backend.field("resource"), backend.field("service"));
    let mistake = |detail| FieldError::invalid(backend.path(), &Value::from(""), detail);
    match (resource.is_absent(), service.is_absent()) {
        (false, false) => errors.push(mistake("cannot set both resource and service backends")),
        (true, true) => errors.push(mistake("resource or service backend is required")),
        (false, true) => reference(&resource, errors),
        (true, false) => {
            service.field("name").need_name(names::dns1123_label, errors);
            let port = service.field("port");
            let (name, number) = (port.field("name"), port.field("number"));
            match (name.is_empty(), number.number() == 0) {
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

fn reference(part: &Part<'_>, errors: &mut Errors) {
    let group = part.field("apiGroup");
    if !group.is_absent() {
        group.follows(names::dns1123_subdomain, errors);
    }
    part.field("kind").need_name(names::path_segment, errors);
    part.field("name").need_name(names::path_segment, errors);
}

fn status(ingress: &Part<'_>, old: &Value, errors: &mut Errors) {
    let before: Value = items(&old["status"]["loadBalancer"]["ingress"])
        .iter()
        .map(|point| point["ip"].clone())
        .collect();
    let status = ingress.field("status");
    let balancer = status.field("loadBalancer");
    for point in balancer.each("ingress") {
        ingress_point(&point, &before, errors);
    }
}

fn class(class: &Part<'_>, _old: &Value, errors: &mut Errors) {
    let spec = class.field("spec");
    let controller = spec.field("controller");
    if controller.text().len() > CONTROLLER_MAX {
        errors.push(FieldError::too_long("spec.controller", CONTROLLER_MAX));
    }
    names::domain_prefixed_path(controller.text(), "spec.controller", errors);
    let parameters = spec.field("parameters");
    if parameters.is_absent() {
        return;
    }
    reference(&parameters, errors);
    let (scope, namespace) = (parameters.field("scope"), parameters.field("namespace"));
    match (scope.text(), namespace.is_absent()) {
        ("Namespace", true) => {
            errors.push(namespace.required("`parameters.scope` is set to 'Namespace'"));
        }
        ("Namespace", false) => namespace.follows(names::dns1123_label, errors),
        ("Cluster", false) => {
            errors.push(namespace.forbidden("`parameters.scope` is set to 'Cluster'"));
        }
        ("Cluster", true) => {}
        _ => scope.one_of(&["Cluster", "Namespace"], errors),
    }
}
