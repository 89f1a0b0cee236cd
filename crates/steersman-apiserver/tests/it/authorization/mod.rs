//! Who may do what: roles, bindings, and what they do not allow.

mod escalation;
mod evaluator;
mod matrix;
mod node;
mod requests;
mod reviews;
mod routes;

use serde_json::{Value, json};

use crate::api::Api;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A rule about resources.
pub(crate) fn rule(verbs: &[&str], groups: &[&str], resources: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": groups, "resources": resources})
}

/// Makes a role of the cluster, or of a namespace.
pub(crate) async fn role(api: &Api, namespace: &str, name: &str, rules: &[Value]) {
    let body = json!({"metadata": {"name": name}, "rules": rules});
    let path = match namespace {
        "" => format!("{RBAC}/clusterroles"),
        namespace => format!("{RBAC}/namespaces/{namespace}/roles"),
    };
    api.post(&path, &body).await.ok();
}

/// Binds a role to a user, in a namespace or everywhere.
pub(crate) async fn bind(api: &Api, namespace: &str, kind: &str, role: &str, user: &str) {
    let name = format!("{role}-{user}");
    api.post(&bindings(namespace), &binding(&name, kind, role, user)).await.ok();
}

fn bindings(namespace: &str) -> String {
    match namespace {
        "" => format!("{RBAC}/clusterrolebindings"),
        namespace => format!("{RBAC}/namespaces/{namespace}/rolebindings"),
    }
}

fn binding(name: &str, kind: &str, role: &str, user: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}
