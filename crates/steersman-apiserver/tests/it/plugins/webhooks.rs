//! Plug-ins beside webhooks: what webhooks change, plug-ins see, and webhooks can be switched off.

use serde_json::{Value, json};

use super::{PODS, without};
use crate::api::{Api, CONFIG_MAPS, config_map, pod};
use crate::webhooks::{
    MUTATING, VALIDATING, allowed, configure, denied, patched, serve, serve_here, webhook,
    webhook_with,
};

fn for_pods(name: &str, reinvoked: bool) -> Value {
    let policy = if reinvoked { "IfNeeded" } else { "Never" };
    let rules = json!([{
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"],
    }]);
    webhook_with(name, &json!({"rules": rules, "reinvocationPolicy": policy}))
}

#[tokio::test(start_paused = true)]
async fn a_container_that_a_webhook_adds_is_treated_like_the_others() {
    let api = super::with(&["ServiceAccount", "AlwaysPullImages"]).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    api.post(accounts, &json!({"metadata": {"name": "default"}})).await.ok();
    configure(&api, MUTATING, "a", &[for_pods("sidecar", false), for_pods("looks", true)]).await;
    let sidecar = json!({"name": "sidecar", "image": "proxy:1", "imagePullPolicy": "Never"});
    let add = json!([{"op": "add", "path": "/spec/containers/-", "value": sidecar}]);
    let asked = serve_here(&api, move |request| {
        let count = request["object"]["spec"]["containers"].as_array().unwrap().len();
        if count == 1 { patched(&add) } else { allowed() }
    });
    let created = api.post(PODS, &pod("p")).await.ok();
    let containers = created["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers[1]["imagePullPolicy"], "Always");
    assert_eq!(containers[1]["volumeMounts"], containers[0]["volumeMounts"]);
    assert_eq!(created["spec"]["volumes"].as_array().unwrap().len(), 1);
    // First both, then the one that wants to know what plug-ins have done since.
    let seen = asked.all();
    assert_eq!(seen.len(), 3);
    let first = &seen[0]["object"]["spec"];
    assert_eq!(first["serviceAccountName"], "default", "plug-ins come first");
    assert_eq!(first["serviceAccount"], "default");
    assert_eq!(first["priority"], 0);
    assert!(seen[1]["object"]["spec"]["containers"][1].get("volumeMounts").is_none());
    let again = &seen[2]["object"]["spec"];
    assert_eq!(again["containers"][1]["volumeMounts"], again["containers"][0]["volumeMounts"]);
}

#[tokio::test(start_paused = true)]
async fn webhooks_are_asked_only_while_their_plug_in_is_on() {
    for (off, is_changed, is_refused) in [
        (&[][..], true, true),
        (&["MutatingAdmissionWebhook"], false, true),
        (&["ValidatingAdmissionWebhook"], true, false),
        (&["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"], false, false),
    ] {
        let api = without(off).await;
        let elsewhere = json!({"clientConfig": {"url": "https://refuses.test"}});
        configure(&api, MUTATING, "m", &[webhook("change")]).await;
        configure(&api, VALIDATING, "v", &[webhook_with("refuse", &elsewhere)]).await;
        serve_here(&api, |_| {
            patched(&json!([{"op": "add", "path": "/data/seen", "value": "yes"}]))
        });
        serve(&api, "refuses.test", |request| match request["name"] == "bad" {
            true => denied(&json!({"message": "no"})),
            false => allowed(),
        });
        let created = api.config_map("good", &json!({"k": "v"})).await;
        assert_eq!(created["data"].get("seen").is_some(), is_changed, "{off:?}");
        let answer = api.post(CONFIG_MAPS, &config_map("bad", &json!({"k": "v"}))).await;
        assert_eq!(answer.code, if is_refused { 400 } else { 201 }, "{off:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_a_plug_in_does_not_handle_is_left_to_webhooks() {
    let api = Api::start().await;
    configure(&api, MUTATING, "m", &[webhook("change")]).await;
    let asked = serve_here(&api, |_| allowed());
    api.post(PODS, &pod("p")).await.ok();
    assert_eq!(asked.count(), 0);
    api.config_map("a", &json!({})).await;
    assert_eq!(asked.count(), 1);
}
