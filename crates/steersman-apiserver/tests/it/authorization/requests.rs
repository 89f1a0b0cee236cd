//! Requests of users whom roles allow little or nothing.

use http::{Method, Request};
use http_body_util::Full;
use serde_json::json;

use super::{bind, role, rule};
use crate::api::Api;

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test(start_paused = true)]
async fn who_may_not_is_told_what_and_where() {
    let api = Api::start().await;
    let jane = api.acting_as("jane", &[]);
    let get = |path: &'static str| (Method::GET, path);
    for ((method, path), subject, sentence) in [
        (get(PODS), "pods", r#"list resource "pods" in API group "" in the namespace "default""#),
        (
            get("/api/v1/namespaces/default/pods/web"),
            r#"pods "web""#,
            r#"get resource "pods" in API group "" in the namespace "default""#,
        ),
        (
            (Method::POST, "/api/v1/namespaces/default/pods/web/eviction"),
            r#"pods "web""#,
            r#"create resource "pods/eviction" in API group "" in the namespace "default""#,
        ),
        (
            get("/apis/apps/v1/deployments?watch=true"),
            "deployments.apps",
            r#"watch resource "deployments" in API group "apps" at the cluster scope"#,
        ),
        (
            (Method::DELETE, "/apis/apps/v1/namespaces/default/deployments"),
            "deployments.apps",
            r#"deletecollection resource "deployments" in API group "apps" in the namespace "default""#,
        ),
        // Also what is not served: nobody learns by it what is.
        (
            get("/apis/acme.com/v1/widgets"),
            "widgets.acme.com",
            r#"list resource "widgets" in API group "acme.com" at the cluster scope"#,
        ),
    ] {
        let request = Request::builder().method(method).uri(path);
        let answer = jane.send(request.body(Full::default()).unwrap()).await.refused(403);
        let expected = format!("{subject} is forbidden: User \"jane\" cannot {sentence}");
        assert_eq!(answer["message"], expected, "{path}");
        assert_eq!(answer["reason"], "Forbidden");
    }
    let answer = jane.get("/metrics").await.refused(403);
    assert_eq!(answer["message"], "forbidden: User \"jane\" cannot get path \"/metrics\"");
    assert_eq!(answer["details"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_body_is_not_looked_at_before_its_sender_may_send_it() {
    let api = Api::start().await;
    let nobody = api.acting_as("jane", &[]);
    let request = Request::post(PODS).body(Full::new("{not even JSON".into())).unwrap();
    nobody.send(request).await.refused(403);
}

#[tokio::test(start_paused = true)]
async fn what_is_written_counts_for_the_next_request() {
    let api = Api::start().await;
    let jane = api.acting_as("jane", &[]);
    jane.get(PODS).await.refused(403);
    role(&api, "default", "reader", &[rule(&["list"], &[""], &["pods"])]).await;
    bind(&api, "default", "Role", "reader", "jane").await;
    jane.get(PODS).await.ok();
    jane.get("/api/v1/namespaces/kube-system/pods").await.refused(403);
    jane.get("/api/v1/pods").await.refused(403);

    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/reader";
    api.merge(path, &json!({"rules": [rule(&["get"], &[""], &["pods"])]})).await.ok();
    jane.get(PODS).await.refused(403);
    api.merge(path, &json!({"rules": [rule(&["list"], &[""], &["pods"])]})).await.ok();
    jane.get(PODS).await.ok();

    api.delete(path).await.ok();
    let refused = jane.get(PODS).await.refused(403);
    let missing = r#": RBAC: role.rbac.authorization.k8s.io "reader" not found"#;
    assert!(refused["message"].as_str().unwrap().ends_with(missing), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_selector_by_name_needs_the_permission_for_that_name() {
    let api = Api::start().await;
    let mut one = rule(&["get", "list", "watch"], &[""], &["secrets"]);
    one["resourceNames"] = json!(["mine"]);
    role(&api, "default", "one", &[one]).await;
    bind(&api, "default", "Role", "one", "jane").await;
    let jane = api.acting_as("jane", &[]);
    let secrets = "/api/v1/namespaces/default/secrets";
    jane.get(secrets).await.refused(403);
    jane.get(&format!("{secrets}?fieldSelector=metadata.name%3Dmine")).await.ok();
    jane.get(&format!("{secrets}?fieldSelector=metadata.name%3Dother")).await.refused(403);
    // The path counts, not what else is asked for.
    jane.get(&format!("{secrets}/other?fieldSelector=metadata.name%3Dmine")).await.refused(403);
}

#[tokio::test(start_paused = true)]
async fn a_role_in_a_namespace_can_show_the_namespace_itself() {
    let api = Api::start().await;
    role(&api, "default", "look", &[rule(&["get"], &[""], &["namespaces"])]).await;
    bind(&api, "default", "Role", "look", "jane").await;
    let jane = api.acting_as("jane", &[]);
    jane.get("/api/v1/namespaces/default").await.ok();
    jane.get("/api/v1/namespaces/kube-system").await.refused(403);
    jane.get("/api/v1/namespaces").await.refused(403);
}

#[tokio::test(start_paused = true)]
async fn an_update_or_an_apply_that_would_create_needs_the_permission_to_create() {
    let api = Api::start().await;
    let verbs = ["get", "update", "patch"];
    let rules =
        [rule(&verbs, &[""], &["configmaps"]), rule(&verbs, &["coordination.k8s.io"], &["leases"])];
    role(&api, "default", "writer", &rules).await;
    bind(&api, "default", "Role", "writer", "jane").await;
    let jane = api.acting_as("jane", &[]);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let lease = json!({"metadata": {"name": "l"}, "spec": {}});
    let refused = jane.put(leases, &lease).await.refused(403);
    assert_eq!(
        refused["message"],
        "leases.coordination.k8s.io \"l\" is forbidden: User \"jane\" cannot create resource \
         \"leases\" in API group \"coordination.k8s.io\" in the namespace \"default\""
    );
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    let path = "/api/v1/namespaces/default/configmaps/c?fieldManager=jane";
    let apply = "application/apply-patch+yaml";
    jane.patch(path, apply, &applied).await.refused(403);
    api.get("/api/v1/namespaces/default/configmaps/c").await.refused(404);
    api.patch(path, apply, &applied).await.ok();
    jane.patch(path, apply, &applied).await.ok();
}

#[tokio::test(start_paused = true)]
async fn acting_as_another_needs_the_permission_to_for_each_part() {
    let api = Api::start().await;
    role(
        &api,
        "",
        "bobs",
        &[{
            let mut rule = rule(&["impersonate"], &[""], &["users", "groups"]);
            rule["resourceNames"] = json!(["bob", "dev"]);
            rule
        }],
    )
    .await;
    bind(&api, "", "ClusterRole", "bobs", "jane").await;
    role(&api, "", "pods", &[rule(&["list"], &[""], &["pods"])]).await;
    bind(&api, "", "ClusterRole", "pods", "bob").await;
    let jane = api.acting_as("jane", &[]);
    let list = |headers: Vec<(&'static str, &'static str)>| {
        let mut request = Request::get(PODS);
        for (name, value) in headers {
            request = request.header(format!("Impersonate-{name}"), value);
        }
        jane.send(request.body(Full::default()).unwrap())
    };
    list(vec![("User", "bob")]).await.ok();
    list(vec![("User", "bob"), ("Group", "dev")]).await.ok();
    for refused in [
        vec![],
        vec![("User", "eve")],
        vec![("User", "bob"), ("Group", "system:masters")],
        vec![("User", "bob"), ("Uid", "1")],
        vec![("User", "bob"), ("Extra-scopes", "all")],
        vec![("User", "system:serviceaccount:default:default")],
        vec![("User", "system:node:n1")],
    ] {
        list(refused.clone()).await.refused(403);
    }
    // The first of all ways to be allowed is the one that is told.
    assert_eq!(
        list(vec![("User", "eve")]).await.refused(403)["message"],
        "pods is forbidden: User \"jane\" cannot impersonate-on:user-info:list resource \"pods\" in \
         API group \"\" in the namespace \"default\""
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_may_watch_writes_nothing_by_the_old_path_of_watches() {
    let api = Api::start().await;
    role(&api, "default", "watcher", &[rule(&["watch"], &[""], &["configmaps"])]).await;
    bind(&api, "default", "Role", "watcher", "jane").await;
    api.post("/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "c"}}))
        .await
        .ok();
    let jane = api.acting_as("jane", &[]);
    let watched = "/api/v1/watch/namespaces/default/configmaps";
    jane.post(watched, &json!({"metadata": {"name": "d"}})).await.refused(405);
    jane.put(&format!("{watched}/c"), &json!({"metadata": {"name": "c"}})).await.refused(405);
    jane.merge(&format!("{watched}/c"), &json!({"data": {"a": "b"}})).await.refused(405);
    jane.delete(&format!("{watched}/c")).await.refused(405);
    jane.delete(watched).await.refused(405);
    api.get("/api/v1/namespaces/default/configmaps/c").await.ok();
}
