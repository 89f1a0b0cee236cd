//! What the API server is told.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::{Shop, shops};
use crate::webhook::{
    AdmissionRequest, AdmissionResponse, ClientConfig, Conversion, FailurePolicy, Webhook,
    WebhookServer,
};

fn json_of(object: &impl serde::Serialize) -> Value {
    serde_json::to_value(object).unwrap()
}

#[test]
fn configurations_follow_from_what_is_served() {
    let client = ClientConfig::service("shop-system", "webhooks").ca_bundle("pem");
    let made = shops().configurations(&client);
    let webhook = |verb: &str, path: &str, operations: Value| {
        json!({
            "name": format!("{verb}.v1.shops.demo.steersman.dev"),
            "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10,
            "clientConfig": {
                "caBundle": "cGVt",
                "service": {"namespace": "shop-system", "name": "webhooks", "path": path},
            },
            "rules": [{"apiGroups": ["demo.steersman.dev"], "apiVersions": ["v1"],
                       "resources": ["shops"], "operations": operations, "scope": "Namespaced"}],
        })
    };
    let mutating = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "shop-mutating"},
        "webhooks": [webhook("default", super::MUTATE, json!(["CREATE", "UPDATE"]))],
    });
    assert_eq!(json_of(&made.mutating), mutating);
    let validating = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "shop-validating"},
        "webhooks": [webhook("validate", super::VALIDATE, json!(["CREATE", "UPDATE", "DELETE"]))],
    });
    assert_eq!(json_of(&made.validating), validating);
}

async fn allow(_: AdmissionRequest) -> AdmissionResponse {
    AdmissionResponse::allowed()
}

#[test]
fn webhooks_of_one_path_are_one_webhook() {
    let rules = || -> Vec<_> { serde_json::from_value(json!([{"apiGroups": [""]}])).unwrap() };
    let server = WebhookServer::builder("shop")
        .with(Webhook::validates::<Shop>().path("/all").name("all.shop.dev"))
        .with(Webhook::validating("/all", rules(), allow))
        .with(Webhook::validating("/all", rules(), allow))
        .with(
            Webhook::validating("/pods/strictly", rules(), allow)
                .failure_policy(FailurePolicy::Ignore)
                .timeout(Duration::from_millis(100))
                .match_condition("not-kube", "request.userInfo.username != 'kube'"),
        )
        .handle("/unknown", allow)
        .build()
        .unwrap();
    let made = server.configurations(&ClientConfig::url("https://here:9443/"));
    assert!(made.mutating.is_none());
    let made = json_of(&made.validating);
    assert_eq!(made["metadata"]["name"], "shop-validating");
    let [all, pods] = made["webhooks"].as_array().unwrap().as_slice() else { panic!("{made}") };
    assert_eq!(all["name"], "all.shop.dev");
    assert_eq!(all["rules"].as_array().unwrap().len(), 2);
    assert_eq!(all["clientConfig"], json!({"url": "https://here:9443/all"}));
    assert_eq!(pods["name"], "pods-strictly.webhooks.local");
    assert_eq!((&pods["failurePolicy"], &pods["timeoutSeconds"]), (&json!("Ignore"), &json!(1)));
    assert_eq!(pods["matchConditions"][0]["name"], "not-kube");
}

#[test]
fn a_definition_is_told_who_converts_its_versions() {
    let server =
        WebhookServer::builder("shop").converts(Conversion::hub::<Shop>()).build().unwrap();
    let conversions = server.conversions(&ClientConfig::url("https://here"));
    assert_eq!(conversions[0].0, "shops.demo.steersman.dev");
    let wanted = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"url": "https://here/convert"}, "conversionReviewVersions": ["v1"]}});
    assert_eq!(json_of(&conversions[0].1), wanted);
}

#[test]
fn what_does_not_fit_together_is_not_built() {
    let builders = [
        (WebhookServer::builder("shop").handle("no/slash", allow), "is not a path"),
        (WebhookServer::builder("shop").handle("/a//b", allow), "is not a path"),
        (
            WebhookServer::builder("shop")
                .defaults::<Shop>()
                .with(Webhook::validates::<Shop>().path(super::MUTATE)),
            "serves only one of",
        ),
        (
            WebhookServer::builder("shop")
                .converts(Conversion::hub::<Pod>())
                .handle("/convert", allow),
            "serves only one of",
        ),
    ];
    for (builder, message) in builders {
        let error = builder.build().err().unwrap().to_string();
        assert!(error.contains(message), "{error}");
    }
}
