//! The bootstrap policy: there from the start, mended at the next one.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_store::{RangeRequest, Revision, Store};

use crate::api::Api;

const GROUP: &str = "/apis/rbac.authorization.k8s.io/v1";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const NAMES: &str = include_str!("policy.txt");
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

async fn started_again(api: &Api) -> Api {
    Api::over(Arc::clone(&api.store)).await
}

async fn revision(store: &Arc<dyn Store>) -> Revision {
    store.range(RangeRequest::default()).await.unwrap().revision
}

/// The verbs that a role permits on a resource of the core.
fn verbs<'a>(role: &'a Value, resource: &str) -> Vec<&'a str> {
    let rules = role["rules"].as_array().unwrap().iter();
    let about =
        rules.filter(|rule| rule["resources"].as_array().unwrap().contains(&resource.into()));
    let verbs = about.flat_map(|rule| rule["verbs"].as_array().unwrap());
    verbs.filter_map(Value::as_str).collect()
}

#[tokio::test(start_paused = true)]
async fn every_cluster_has_the_roles_and_bindings_of_kubernetes() {
    let api = Api::start().await;
    let mut found = Vec::new();
    for plural in ["clusterroles", "clusterrolebindings", "roles", "rolebindings"] {
        let list = api.get(&format!("{GROUP}/{plural}")).await.ok();
        for object in list["items"].as_array().unwrap() {
            let metadata = &object["metadata"];
            assert_eq!(metadata["labels"]["kubernetes.io/bootstrapping"], "rbac-defaults");
            assert_eq!(metadata["annotations"][AUTO_UPDATE], "true");
            assert_eq!(metadata["creationTimestamp"], "2025-01-01T00:00:00Z");
            let managers = metadata["managedFields"].as_array().unwrap();
            assert_eq!(managers.last().unwrap()["manager"], "kube-apiserver");
            let namespace = metadata["namespace"].as_str().map(|name| format!("{name}/"));
            let name = metadata["name"].as_str().unwrap();
            found.push(format!("{plural} {}{name}", namespace.unwrap_or_default()));
        }
    }
    let expected: Vec<&str> = NAMES.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(found, expected);
    let binding =
        api.get(&format!("{BINDINGS}/system:controller:deployment-controller")).await.ok();
    let account = json!({"kind": "ServiceAccount", "name": "deployment-controller", "namespace": "kube-system"});
    assert_eq!(binding["subjects"], json!([account]));
}

#[tokio::test(start_paused = true)]
async fn roles_that_gather_others_are_right_before_any_controller_runs() {
    let api = Api::start().await;
    let role = async |name: &str| api.get(&format!("{ROLES}/{name}")).await.ok();
    let view = role("view").await;
    assert_eq!(verbs(&view, "pods"), ["get", "list", "watch"]);
    assert!(verbs(&view, "secrets").is_empty());
    let edit = role("edit").await;
    assert_eq!(verbs(&edit, "pods").len(), 8);
    assert!(verbs(&edit, "roles").is_empty());
    let admin = role("admin").await;
    assert_eq!(verbs(&admin, "roles").len(), 8);
    // The controller that gathers rules would apply just these: nothing changes.
    for name in ["view", "edit", "admin"] {
        let before = role(name).await;
        let applied = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name}, "rules": before["rules"],
        });
        let options = "fieldManager=clusterrole-aggregation-controller&force=true";
        let path = format!("{ROLES}/{name}?{options}");
        let after = api.patch(&path, "application/apply-patch+yaml", &applied).await.ok();
        assert_eq!(after, before);
    }
}

#[tokio::test(start_paused = true)]
async fn another_start_writes_nothing() {
    let api = Api::start().await;
    let Revision(before) = revision(&api.store).await;
    let again = started_again(&api).await;
    // The start itself is counted.
    assert_eq!(revision(&again.store).await, Revision(before + 1));
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_away_comes_back_at_the_next_start_and_what_was_added_stays() {
    let api = Api::start().await;
    let path = format!("{ROLES}/system:kube-dns");
    let binding = format!("{BINDINGS}/system:kube-dns");
    let mine = json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]});
    let me = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "me"});
    let labels = json!({"kubernetes.io/bootstrapping": null, "team": "a"});
    api.merge(&path, &json!({"metadata": {"labels": labels}, "rules": [mine]})).await.ok();
    api.merge(&binding, &json!({"subjects": [me]})).await.ok();
    api.delete(&format!("{ROLES}/system:heapster")).await.ok();
    let again = started_again(&api).await;
    let role = again.get(&path).await.ok();
    assert_eq!(role["rules"][0], mine);
    assert_eq!(verbs(&role, "endpoints"), ["list", "watch"]);
    assert_eq!(verbs(&role, "services"), ["list", "watch"]);
    let labels = &role["metadata"]["labels"];
    assert_eq!(*labels, json!({"kubernetes.io/bootstrapping": "rbac-defaults", "team": "a"}));
    let subjects = again.get(&binding).await.ok()["subjects"].clone();
    assert_eq!(subjects[0], me);
    assert_eq!(subjects[1]["name"], "kube-dns");
    again.get(&format!("{ROLES}/system:heapster")).await.ok();
    let Revision(before) = revision(&again.store).await;
    started_again(&again).await;
    assert_eq!(revision(&again.store).await, Revision(before + 1));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_to_be_updated_is_left_alone() {
    let api = Api::start().await;
    let protected = json!({"metadata": {"annotations": {AUTO_UPDATE: "false"}}});
    let paths = [
        (format!("{ROLES}/system:kube-dns"), json!({"rules": []})),
        (format!("{BINDINGS}/system:kube-dns"), json!({"subjects": []})),
    ];
    let mut before = Vec::new();
    for (path, emptied) in &paths {
        api.merge(path, &protected).await.ok();
        before.push(api.merge(path, emptied).await.ok());
    }
    let again = started_again(&api).await;
    for ((path, _), before) in paths.iter().zip(before) {
        assert_eq!(again.get(path).await.ok(), before);
    }
}

#[tokio::test(start_paused = true)]
async fn a_binding_to_another_role_is_made_anew() {
    let api = Api::start().await;
    let path = format!("{BINDINGS}/system:kube-dns");
    let mut other = api.get(&path).await.ok();
    api.delete(&path).await.ok();
    for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        other["metadata"].as_object_mut().unwrap().remove(field);
    }
    other["roleRef"]["name"] = "cluster-admin".into();
    let other = api.post(BINDINGS, &other).await.ok();
    let again = started_again(&api).await;
    let anew = again.get(&path).await.ok();
    assert_eq!(anew["roleRef"]["name"], "system:kube-dns");
    assert_ne!(anew["metadata"]["uid"], other["metadata"]["uid"]);
}
