//! The rules that a role consists of.

use crate::rules::at::{At, Errors};

/// Whose role a rule stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Cluster,
    Namespace,
}

/// A rule is about resources or about paths, not both; and paths belong to no namespace.
pub(super) fn check(rule: &At<'_, '_>, scope: Scope, errors: &mut Errors) {
    rule.at("verbs").require_because("verbs must contain at least one value", errors);
    let groups = rule.at("apiGroups");
    let resources = rule.at("resources");
    let paths = rule.at("nonResourceURLs");
    if paths.is_empty() {
        groups.require_because("resource rules must supply at least one api group", errors);
        resources.require_because("resource rules must supply at least one resource", errors);
        return;
    }
    if scope == Scope::Namespace {
        errors.push(paths.invalid("namespaced rules cannot apply to non-resource URLs"));
    }
    let named = rule.at("resourceNames");
    if !(groups.is_empty() && resources.is_empty() && named.is_empty()) {
        let detail = "rules cannot apply to both regular resources and non-resource URLs";
        errors.push(paths.invalid(detail));
    }
}
