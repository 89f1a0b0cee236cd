//! Which webhooks are asked about which requests, and in which form.

use std::sync::Arc;

use serde_json::{Value, json};

use super::set;
use crate::api::{Api, CONFIG_MAPS, config_map, deployment, pod};
use crate::crd::{DEFINITIONS, WIDGETS, definition, widget};
use crate::webhooks::{
    MUTATING, VALIDATING, allowed, configure, denied, message, serve_here, webhook, webhook_with,
};

#[tokio::test(start_paused = true)]
async fn deletions_are_asked_about_with_the_old_object_alone() {
    let api = Api::start().await;
    let asked =
        serve_here(&api, |request| match request["oldObject"]["metadata"]["name"].as_str() {
            Some("keep") => denied(&json!({"message": "it stays"})),
            _ => allowed(),
        });
    for name in ["a", "b", "keep"] {
        api.config_map(name, &json!({})).await;
    }
    let rules = json!([{
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "operations": ["DELETE"],
    }]);
    let hook = webhook_with("keeper", &json!({"rules": rules}));
    configure(&api, VALIDATING, "a", std::slice::from_ref(&hook)).await;
    let options = json!({"gracePeriodSeconds": 5, "propagationPolicy": "Background"});
    api.delete_with(&format!("{CONFIG_MAPS}/a"), &options).await.ok();
    let request = asked.last();
    assert_eq!((&request["operation"], &request["object"]), (&json!("DELETE"), &Value::Null));
    assert_eq!(request["options"]["propagationPolicy"], "Background");
    assert_eq!(request["options"]["gracePeriodSeconds"], 5);
    let refused = api.delete(&format!("{CONFIG_MAPS}/keep")).await.refused(400);
    assert!(message(&refused).ends_with("denied the request: it stays"));
    api.delete(CONFIG_MAPS).await.refused(400);
    let deleted = asked.all();
    let of = |object: &Value| object["metadata"]["name"].clone();
    let objects: Vec<_> = deleted.iter().map(|request| of(&request["oldObject"])).collect();
    assert_eq!(objects, ["a", "keep", "b", "keep"]);
    // Whoever deletes a collection names nothing in it.
    let names: Vec<_> = deleted.iter().map(|request| request["name"].as_str()).collect();
    assert_eq!(names, [Some("a"), Some("keep"), None, None]);
    api.get(&format!("{CONFIG_MAPS}/keep")).await.ok();
    configure(&api, MUTATING, "a", &[hook]).await;
    serve_here(&api, |_| set("/data", &json!({})));
    let refused = api.delete(&format!("{CONFIG_MAPS}/keep")).await.refused(500);
    assert!(message(&refused).contains("attempted to modify the object, which is not supported"));
}

#[tokio::test(start_paused = true)]
async fn rules_choose_resources_subresources_and_operations() {
    let api = Api::start().await;
    let asked = serve_here(&api, |_| allowed());
    let rules = json!([
        {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/status"], "operations": ["UPDATE"]},
        {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments/scale"], "operations": ["*"]},
        {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/binding", "pods/eviction"], "operations": ["CREATE"]},
        {"apiGroups": [""], "apiVersions": ["*"], "resources": ["*"], "operations": ["CREATE"], "scope": "Cluster"},
    ]);
    configure(&api, VALIDATING, "a", &[webhook_with("picky", &json!({"rules": rules}))]).await;
    let pods = "/api/v1/namespaces/default/pods";
    let created = api.post(pods, &pod("a")).await.ok();
    api.merge(&format!("{pods}/a"), &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    assert_eq!(asked.count(), 0);
    let status = json!({"status": {"phase": "Running"}});
    api.merge(&format!("{pods}/a/status"), &status).await.ok();
    let request = asked.last();
    assert_eq!(
        (&request["subResource"], &request["operation"]),
        (&json!("status"), &json!("UPDATE"))
    );
    assert_eq!(request["requestSubResource"], "status");
    assert_eq!(request["object"]["status"]["phase"], "Running");
    assert_eq!(request["oldObject"]["metadata"]["uid"], created["metadata"]["uid"]);
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    api.post(deployments, &deployment("web", 1)).await.ok();
    api.merge(&format!("{deployments}/web/scale"), &json!({"spec": {"replicas": 4}})).await.ok();
    let request = asked.last();
    assert_eq!(request["kind"], json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}));
    assert_eq!(request["object"]["spec"]["replicas"], 4);
    assert_eq!(request["oldObject"]["spec"]["replicas"], 1);
    let binding = json!({"target": {"name": "node"}, "metadata": {"name": "a"}});
    api.post(&format!("{pods}/a/binding"), &binding).await.ok();
    assert_eq!(asked.last()["kind"]["kind"], "Binding");
    assert_eq!(asked.last()["name"], "a");
    let eviction = json!({"metadata": {"name": "a"}});
    api.post(&format!("{pods}/a/eviction"), &eviction).await.ok();
    assert_eq!(asked.last()["subResource"], "eviction");
    let namespace = json!({"metadata": {"name": "ns"}});
    api.post("/api/v1/namespaces", &namespace).await.ok();
    assert_eq!(asked.last()["object"]["kind"], "Namespace");
    assert_eq!(asked.last()["namespace"], "ns");
    assert_eq!(asked.count(), 5);
}

#[tokio::test(start_paused = true)]
async fn selectors_choose_namespaces_and_objects_old_or_new() {
    let api = Api::start().await;
    let asked = serve_here(&api, |_| allowed());
    let hook = webhook_with(
        "picky",
        &json!({
            "namespaceSelector": {"matchLabels": {"hooks": "on"}},
            "objectSelector": {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]},
        }),
    );
    configure(&api, VALIDATING, "a", &[hook]).await;
    api.config_map("a", &json!({})).await;
    assert_eq!(asked.count(), 0);
    let labels = json!({"metadata": {"labels": {"hooks": "on"}}});
    api.merge("/api/v1/namespaces/default", &labels).await.ok();
    let mut skipped = config_map("b", &json!({}));
    skipped["metadata"]["labels"] = json!({"skip": "yes"});
    api.post(CONFIG_MAPS, &skipped).await.ok();
    assert_eq!(asked.count(), 0);
    api.config_map("c", &json!({})).await;
    assert_eq!(asked.count(), 1);
    let path = format!("{CONFIG_MAPS}/c");
    api.merge(&path, &json!({"metadata": {"labels": {"skip": "yes"}}})).await.ok();
    assert_eq!(asked.count(), 2, "the old object has no label yet");
    api.merge(&path, &json!({"data": {"x": "y"}})).await.ok();
    assert_eq!(asked.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_rule_for_another_version_gets_the_object_in_that_version() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    let asked = serve_here(&api, |request| {
        assert_eq!(request["object"]["apiVersion"], "example.com/v2");
        set("/spec/color", &json!("blue"))
    });
    let rules = json!([{
        "apiGroups": ["example.com"], "apiVersions": ["v2"], "resources": ["widgets"],
        "operations": ["*"],
    }]);
    let hook = webhook_with("v2", &json!({"rules": rules}));
    configure(&api, MUTATING, "a", std::slice::from_ref(&hook)).await;
    let created = api.post(WIDGETS, &widget("a", 1)).await.ok();
    assert_eq!(
        (&created["apiVersion"], &created["spec"]["color"]),
        (&json!("example.com/v1"), &json!("blue"))
    );
    let request = asked.last();
    assert_eq!(request["kind"]["version"], "v2");
    assert_eq!(request["requestKind"]["version"], "v1");
    let exact = webhook_with("v2", &json!({"rules": rules, "matchPolicy": "Exact"}));
    api.merge(&format!("{MUTATING}/a"), &json!({"webhooks": [exact]})).await.ok();
    assert_eq!(api.post(WIDGETS, &widget("b", 1)).await.ok()["spec"]["color"], "red");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_asks_and_says_so() {
    let api = Api::start().await;
    let asked = serve_here(&api, |_| set("/data/seen", &json!("yes")));
    configure(&api, MUTATING, "a", &[webhook("seen")]).await;
    let dry = format!("{CONFIG_MAPS}?dryRun=All");
    let created = api.post(&dry, &config_map("a", &json!({"k": "v"}))).await.ok();
    assert_eq!(created["data"]["seen"], "yes");
    assert_eq!(
        (&asked.last()["dryRun"], &asked.last()["options"]["dryRun"]),
        (&json!(true), &json!(["All"]))
    );
    api.get(&format!("{CONFIG_MAPS}/a")).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn conditions_say_which_requests_concern_a_webhook() {
    let api = Api::start().await;
    let asked = serve_here(&api, |_| allowed());
    let conditions = json!([
        {"name": "not-nodes", "expression": "!('system:nodes' in request.userInfo.groups)"},
        {"name": "marked", "expression": "object.data.?mark.orValue('') == 'yes'"},
        {"name": "may", "expression": "authorizer.requestResource.check('get').allowed()"},
    ]);
    let fields = json!({"matchConditions": conditions});
    configure(&api, VALIDATING, "a", &[webhook_with("a", &fields)]).await;
    api.config_map("plain", &json!({"k": "v"})).await;
    assert_eq!(asked.count(), 0);
    api.config_map("marked", &json!({"mark": "yes"})).await;
    assert_eq!(asked.count(), 1);
    let node = api.acting_as("jane", &["system:nodes", "system:masters"]);
    node.config_map("other", &json!({"mark": "yes"})).await;
    assert_eq!(asked.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_cannot_be_evaluated_ends_as_the_failure_policy_says() {
    for (policy, code) in [("Ignore", 201), ("Fail", 403)] {
        let api = Api::start().await;
        let asked = serve_here(&api, |_| allowed());
        let conditions = json!([{"name": "broken", "expression": "object.data.missing == 'x'"}]);
        let fields = json!({"matchConditions": conditions, "failurePolicy": policy});
        configure(&api, VALIDATING, "a", &[webhook_with("a", &fields)]).await;
        let answer = api.post(CONFIG_MAPS, &config_map("a", &json!({"k": "v"}))).await;
        assert_eq!(answer.code, code, "{policy}");
        if policy == "Fail" {
            let why = "expression 'object.data.missing == 'x'' resulted in error: no such key: \
                       missing";
            assert!(message(&answer.json()).contains(why), "{}", answer.json());
        }
        assert_eq!(asked.count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_does_not_compile_is_refused() {
    let api = Api::start().await;
    let conditions = json!([{"name": "wrong", "expression": "request.user == 'x'"}]);
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "a"},
        "webhooks": [webhook_with("a", &json!({"matchConditions": conditions}))],
    });
    let refused = api.post(VALIDATING, &configuration).await.refused(422);
    let told = message(&refused);
    assert!(told.contains("webhooks[0].matchConditions[0].expression: Invalid value"), "{told}");
    assert!(told.contains("undefined field 'user'"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn configurations_are_never_asked_about_and_a_removed_webhook_is_not_asked() {
    let api = Api::start().await;
    let asked = serve_here(&api, |_| denied(&json!({"message": "nothing passes"})));
    let rules = json!([{
        "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"],
    }]);
    let wall = webhook_with("wall", &json!({"rules": rules}));
    configure(&api, VALIDATING, "wall", std::slice::from_ref(&wall)).await;
    configure(&api, MUTATING, "wall", &[wall]).await;
    api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(400);
    assert_eq!(asked.count(), 1);
    api.delete(&format!("{VALIDATING}/wall")).await.ok();
    api.delete(&format!("{MUTATING}/wall")).await.ok();
    api.config_map("a", &json!({})).await;
    assert_eq!(asked.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn reviews_are_asked_about_like_what_is_stored() {
    let api = Api::start().await;
    let asked = serve_here(&api, |request| match request["kind"]["kind"].as_str() {
        Some("SubjectAccessReview") => set("/spec/user", &json!("jane")),
        _ => denied(&json!({"message": "no questions"})),
    });
    let rules = json!([{
        "apiGroups": ["authentication.k8s.io", "authorization.k8s.io"], "apiVersions": ["*"],
        "resources": ["*"], "operations": ["CREATE"],
    }]);
    let curious = webhook_with("curious", &json!({"rules": rules}));
    configure(&api, MUTATING, "curious", &[curious]).await;
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let refused = api.post(path, &json!({})).await.refused(400);
    assert!(message(&refused).ends_with("denied the request: no questions"));
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let spec = json!({"user": "eve", "nonResourceAttributes": {"verb": "get", "path": "/"}});
    let answered = api.post(path, &json!({"spec": spec})).await.ok();
    assert_eq!(asked.last()["object"]["spec"]["user"], "eve");
    assert_eq!(answered["spec"]["user"], "jane");
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_token_is_judged_with_what_the_server_fills_in() {
    let api = Api::start().await;
    let asked = serve_here(&api, |_| allowed());
    let rules = json!([{
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["serviceaccounts/token"],
        "operations": ["CREATE"],
    }]);
    let judge = webhook_with("judge", &json!({"rules": rules}));
    configure(&api, VALIDATING, "judge", &[judge]).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    api.post(accounts, &account).await.ok();
    let answered = api.post(&format!("{accounts}/robot/token"), &json!({})).await.ok();
    let judged = asked.last()["object"].clone();
    assert_eq!(judged["metadata"]["name"], "robot");
    assert_eq!(judged["spec"], answered["spec"]);
    assert!(judged["spec"]["audiences"][0].is_string(), "{judged}");
    // Nobody judges a request that makes no sense.
    let short = json!({"spec": {"expirationSeconds": 1}});
    api.post(&format!("{accounts}/robot/token"), &short).await.refused(422);
    assert_eq!(asked.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn webhooks_are_known_again_after_a_restart() {
    let api = Api::start().await;
    configure(&api, VALIDATING, "a", &[webhook("judge")]).await;
    let again = Api::over(Arc::clone(&api.store)).await;
    serve_here(&again, |_| denied(&json!({"message": "no"})));
    again.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(400);
}
