//! Endpoints, ingresses and network policies.

use serde_json::{Value, json};

use super::document::{
    each, fill, fill_text, immutable, is_empty, items, one_of, required, set, text, within,
    within_existing,
};
use super::simple::Simple;
use crate::field::FieldError;

/// The strategies of this family.
pub(super) fn strategy(kind: &str) -> Simple {
    match kind {
        "Endpoints" => Simple { default: endpoints, ..Simple::NOTHING },
        "EndpointSlice" => Simple {
            default: |slice| each(slice, "ports", slice_port),
            validate: |slice| {
                let types = ["FQDN", "IPv4", "IPv6"];
                let absent = required(slice, "", "addressType");
                absent.into_iter().chain(one_of(slice, "", "addressType", &types)).collect()
            },
            validate_change: |old, new| {
                immutable(old, new, "", "addressType").into_iter().collect()
            },
            ..Simple::NOTHING
        },
        "Ingress" => Simple {
            status: Some(|| json!({"loadBalancer": {}})),
            validate: ingress,
            ..Simple::NOTHING
        },
        "IngressClass" => Simple {
            default: |class| {
                within_existing(class, "spec", |spec| {
                    within_existing(spec, "parameters", |p| fill_text(p, "scope", "Cluster"));
                });
            },
            validate_change: |old, new| {
                immutable(&old["spec"], &new["spec"], "spec", "controller").into_iter().collect()
            },
            ..Simple::NOTHING
        },
        "NetworkPolicy" => Simple { default: policy, ..Simple::NOTHING },
        _ => Simple::CLEARED,
    }
}

fn endpoints(object: &mut Value) {
    each(object, "subsets", |subset| {
        each(subset, "ports", |port| fill_text(port, "protocol", "TCP"));
    });
}

fn slice_port(port: &mut Value) {
    fill(port, "name", "");
    fill(port, "protocol", "TCP");
}

fn policy(policy: &mut Value) {
    within(policy, "spec", |spec| {
        if is_empty(&spec["policyTypes"]) {
            let both = !is_empty(&spec["egress"]);
            let types = if both { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            set(spec, "policyTypes", types);
        }
        for direction in ["ingress", "egress"] {
            each(spec, direction, |rule| {
                each(rule, "ports", |port| fill(port, "protocol", "TCP"));
            });
        }
    });
}

fn ingress(ingress: &Value) -> Vec<FieldError> {
    let spec = &ingress["spec"];
    let mut errors = Vec::new();
    if is_empty(&spec["rules"]) && spec["defaultBackend"].is_null() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid("spec", &json!([]), detail));
    }
    for (i, rule) in items(&spec["rules"]).iter().enumerate() {
        for (j, path) in items(&rule["http"]["paths"]).iter().enumerate() {
            let field = format!("spec.rules[{i}].http.paths[{j}]");
            errors.extend(ingress_path(path, &field));
        }
    }
    errors
}

fn ingress_path(path: &Value, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let types = ["Exact", "ImplementationSpecific", "Prefix"];
    match text(&path["pathType"]) {
        "" => {
            let detail = "pathType must be specified";
            errors.push(FieldError::required(format!("{field}.pathType"), detail));
        }
        "Exact" | "Prefix" if !text(&path["path"]).starts_with('/') => {
            let detail = "must be an absolute path";
            errors.push(FieldError::invalid(format!("{field}.path"), &path["path"], detail));
        }
        _ => errors.extend(one_of(path, field, "pathType", &types)),
    }
    let backend = &path["backend"];
    if backend["service"].is_null() && backend["resource"].is_null() {
        errors.push(FieldError::required(format!("{field}.backend"), ""));
    }
    errors
}
