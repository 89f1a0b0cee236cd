//! The little of role-based access control that the test needs: which requests the rules that are
//! bound to a service account allow.

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::recording::Asked;

/// Rules, and the namespace in which they hold; everywhere if there is none.
pub struct Rules(Vec<(Option<String>, PolicyRule)>);

impl Rules {
    /// What the roles among these objects allow a service account.
    pub fn of(objects: &[Value], account: &str, namespace: &str) -> Self {
        let bound = |subjects: Option<Vec<Subject>>| {
            subjects.into_iter().flatten().any(|subject| {
                subject.kind == "ServiceAccount"
                    && subject.name == account
                    && subject.namespace.as_deref() == Some(namespace)
            })
        };
        let mut rules = Vec::new();
        for binding in all::<ClusterRoleBinding>(objects).filter(|it| bound(it.subjects.clone())) {
            let role =
                |role: &ClusterRole| role.metadata.name.as_ref() == Some(&binding.role_ref.name);
            let role = all::<ClusterRole>(objects).find(role).expect("a binding names a role");
            rules.extend(role.rules.into_iter().flatten().map(|rule| (None, rule)));
        }
        for binding in all::<RoleBinding>(objects).filter(|it| bound(it.subjects.clone())) {
            let namespace = binding.metadata.namespace;
            let role = |role: &Role| {
                role.metadata.namespace == namespace
                    && role.metadata.name.as_ref() == Some(&binding.role_ref.name)
            };
            let role = all::<Role>(objects).find(role).expect("a binding names a role");
            let here = role.rules.into_iter().flatten().map(|rule| (namespace.clone(), rule));
            rules.extend(here);
        }
        Self(rules)
    }

    /// Whether one of them allows this.
    pub fn allow(&self, asked: &Asked) -> bool {
        self.0.iter().any(|(namespace, rule)| {
            (namespace.is_none() || *namespace == asked.namespace) && covers(rule, asked)
        })
    }
}

fn covers(rule: &PolicyRule, asked: &Asked) -> bool {
    let lists = |list: &[String], wanted: &str| list.iter().any(|it| it == wanted || it == "*");
    let names = rule.resource_names.as_deref().unwrap_or_default();
    lists(&rule.verbs, &asked.verb)
        && lists(rule.api_groups.as_deref().unwrap_or_default(), &asked.group)
        && lists(rule.resources.as_deref().unwrap_or_default(), &asked.resource)
        && (names.is_empty() || asked.name.as_ref().is_some_and(|name| names.contains(name)))
}

/// The objects of a kind.
fn all<K: DeserializeOwned + k8s_openapi::Resource>(objects: &[Value]) -> impl Iterator<Item = K> {
    let of_kind =
        |object: &&Value| object["apiVersion"] == K::API_VERSION && object["kind"] == K::KIND;
    let read =
        |object: &Value| serde_json::from_value(object.clone()).expect("an object of its kind");
    objects.iter().filter(of_kind).map(read)
}
