//! `DefaultIngressClass`, and `DenyServiceExternalIPs`.

use serde_json::{Value, json};

use super::{why, with};
use crate::api::{Api, seconds_pass};

const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
const CLASSES: &str = "/apis/networking.k8s.io/v1/ingressclasses";
const SERVICES: &str = "/api/v1/namespaces/default/services";

fn ingress(name: &str) -> Value {
    let service = json!({"name": "web", "port": {"number": 80}});
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name},
        "spec": {"defaultBackend": {"service": service}},
    })
}

async fn class(api: &Api, name: &str) {
    let annotations = json!({"ingressclass.kubernetes.io/is-default-class": "true"});
    let class = json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"controller": "example.com/c"},
    });
    api.post(CLASSES, &class).await.ok();
}

#[tokio::test(start_paused = true)]
async fn an_ingress_without_a_class_gets_the_newest_default() {
    let api = Api::start().await;
    let created = api.post(INGRESSES, &ingress("none")).await.ok();
    assert!(created["spec"].get("ingressClassName").is_none(), "{created}");
    class(&api, "a").await;
    seconds_pass(2).await;
    class(&api, "b").await;
    let created = api.post(INGRESSES, &ingress("first")).await.ok();
    assert_eq!(created["spec"]["ingressClassName"], "b");
    let mut own = ingress("own");
    own["spec"]["ingressClassName"] = "a".into();
    assert_eq!(api.post(INGRESSES, &own).await.ok()["spec"]["ingressClassName"], "a");
    let mut old = ingress("old");
    old["metadata"]["annotations"] = json!({"kubernetes.io/ingress.class": "x"});
    let answer = api.post(INGRESSES, &old).await;
    let warning = answer.headers["warning"].to_str().unwrap();
    assert!(warning.contains("please use 'spec.ingressClassName' instead"), "{warning}");
    let created = answer.ok();
    assert!(created["spec"].get("ingressClassName").is_none(), "{created}");
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let changed = api.merge(&format!("{INGRESSES}/old"), &labels).await;
    changed.ok();
    assert!(!changed.headers.contains_key("warning"), "people are told when they create it");
    let patch = json!({"spec": {"ingressClassName": null}});
    let updated = api.merge(&format!("{INGRESSES}/own"), &patch).await.ok();
    assert!(updated["spec"].get("ingressClassName").is_none(), "updates are not filled in");
}

#[tokio::test(start_paused = true)]
async fn a_service_takes_no_new_addresses_of_its_own() {
    let service = |name: &str, addresses: &[&str]| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"ports": [{"port": 80}], "externalIPs": addresses},
        })
    };
    let api = Api::start().await;
    api.post(SERVICES, &service("old", &["192.0.2.1", "192.0.2.2"])).await.ok();
    let plugins = super::selection(&["DenyServiceExternalIPs"], &[]);
    let api = Api::with_plugins_over(api.store, plugins).await;
    let text = "is forbidden: Use of external IPs is denied by admission control";
    let refused = api.post(SERVICES, &service("new", &["192.0.2.1"])).await.refused(403);
    assert_eq!(why(&refused), format!("services \"new\" {text}"));
    api.post(SERVICES, &service("none", &[])).await.ok();
    let patch = |addresses: &[&str]| json!({"spec": {"externalIPs": addresses}});
    let path = format!("{SERVICES}/old");
    api.merge(&path, &patch(&["192.0.2.2"])).await.ok();
    let refused = api.merge(&path, &patch(&["192.0.2.2", "192.0.2.3"])).await.refused(403);
    assert_eq!(why(&refused), format!("services \"old\" {text}"));
    with(&[]).await.post(SERVICES, &service("new", &["192.0.2.1"])).await.ok();
}
