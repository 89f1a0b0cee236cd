//! The objects of the policy, from all tables.

use super::on_request::{self, Serves};
use super::rules::{Binding, Role, Rule};
use super::{components, controllers, discovery, namespaced, users};

/// One object of the policy.
pub(super) enum Wanted {
    Role(Role),
    Binding(Binding),
}

impl Wanted {
    pub(super) fn namespace(&self) -> &'static str {
        match self {
            Self::Role(role) => role.namespace,
            Self::Binding(binding) => binding.namespace,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Role(role) => role.name,
            Self::Binding(binding) => binding.name,
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match (self, self.namespace().is_empty()) {
            (Self::Role(_), true) => "ClusterRole",
            (Self::Role(_), false) => "Role",
            (Self::Binding(_), true) => "ClusterRoleBinding",
            (Self::Binding(_), false) => "RoleBinding",
        }
    }

    /// The label that makes it part of another role, if it has one.
    pub(super) fn label(&self) -> Option<String> {
        match self {
            Self::Role(Role { part_of, .. }) if !part_of.is_empty() => Some(label_of(part_of)),
            _ => None,
        }
    }

    /// The label of the roles whose rules it gathers, if it does.
    pub(super) fn gathers(&self) -> Option<String> {
        match self {
            Self::Role(Role { name, rules: None, .. }) => Some(label_of(name)),
            _ => None,
        }
    }

    /// The rules that a new one has.
    pub(super) fn rules(&self) -> Vec<Rule> {
        let mut rules = Vec::new();
        if let Self::Role(role) = self {
            gather(role, &mut rules);
        }
        rules
    }
}

/// The label that makes a role part of another.
pub(super) fn label_of(role: &str) -> String {
    format!("rbac.authorization.k8s.io/aggregate-to-{role}")
}

/// Adds the rules of a role, or those that it gathers from others, in the order of their names.
fn gather(role: &Role, rules: &mut Vec<Rule>) {
    if let Some(own) = role.rules {
        let own = own.iter().chain(role.more);
        let new: Vec<Rule> = own.filter(|rule| !rules.contains(rule)).copied().collect();
        return rules.extend(new);
    }
    let mut parts: Vec<&Role> = users::ROLES.iter().filter(|r| r.part_of == role.name).collect();
    parts.sort_unstable_by_key(|part| part.name);
    parts.into_iter().for_each(|part| gather(part, rules));
}

/// Everything that is wanted of a server that serves these groups and versions, roles before their
/// bindings.
pub(super) fn policy(serves: Serves<'_>) -> impl Iterator<Item = Wanted> {
    let tables =
        [users::ROLES, discovery::ROLES, components::ROLES, controllers::ROLES, namespaced::ROLES];
    let more = on_request::roles(serves);
    let roles = tables.into_iter().flatten().copied().chain(more.clone());
    let roles = roles.map(move |role| Role { more: on_request::added(role.name, serves), ..role });
    let tables = [users::BINDINGS, discovery::BINDINGS, components::BINDINGS, namespaced::BINDINGS];
    let of_controllers = controllers::ROLES.iter().copied().chain(more);
    let of_controllers = of_controllers.map(|role| controllers::binding(&role));
    let bindings = tables.into_iter().flatten().cloned().chain(of_controllers);
    roles.map(Wanted::Role).chain(bindings.map(Wanted::Binding))
}
