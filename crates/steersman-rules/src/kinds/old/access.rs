//! Roles and their bindings, and service accounts.

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill_text, text, within_existing};
use crate::rules::label_selector::label_selector;

const GROUP: &str = "rbac.authorization.k8s.io";

/// The strategy of roles in a namespace.
pub(in crate::kinds) const ROLE: Rules = Rules {
    check: |role, _, errors| role.each("rules").for_each(|rule| policy(&rule, true, errors)),
    ..Rules::NONE
};

/// The strategy of roles of the cluster.
pub(in crate::kinds) const CLUSTER_ROLE: Rules = Rules { check: cluster_role, ..Rules::NONE };

/// The strategy of bindings in a namespace.
pub(in crate::kinds) const ROLE_BINDING: Rules = Rules {
    default: binding_defaults,
    check: |part, _, errors| binding(part, &["Role", "ClusterRole"], errors),
    change: role_change,
    ..Rules::NONE
};

/// The strategy of bindings of the cluster.
pub(in crate::kinds) const CLUSTER_ROLE_BINDING: Rules = Rules {
    default: binding_defaults,
    check: |part, _, errors| binding(part, &["ClusterRole"], errors),
    change: role_change,
    ..Rules::NONE
};

fn cluster_role(role: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    role.each("rules").for_each(|rule| policy(&rule, false, errors));
    let aggregation = role.at("aggregationRule");
    if aggregation.is_absent() {
        return;
    }
    let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
    aggregation.at("clusterRoleSelectors").require_because(detail, errors);
    aggregation.each("clusterRoleSelectors").for_each(|s| label_selector(&s, errors));
}

/// A rule is about resources or about paths, not both; and paths belong to no namespace.
fn policy(rule: &At<'_, '_>, namespaced: bool, errors: &mut Errors) {
    rule.at("verbs").require_because("verbs must contain at least one value", errors);
    let (groups, resources) = (rule.at("apiGroups"), rule.at("resources"));
    let paths = rule.at("nonResourceURLs");
    if paths.is_empty() {
        groups.require_because("resource rules must supply at least one api group", errors);
        resources.require_because("resource rules must supply at least one resource", errors);
        return;
    }
    if namespaced {
        errors.push(paths.invalid("namespaced rules cannot apply to non-resource URLs"));
    }
    let named = rule.at("resourceNames");
    if !(groups.is_empty() && resources.is_empty() && named.is_empty()) {
        let detail = "rules cannot apply to both regular resources and non-resource URLs";
        errors.push(paths.invalid(detail));
    }
}

fn binding_defaults(binding: &mut Value) {
    within_existing(binding, "roleRef", |role| fill_text(role, "apiGroup", GROUP));
    each(binding, "subjects", |subject| {
        if subject["kind"] == "User" || subject["kind"] == "Group" {
            fill_text(subject, "apiGroup", GROUP);
        }
    });
}

fn binding(binding: &At<'_, '_>, kinds: &[&str], errors: &mut Errors) {
    let role = binding.at("roleRef");
    let (group, kind) = (role.at("apiGroup"), role.at("kind"));
    if group.text() != GROUP {
        errors.push(text_unsupported(&group, &[GROUP]));
    }
    if !kinds.contains(&kind.text()) {
        errors.push(text_unsupported(&kind, kinds));
    }
    role.at("name").requires(names::path_segment, errors);
    let namespaced = kinds.contains(&"Role");
    binding.each("subjects").for_each(|subject| check_subject(&subject, namespaced, errors));
}

/// An absent text counts as an empty one.
fn text_unsupported(part: &At<'_, '_>, supported: &[&str]) -> FieldError {
    FieldError::not_supported(part.path(), &Value::from(part.text()), supported)
}

fn check_subject(subject: &At<'_, '_>, namespaced: bool, errors: &mut Errors) {
    let (name, group) = (subject.at("name"), subject.at("apiGroup"));
    name.require(errors);
    match text(&subject.value["kind"]) {
        "ServiceAccount" => {
            if !name.is_empty() {
                name.follows(names::dns1123_subdomain, errors);
            }
            if !group.is_empty() {
                errors.push(group.not_supported(&[""]));
            }
            if !namespaced {
                subject.at("namespace").require(errors);
            }
        }
        "User" | "Group" if group.text() != GROUP => {
            errors.push(text_unsupported(&group, &[GROUP]));
        }
        "User" | "Group" => {}
        _ => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(text_unsupported(&subject.at("kind"), &kinds));
        }
    }
}

/// A binding stays with its role: who may change subjects may not hand out another role.
fn role_change(binding: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let role = binding.at("roleRef");
    if *role.value != old["roleRef"] {
        // Shown as the internal type, whose fields have other names.
        let [group, kind, name] = ["apiGroup", "kind", "name"].map(|field| &role.value[field]);
        let shown = json!({"APIGroup": group, "Kind": kind, "Name": name});
        errors.push(role.invalid_value(shown, "cannot change roleRef"));
    }
}

/// The strategy of service accounts.
pub(in crate::kinds) const SERVICE_ACCOUNT: Rules = Rules {
    warn: |account, _| {
        let enforced = "kubernetes.io/enforce-mountable-secrets";
        if text(&account["metadata"]["annotations"][enforced]).is_empty() {
            return Vec::new();
        }
        let advice = "prefer separate namespaces to isolate access to mounted secrets";
        vec![format!("metadata.annotations[{enforced}]: deprecated in v1.32+; {advice}")]
    },
    ..Rules::NONE
};
