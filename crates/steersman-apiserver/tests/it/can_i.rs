//! What the roles of Kubernetes allow, beside what kube-apiserver says of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::api::Api;
use crate::authorization::bind;

const UPSTREAM: &str = include_str!("can_i.txt");

/// What is allowed, by resource and perhaps name, or by path.
type Table = BTreeMap<String, BTreeSet<String>>;

/// The tables of Kubernetes, by role.
fn upstream() -> BTreeMap<&'static str, Table> {
    let mut tables: BTreeMap<&str, Table> = BTreeMap::new();
    let mut role = "";
    for line in UPSTREAM.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some((what, verbs)) = line.trim_start().split_once(": ") else {
            role = line;
            continue;
        };
        let verbs = verbs.split(' ').map(str::to_owned).collect();
        tables.entry(role).or_default().insert(what.to_owned(), verbs);
    }
    tables
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// What a user is told to be allowed in a namespace.
async fn told(api: &Api, user: &str) -> Table {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let review = json!({"spec": {"namespace": "default"}});
    let review = api.acting_as(user, &[]).post(path, &review).await.ok();
    let status = &review["status"];
    assert_eq!(status["incomplete"], false);
    let mut table = Table::new();
    for rule in status["resourceRules"].as_array().unwrap() {
        for (group, resource) in
            texts(&rule["apiGroups"]).flat_map(|g| texts(&rule["resources"]).map(move |r| (g, r)))
        {
            let dot = if group.is_empty() { "" } else { "." };
            let what = format!("{resource}{dot}{group}");
            let named: Vec<String> =
                texts(&rule["resourceNames"]).map(|name| format!("{what} {name}")).collect();
            for what in if named.is_empty() { vec![what] } else { named } {
                table.entry(what).or_default().extend(texts(&rule["verbs"]).map(str::to_owned));
            }
        }
    }
    for rule in status["nonResourceRules"].as_array().unwrap() {
        for path in texts(&rule["nonResourceURLs"]) {
            let verbs = table.entry(path.to_owned()).or_default();
            verbs.extend(texts(&rule["verbs"]).map(str::to_owned));
        }
    }
    table
}

#[tokio::test(start_paused = true)]
async fn users_may_do_by_the_roles_of_kubernetes_what_they_may_there() {
    let api = Api::start().await;
    let upstream = upstream();
    let everybody = &upstream["everybody"];
    assert_eq!(told(&api, "nobody").await, *everybody);
    for role in ["view", "edit", "admin", "cluster-admin"] {
        bind(&api, "default", "ClusterRole", role, role).await;
        let mut expected = everybody.clone();
        expected.extend(upstream[role].clone());
        assert_eq!(told(&api, role).await, expected, "{role}");
    }
}
