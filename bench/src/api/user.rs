//! A user whose permissions are those of a role in one namespace, in a cluster of many users.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use steersman_cluster::User;

use super::requests::NAMESPACE;

/// How many bindings others have: half in namespaces, half everywhere.
const OTHERS: usize = 10_000;
const NAMESPACES: usize = 100;
const NAME: &str = "jane";

/// The user, with groups as certificates have them.
pub(super) fn ordinary() -> User {
    User::known(NAME, &["developers", "team-a"])
}

/// Lets the user edit the namespace of the benchmark, and others do much elsewhere.
pub(super) async fn bind_many(client: &kube::Client) -> kube::Result<()> {
    let create = PostParams::default();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let own = object(json!({"metadata": {"name": NAMESPACE}}));
    namespaces.create(&create, &own).await?;
    for number in 0..NAMESPACES {
        let body = json!({"metadata": {"name": format!("team-{number}")}});
        namespaces.create(&create, &object(body)).await?;
    }
    for number in 0..OTHERS / 2 {
        let binding = binding(number, "edit", &format!("user-{number}"));
        let namespace = format!("team-{}", number % NAMESPACES);
        let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), &namespace);
        bindings.create(&create, &object(binding.clone())).await?;
        let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
        bindings.create(&create, &object(binding)).await?;
    }
    let own: Api<RoleBinding> = Api::namespaced(client.clone(), NAMESPACE);
    own.create(&create, &object(binding(0, "edit", NAME))).await.map(drop)
}

fn binding(number: usize, role: &str, user: &str) -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({
        "metadata": {"name": format!("binding-{number}")},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    })
}

fn object<K: serde::de::DeserializeOwned>(body: Value) -> K {
    serde_json::from_value(body).expect("what is written here is an object of its kind")
}
