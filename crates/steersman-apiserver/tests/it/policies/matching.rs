//! Which requests policies and bindings are about.

use serde_json::{Value, json};

use super::{judge, judged, rules, validation, why};
use crate::api::{Api, CONFIG_MAPS, config_map, deployment, pod};
use crate::crd::{DEFINITIONS, WIDGETS, definition, widget};

/// A policy that refuses everything that it is about.
fn refusing(constraints: &Value) -> Value {
    let mut fields = validation("false");
    fields["matchConstraints"] = constraints.clone();
    fields
}

fn labelled(name: &str, labels: &Value) -> Value {
    let mut object = config_map(name, &json!({}));
    object["metadata"]["labels"] = labels.clone();
    object
}

#[tokio::test(start_paused = true)]
async fn rules_name_resources_operations_and_objects() {
    let mut named = rules(&[""], &["configmaps"], &["CREATE"]);
    named[0]["resourceNames"] = json!(["mine"]);
    let api = judged(&refusing(&json!({"resourceRules": named})), &json!({})).await;
    api.config_map("yours", &json!({})).await;
    api.post(CONFIG_MAPS, &config_map("mine", &json!({}))).await.refused(422);
    api.post(
        "/api/v1/namespaces/default/secrets",
        &json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"},
        }),
    )
    .await
    .ok();
    api.merge(&format!("{CONFIG_MAPS}/yours"), &json!({"data": {"a": "b"}})).await.ok();
}

#[tokio::test(start_paused = true)]
async fn rules_that_name_objects_are_not_about_collections() {
    let mut named = rules(&[""], &["configmaps"], &["DELETE"]);
    named[0]["resourceNames"] = json!(["mine"]);
    let api = judged(&refusing(&json!({"resourceRules": named})), &json!({})).await;
    let path = format!("{CONFIG_MAPS}/mine");
    api.config_map("mine", &json!({})).await;
    api.delete(&path).await.refused(422);
    api.delete(CONFIG_MAPS).await.ok();
    api.get(&path).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn what_is_excluded_is_not_judged() {
    let mut excluded = rules(&[""], &["configmaps"], &["*"]);
    excluded[0]["resourceNames"] = json!(["mine"]);
    let constraints = json!({
        "resourceRules": rules(&["*"], &["*"], &["CREATE"]), "excludeResourceRules": excluded,
    });
    let api = judged(&refusing(&constraints), &json!({})).await;
    api.config_map("mine", &json!({})).await;
    api.post(CONFIG_MAPS, &config_map("yours", &json!({}))).await.refused(422);
}

#[tokio::test(start_paused = true)]
async fn selectors_choose_objects_and_namespaces() {
    let constraints = json!({
        "resourceRules": rules(&[""], &["configmaps"], &["*"]),
        "objectSelector": {"matchLabels": {"strict": "yes"}},
    });
    let api = judged(&refusing(&constraints), &json!({})).await;
    api.config_map("a", &json!({})).await;
    api.post(CONFIG_MAPS, &labelled("b", &json!({"strict": "yes"}))).await.refused(422);
    // Either version of the object counts.
    let strict = json!({"metadata": {"labels": {"strict": "yes"}}});
    api.merge(&format!("{CONFIG_MAPS}/a"), &strict).await.refused(422);

    let constraints = json!({
        "resourceRules": rules(&[""], &["configmaps", "namespaces"], &["*"]),
        "namespaceSelector": {"matchExpressions": [{"key": "strict", "operator": "Exists"}]},
    });
    let api = judged(&refusing(&constraints), &json!({})).await;
    api.config_map("a", &json!({})).await;
    let namespace = |labels: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": labels}});
    api.post("/api/v1/namespaces", &namespace(json!({"strict": ""}))).await.refused(422);
    api.post("/api/v1/namespaces", &namespace(json!({}))).await.ok();
    let path = "/api/v1/namespaces/n/configmaps";
    api.post(path, &config_map("a", &json!({}))).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_binding_matches_less_than_its_policy() {
    let api = Api::start().await;
    let resources = json!({
        "resourceRules": rules(&[""], &["configmaps"], &["CREATE"]),
        "objectSelector": {"matchLabels": {"strict": "yes"}},
    });
    judge(&api, "p", &validation("false"), &json!({"matchResources": resources})).await;
    api.config_map("a", &json!({})).await;
    api.post(CONFIG_MAPS, &labelled("b", &json!({"strict": "yes"}))).await.refused(422);
    api.merge(&format!("{CONFIG_MAPS}/a"), &json!({"data": {"a": "b"}})).await.ok();
}

#[tokio::test(start_paused = true)]
async fn subresources_are_judged_where_rules_name_them() {
    let constraints = json!({"resourceRules": [
        rules(&["apps"], &["deployments/scale"], &["UPDATE"])[0],
        rules(&[""], &["pods/status", "pods/eviction"], &["*"])[0],
    ]});
    let api = Api::start().await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    api.post(deployments, &deployment("web", 1)).await.ok();
    let pods = "/api/v1/namespaces/default/pods";
    api.post(pods, &pod("web")).await.ok();
    let mut fields = validation(
        "request.subResource == 'scale' ? object.spec.replicas < 5 && oldObject.kind == 'Scale' : \
         request.subResource == 'eviction' ? object.kind == 'Pod' : object.status.phase != 'Odd'",
    );
    fields["matchConstraints"] = constraints;
    judge(&api, "p", &fields, &json!({})).await;
    let scale = |replicas: i64| json!({"spec": {"replicas": replicas}});
    api.merge(&format!("{deployments}/web/scale"), &scale(4)).await.ok();
    api.merge(&format!("{deployments}/web/scale"), &scale(6)).await.refused(422);
    api.merge(&format!("{deployments}/web"), &scale(6)).await.ok();
    api.merge(&format!("{pods}/web/status"), &json!({"status": {"phase": "Running"}})).await.ok();
    api.merge(&format!("{pods}/web/status"), &json!({"status": {"phase": "Odd"}}))
        .await
        .refused(422);
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"},
    });
    let refused = api.post(&format!("{pods}/web/eviction"), &eviction).await;
    assert!(why(&refused).starts_with("failed expression"));
}

#[tokio::test(start_paused = true)]
async fn who_is_led_to_a_node_is_judged() {
    let api = Api::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    api.post(pods, &pod("web")).await.ok();
    let mut fields = validation(
        "request.operation == 'CONNECT' && request.kind.kind == 'PodExecOptions' && \
         object.command != ['sh'] && oldObject == null",
    );
    fields["matchConstraints"] =
        json!({"resourceRules": rules(&[""], &["pods/exec"], &["CONNECT"])});
    judge(&api, "p", &fields, &json!({})).await;
    let refused = api.post(&format!("{pods}/web/exec?command=sh"), &json!({})).await;
    assert_eq!(
        refused.refused(422)["message"].as_str().unwrap().split(':').next().unwrap(),
        "pods \"web\" is forbidden"
    );
    let refused = api.post(&format!("{pods}/web/exec?command=ls"), &json!({})).await;
    assert_eq!(why(&refused), "pod web does not have a host assigned");
    let refused = api.post(&format!("{pods}/web/attach"), &json!({})).await;
    assert_eq!(why(&refused), "pod web does not have a host assigned");
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_through_a_proxy_is_judged_by_the_path_and_not_by_the_query() {
    let api = Api::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    api.post(pods, &pod("web")).await.ok();
    let mut fields = validation("has(object.path) && object.path.startsWith('/public/')");
    fields["matchConstraints"] =
        json!({"resourceRules": rules(&[""], &["pods/proxy"], &["CONNECT"])});
    judge(&api, "p", &fields, &json!({})).await;
    for (path, allowed) in [
        ("web/proxy/public/page", true),
        ("web/proxy/public/", true),
        ("web/proxy/public", false),
        ("web/proxy/private?path=/public/page", false),
        ("web/proxy", false),
    ] {
        let answer = api.get(&format!("{pods}/{path}")).await;
        assert_eq!(answer.code != 422, allowed, "{path}: {}", why(&answer));
    }
}

#[tokio::test(start_paused = true)]
async fn another_version_is_judged_in_the_version_of_the_rule() {
    let in_v2 = json!([{
        "apiGroups": ["example.com"], "apiVersions": ["v2"], "resources": ["widgets"],
        "operations": ["*"],
    }]);
    for (policy, judged) in [("Equivalent", true), ("Exact", false)] {
        let api = Api::start().await;
        api.post(DEFINITIONS, &definition()).await.ok();
        let mut fields = validation(
            "object.apiVersion != 'example.com/v2' || request.resource.version != 'v2' \
             || request.requestResource.version != 'v1'",
        );
        fields["matchConstraints"] = json!({"resourceRules": in_v2, "matchPolicy": policy});
        judge(&api, "p", &fields, &json!({})).await;
        let answer = api.post(WIDGETS, &widget("a", 1)).await;
        assert_eq!(answer.code, if judged { 422 } else { 201 }, "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn policies_do_not_judge_policies_nor_reviews() {
    let constraints = json!({"resourceRules": rules(&["*"], &["*/*"], &["*"])});
    let api = judged(&refusing(&constraints), &json!({})).await;
    api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(422);
    judge(&api, "other", &validation("true"), &json!({})).await;
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
    });
    api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await.ok();
    // Webhook configurations are judged.
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "w"},
    });
    let path = format!("{}/validatingwebhookconfigurations", super::GROUP);
    api.post(&path, &configuration).await.refused(422);
    // It can be repaired.
    api.delete(&format!("{}/validatingadmissionpolicies/p", super::GROUP)).await.ok();
    api.config_map("a", &json!({})).await;
}
