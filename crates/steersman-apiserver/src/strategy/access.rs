//! Roles and their bindings, webhooks and admission policies, leases and priorities.

use serde_json::{Value, json};

use super::document::{each, fill, fill_text, required, text, within, within_existing};
use super::simple::Simple;
use crate::field::FieldError;

const RBAC: &str = "rbac.authorization.k8s.io";
const USER_PRIORITY_MAX: i64 = 1_000_000_000;

/// The strategy of a role binding, in a namespace or for the cluster.
pub(super) fn role_binding() -> Simple {
    Simple {
        default: |binding| {
            within_existing(binding, "roleRef", |role| fill_text(role, "apiGroup", RBAC));
            each(binding, "subjects", |subject| {
                if subject["kind"] == "User" || subject["kind"] == "Group" {
                    fill_text(subject, "apiGroup", RBAC);
                }
            });
        },
        validate: |binding| required(&binding["roleRef"], "roleRef", "name").into_iter().collect(),
        validate_change: |old, new| {
            let changed = old["roleRef"] != new["roleRef"];
            let error = || FieldError::invalid("roleRef", &new["roleRef"], "cannot change roleRef");
            changed.then(error).into_iter().collect()
        },
        ..Simple::NOTHING
    }
}

/// The strategy of a webhook configuration.
pub(super) fn webhooks() -> Simple {
    Simple { default: webhook_defaults, ..Simple::NOTHING }
}

fn webhook_defaults(configuration: &mut Value) {
    let mutating = configuration["kind"] == "MutatingWebhookConfiguration";
    each(configuration, "webhooks", |webhook| {
        fill(webhook, "failurePolicy", "Fail");
        fill(webhook, "timeoutSeconds", 10);
        match_defaults(webhook);
        if mutating {
            fill(webhook, "reinvocationPolicy", "Never");
        }
        each(webhook, "rules", |rule| fill(rule, "scope", "*"));
        within_existing(webhook, "clientConfig", |client| {
            within_existing(client, "service", |service| fill(service, "port", 443));
        });
    });
}

/// The strategy of an admission policy or its binding.
pub(super) fn admission_policy(kind: &str) -> Simple {
    let default = |policy: &mut Value| {
        within(policy, "spec", |spec| {
            fill(spec, "failurePolicy", "Fail");
            within_existing(spec, "matchConstraints", matched);
        });
    };
    let binding = |binding: &mut Value| {
        within(binding, "spec", |spec| within_existing(spec, "matchResources", matched));
    };
    match kind {
        "ValidatingAdmissionPolicy" => {
            Simple { default, status: Some(|| json!({})), ..Simple::NOTHING }
        }
        "MutatingAdmissionPolicy" => Simple { default, ..Simple::NOTHING },
        _ => Simple { default: binding, ..Simple::NOTHING },
    }
}

fn matched(constraints: &mut Value) {
    match_defaults(constraints);
    for rules in ["resourceRules", "excludeResourceRules"] {
        each(constraints, rules, |rule| fill(rule, "scope", "*"));
    }
}

fn match_defaults(object: &mut Value) {
    fill(object, "matchPolicy", "Equivalent");
    fill(object, "namespaceSelector", json!({}));
    fill(object, "objectSelector", json!({}));
}

/// The strategy of a lease.
pub(super) fn lease() -> Simple {
    Simple {
        validate: |lease| {
            let spec = &lease["spec"];
            let duration = &spec["leaseDurationSeconds"];
            let mut errors = Vec::new();
            if duration.as_i64().is_some_and(|seconds| seconds <= 0) {
                let detail = "must be greater than 0";
                let field = "spec.leaseDurationSeconds";
                errors.push(FieldError::invalid(field, duration, detail));
            }
            if spec["leaseTransitions"].as_i64().is_some_and(|count| count < 0) {
                let detail = "must be greater than or equal to 0";
                let value = &spec["leaseTransitions"];
                errors.push(FieldError::invalid("spec.leaseTransitions", value, detail));
            }
            errors
        },
        ..Simple::NOTHING
    }
}

/// The strategy of a priority class.
pub(super) fn priority_class() -> Simple {
    Simple {
        default: |class| fill(class, "preemptionPolicy", "PreemptLowerPriority"),
        validate: |class| {
            let own = !text(&class["metadata"]["name"]).starts_with("system-");
            let value = class["value"].as_i64().unwrap_or(0);
            let detail =
                format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}");
            let error = || FieldError::forbidden("value", &detail);
            (own && value > USER_PRIORITY_MAX).then(error).into_iter().collect()
        },
        validate_change: |old, new| {
            let keys = ["value", "preemptionPolicy"];
            let changed = keys.iter().filter(|key| old[**key] != new[**key]);
            changed
                .map(|key| FieldError::forbidden(*key, "may not be changed in an update."))
                .collect()
        },
        ..Simple::NOTHING
    }
}
