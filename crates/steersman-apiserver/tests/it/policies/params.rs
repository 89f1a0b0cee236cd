//! Parameters: what they are, and what happens if there are none.

use serde_json::{Value, json};

use super::{GROUP, binding, create, judge, judged, policy, rules, why};
use crate::api::{Api, CONFIG_MAPS, config_map};
use crate::crd::{DEFINITIONS, definition};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
}

/// About Secrets, whose names must not be longer than a ConfigMap says.
fn limited() -> Value {
    json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": rules(&[""], &["secrets", "namespaces"], &["CREATE"])},
        "validations": [{
            "expression": "params == null || size(object.metadata.name) <= int(params.data.max)",
            "messageExpression": "'longer than ' + params.metadata.name + ' of ' + params.kind",
        }],
    })
}

fn named(name: &str, action: &str) -> Value {
    json!({"paramRef": {"name": name, "parameterNotFoundAction": action}})
}

#[tokio::test(start_paused = true)]
async fn parameters_are_found_by_name_in_the_namespace_of_the_request() {
    let api = judged(&limited(), &named("limits", "Deny")).await;
    api.config_map("limits", &json!({"max": "3"})).await;
    api.post(SECRETS, &secret("abc")).await.ok();
    let refused = api.post(SECRETS, &secret("abcd")).await;
    assert_eq!(why(&refused), "longer than limits of ConfigMap");
    // What they say now counts.
    api.merge(&format!("{CONFIG_MAPS}/limits"), &json!({"data": {"max": "4"}})).await.ok();
    api.post(SECRETS, &secret("abcd")).await.ok();
    // They are looked for in the namespace that is created.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let refused = api.post("/api/v1/namespaces", &namespace).await;
    assert_eq!(
        why(&refused),
        "failed to configure binding: no params found for policy binding with `Deny` \
         parameterNotFoundAction"
    );
}

#[tokio::test(start_paused = true)]
async fn parameters_that_vanish_refuse_or_allow_everything() {
    for (action, allowed) in [("Deny", false), ("Allow", true)] {
        let api = judged(&limited(), &named("limits", action)).await;
        api.config_map("limits", &json!({"max": "3"})).await;
        api.post(SECRETS, &secret("abc")).await.ok();
        api.delete(&format!("{CONFIG_MAPS}/limits")).await.ok();
        let answer = api.post(SECRETS, &secret("abcdef")).await;
        assert_eq!(answer.code, if allowed { 201 } else { 422 }, "{action}");
        if !allowed {
            let message = answer.json()["message"].as_str().unwrap().to_owned();
            assert_eq!(
                message,
                "secrets \"abcdef\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' \
                 denied request: failed to configure binding: no params found for policy binding \
                 with `Deny` parameterNotFoundAction"
            );
        }
    }
    // With a failure policy that ignores, nothing is refused for it.
    let mut fields = limited();
    fields["failurePolicy"] = "Ignore".into();
    let api = judged(&fields, &named("limits", "Deny")).await;
    api.post(SECRETS, &secret("abcdef")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn parameters_may_be_in_another_namespace_or_chosen_by_labels() {
    let api = Api::start().await;
    create(&api, &policy("Validating", "p", &limited())).await.ok();
    let elsewhere = json!({"paramRef": {
        "name": "limits", "namespace": "kube-system", "parameterNotFoundAction": "Deny",
    }});
    create(&api, &binding("Validating", "b", "p", &elsewhere)).await.ok();
    let path = "/api/v1/namespaces/kube-system/configmaps";
    api.post(path, &config_map("limits", &json!({"max": "4"}))).await.ok();
    api.post(SECRETS, &secret("abcd")).await.ok();
    api.post(SECRETS, &secret("abcde")).await.refused(422);
    api.delete(&format!("{GROUP}/validatingadmissionpolicybindings/b")).await.ok();

    let chosen = json!({"paramRef": {
        "selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Deny",
    }});
    create(&api, &binding("Validating", "b", "p", &chosen)).await.ok();
    let refused = api.post(SECRETS, &secret("a")).await;
    assert!(why(&refused).contains("no params found for policy binding"));
    for (name, max) in [("wide", "9"), ("narrow", "2")] {
        let mut object = config_map(name, &json!({"max": max}));
        object["metadata"]["labels"] = json!({"limits": "yes"});
        api.post(CONFIG_MAPS, &object).await.ok();
    }
    api.config_map("other", &json!({"max": "0"})).await;
    // Each of them must be content.
    api.post(SECRETS, &secret("a")).await.ok();
    assert_eq!(why(&api.post(SECRETS, &secret("abc")).await), "longer than narrow of ConfigMap");
}

#[tokio::test(start_paused = true)]
async fn without_a_reference_there_are_no_parameters() {
    let api = judged(&limited(), &json!({})).await;
    api.post(SECRETS, &secret("abcdef")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_reference_is_told() {
    let api = Api::start().await;
    let mut clusterwide = limited();
    clusterwide["paramKind"] = json!({"apiVersion": "v1", "kind": "Namespace"});
    let wrong = json!({"paramRef": {
        "name": "default", "namespace": "default", "parameterNotFoundAction": "Deny",
    }});
    judge(&api, "p", &clusterwide, &wrong).await;
    assert_eq!(
        why(&api.post(SECRETS, &secret("a")).await),
        "failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped \
         `paramKind`"
    );
    let api = Api::start().await;
    let mut of_nodes = limited();
    of_nodes["matchConstraints"]["resourceRules"] = rules(&[""], &["nodes"], &["CREATE"]);
    judge(&api, "p", &of_nodes, &named("limits", "Deny")).await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    assert_eq!(
        why(&api.post("/api/v1/nodes", &node).await),
        "failed to configure binding: cannot use namespaced paramRef in policy binding that matches \
         cluster-scoped resources"
    );
}

#[tokio::test(start_paused = true)]
async fn parameters_of_a_custom_kind_count_once_it_is_defined() {
    let api = Api::start().await;
    let mut fields = limited();
    fields["paramKind"] = json!({"apiVersion": "example.com/v1", "kind": "Widget"});
    fields["validations"] = json!([{"expression": "size(object.metadata.name) <= params.spec.size", "message": "long"}]);
    judge(&api, "p", &fields, &named("limits", "Deny")).await;
    assert_eq!(
        api.post(SECRETS, &secret("a")).await.refused(422)["message"],
        "secrets \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to \
         configure policy: failed to find resource referenced by paramKind: 'example.com/v1, \
         Kind=Widget'"
    );
    api.post(DEFINITIONS, &definition()).await.ok();
    api.post(crate::crd::WIDGETS, &crate::crd::widget("limits", 2)).await.ok();
    api.post(SECRETS, &secret("ab")).await.ok();
    assert_eq!(why(&api.post(SECRETS, &secret("abc")).await), "long");
}
