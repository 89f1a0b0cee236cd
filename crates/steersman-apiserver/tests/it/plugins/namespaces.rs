//! `NamespaceLifecycle`, `NamespaceExists` and `NamespaceAutoProvision`. What the first does to
//! objects is in [`crate::namespaces`].

use serde_json::json;

use super::{NAMESPACES, selection, why, with, without};
use crate::api::{Api, config_map, pod};

const SHOP: &str = "/api/v1/namespaces/shop";
const MAPS: &str = "/api/v1/namespaces/shop/configmaps";

#[tokio::test(start_paused = true)]
async fn nothing_is_made_through_a_subresource_in_a_namespace_that_goes() {
    let api = Api::start().await;
    api.post(NAMESPACES, &json!({"metadata": {"name": "shop"}})).await.ok();
    api.post(&format!("{SHOP}/pods"), &pod("p")).await.ok();
    let account = json!({"metadata": {"name": "robot"}});
    api.post(&format!("{SHOP}/serviceaccounts"), &account).await.ok();
    api.delete(SHOP).await.ok();
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let token = json!({"spec": {"expirationSeconds": 600}});
    let text = "is forbidden: unable to create new content in namespace shop because it is being \
                terminated";
    for (path, body, named) in [
        ("pods/p/binding", &binding, "pods \"p\""),
        ("pods/p/eviction", &json!({"metadata": {"name": "p"}}), "pods \"p\""),
        ("serviceaccounts/robot/token", &token, "serviceaccounts \"robot\""),
    ] {
        let refused = api.post(&format!("{SHOP}/{path}"), body).await.refused(403);
        assert_eq!(why(&refused), format!("{named} {text}"));
        assert_eq!(refused["details"]["causes"][0]["reason"], "NamespaceTerminating");
    }
    let refused = api.post(&format!("{SHOP}/bindings"), &binding).await.refused(403);
    assert_eq!(refused["details"]["causes"][0]["reason"], "NamespaceTerminating");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    api.merge(&format!("{SHOP}/pods/p"), &label).await.ok();
}

#[tokio::test(start_paused = true)]
async fn without_the_plug_in_namespaces_need_not_be_there_and_none_is_kept() {
    let api = without(&["NamespaceLifecycle"]).await;
    api.post(MAPS, &config_map("a", &json!({}))).await.ok();
    let going = api.delete("/api/v1/namespaces/kube-public").await.ok();
    assert_eq!(going["status"]["phase"], "Terminating");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_may_have_to_exist_and_no_more() {
    let plugins = selection(&["NamespaceExists"], &["NamespaceLifecycle"]);
    let api = Api::with_plugins(plugins).await;
    let refused = api.post(MAPS, &config_map("a", &json!({}))).await.refused(404);
    assert_eq!(why(&refused), "namespaces \"shop\" not found");
    api.post(NAMESPACES, &json!({"metadata": {"name": "shop"}})).await.ok();
    api.delete(SHOP).await.ok();
    api.post(MAPS, &config_map("a", &json!({}))).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_made_for_its_first_object() {
    let api = with(&["NamespaceAutoProvision"]).await;
    let shown = api.post(&format!("{MAPS}?dryRun=All"), &config_map("a", &json!({}))).await;
    shown.refused(404);
    api.get(SHOP).await.refused(404);
    api.post(MAPS, &config_map("a", &json!({}))).await.ok();
    let made = api.get(SHOP).await.ok();
    assert_eq!(made["status"]["phase"], "Active");
    assert_eq!(made["metadata"]["labels"]["kubernetes.io/metadata.name"], "shop");
    assert_eq!(made["spec"]["finalizers"], json!(["kubernetes"]));
    let odd = "/api/v1/namespaces/Odd_One/configmaps";
    let refused = api.post(odd, &config_map("a", &json!({}))).await.refused(403);
    assert!(
        why(&refused)
            .starts_with("configmaps \"a\" is forbidden: Namespace \"Odd_One\" is invalid"),
        "{refused}"
    );
}
