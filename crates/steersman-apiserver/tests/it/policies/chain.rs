//! Where policies stand among plug-ins and webhooks, and how they are switched off.

use std::sync::Arc;

use serde_json::json;
use steersman_apiserver::PluginSelection;
use steersman_store::memory::MemoryStore;

use super::{change, judge, judged, validation, why};
use crate::api::{Api, CONFIG_MAPS, config_map};
use crate::webhooks::{
    MUTATING, VALIDATING, allowed, configure, denied, message, patched, serve_here, webhook,
    webhook_with,
};

fn labelling(label: &str) -> serde_json::Value {
    let expression = format!("Object{{metadata: Object.metadata{{labels: {{'{label}': 'x'}}}}}}");
    json!({"mutations": [{
        "patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression},
    }]})
}

#[tokio::test(start_paused = true)]
async fn policies_come_before_webhooks() {
    let api = Api::start().await;
    change(&api, "p", &labelling("policy"), &json!({})).await;
    let asked = serve_here(&api, |_| allowed());
    configure(&api, MUTATING, "m", &[webhook("m")]).await;
    api.config_map("a", &json!({})).await;
    assert_eq!(asked.last()["object"]["metadata"]["labels"], json!({"policy": "x"}));
    // Whoever a policy refuses, no webhook is asked about.
    configure(&api, VALIDATING, "v", &[webhook("v")]).await;
    judge(&api, "p", &validation("object.metadata.name != 'b'"), &json!({})).await;
    let before = asked.count();
    api.post(CONFIG_MAPS, &config_map("b", &json!({}))).await.refused(422);
    assert_eq!(asked.count(), before + 1, "only the mutating one");
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_wishes_so_sees_what_webhooks_changed() {
    let api = Api::start().await;
    let expression = "Object{metadata: Object.metadata{labels: {'seen': \
                      string('hook' in object.data)}}}";
    let mut fields = json!({"mutations": [{
        "patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression},
    }]});
    fields["reinvocationPolicy"] = "IfNeeded".into();
    change(&api, "p", &fields, &json!({})).await;
    serve_here(&api, |_| patched(&json!([{"op": "add", "path": "/data/hook", "value": "x"}])));
    let reinvoked = webhook_with("m", &json!({"reinvocationPolicy": "IfNeeded"}));
    configure(&api, MUTATING, "m", &[reinvoked]).await;
    let made = api.config_map("a", &json!({"k": "v"})).await;
    assert_eq!(made["metadata"]["labels"], json!({"seen": "true"}));
}

#[tokio::test(start_paused = true)]
async fn a_policy_may_be_switched_off_by_its_plug_ins_name() {
    let plugins = PluginSelection::new([], ["ValidatingAdmissionPolicy"]).unwrap();
    let api = Api::with_plugins(plugins).await;
    judge(&api, "p", &validation("false"), &json!({})).await;
    change(&api, "p", &labelling("x"), &json!({})).await;
    let made = api.config_map("a", &json!({})).await;
    assert_eq!(made["metadata"]["labels"], json!({"x": "x"}));
    let plugins = PluginSelection::new([], ["MutatingAdmissionPolicy"]).unwrap();
    let api = Api::with_plugins(plugins).await;
    change(&api, "p", &labelling("x"), &json!({})).await;
    let made = api.config_map("a", &json!({})).await;
    assert_eq!(made["metadata"]["labels"], json!(null));
    let chosen = ["MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"];
    assert!(PluginSelection::new(chosen, []).is_ok());
}

#[tokio::test(start_paused = true)]
async fn another_server_over_the_same_store_has_the_same_policies() {
    let store = Arc::new(MemoryStore::new());
    let one = Api::over(store.clone()).await;
    judge(&one, "p", &validation("false"), &json!({})).await;
    let two = Api::over(store).await;
    two.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(422);
    one.delete(&format!("{}/validatingadmissionpolicybindings/b", super::GROUP)).await.ok();
    crate::api::seconds_pass(1).await;
    two.config_map("a", &json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn a_webhook_still_judges_what_policies_let_through() {
    let api = judged(&validation("true"), &json!({})).await;
    serve_here(&api, |_| denied(&json!({"message": "no"})));
    configure(&api, VALIDATING, "v", &[webhook("v")]).await;
    let refused = api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await;
    assert!(message(&refused.refused(400)).ends_with("denied the request: no"));
    assert!(why(&refused).contains("admission webhook"));
}
