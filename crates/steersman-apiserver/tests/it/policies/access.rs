//! Who may refer to parameters: those who can read them.

use serde_json::{Value, json};

use super::{binding, create, path, policy};
use crate::api::{Answer, Api};
use crate::authorization::{bind, role, rule};

/// Jane as Kubernetes' messages tell her.
const JANE: &str = "&{jane  [dev system:authenticated] map[]}";

/// Jane may write policies and bindings.
async fn jane(api: &Api) -> Api {
    let rules = [rule(&["*"], &["admissionregistration.k8s.io"], &["*"])];
    role(api, "", "policy-writer", &rules).await;
    bind(api, "", "ClusterRole", "policy-writer", "jane").await;
    api.acting_as("jane", &["dev"])
}

/// Lets jane do one thing more, in a namespace or everywhere.
async fn grant(api: &Api, namespace: &str, verb: &str, group: &str, resource: &str) {
    let kind = if namespace.is_empty() { "ClusterRole" } else { "Role" };
    let name = format!("{verb}-parameters");
    role(api, namespace, &name, &[rule(&[verb], &[group], &[resource])]).await;
    bind(api, namespace, kind, &name, "jane").await;
}

/// A policy with parameters of a kind.
fn with_params(sort: &str, api_version: &str, kind: &str) -> Value {
    let mut fields = match sort {
        "Validating" => json!({"validations": [{"expression": "true"}]}),
        _ => {
            let expression = "[JSONPatch{op: 'test', path: '/metadata'}]";
            json!({"mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}},
            ]})
        }
    };
    fields["paramKind"] = json!({"apiVersion": api_version, "kind": kind});
    policy(sort, "p", &fields)
}

#[track_caller]
fn refused(answer: &Answer, why: &str) {
    let status = answer.refused(422);
    let message = status["message"].as_str().unwrap();
    assert!(message.ends_with(&format!("is invalid: {why}")), "{message}");
}

#[tokio::test(start_paused = true)]
async fn who_writes_a_policy_can_read_all_its_parameters() {
    for sort in ["Validating", "Mutating"] {
        let api = Api::start().await;
        let jane = jane(&api).await;
        let wanted = with_params(sort, "v1", "ConfigMap");
        let why = format!(
            "spec.paramKind: Forbidden: user {JANE} must have \"get\" permission on all objects of \
             the referenced paramKind (kind=ConfigMap, apiVersion=v1)"
        );
        refused(&create(&jane, &wanted).await, &why);
        grant(&api, "default", "get", "", "configmaps").await;
        refused(&create(&jane, &wanted).await, &why);
        let mut wrong = wanted.clone();
        wrong["spec"]["failurePolicy"] = "Never".into();
        let mistake = create(&jane, &wrong).await.refused(422);
        let message = mistake["message"].as_str().unwrap();
        assert!(!message.contains("permission"), "mistakes are told first: {message}");
        grant(&api, "", "get", "", "configmaps").await;
        create(&jane, &wanted).await.ok();
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_looked_at_again_if_its_kind_of_parameters_changes() {
    for sort in ["Validating", "Mutating"] {
        let api = Api::start().await;
        let jane = jane(&api).await;
        let made = with_params(sort, "v1", "Secret");
        create(&api, &made).await.ok();
        let path = format!("{}/p", path(&made));
        jane.merge(&path, &json!({"spec": {"failurePolicy": "Ignore"}})).await.ok();
        let kind = |kind: Value| json!({"spec": {"paramKind": kind}});
        let config_maps = kind(json!({"kind": "ConfigMap"}));
        jane.merge(&path, &config_maps).await.refused(422);
        jane.merge(&format!("{path}?dryRun=All"), &config_maps).await.refused(422);
        jane.merge(&path, &kind(Value::Null)).await.ok();
        jane.merge(&path, &kind(made["spec"]["paramKind"].clone())).await.refused(422);
    }
}

#[tokio::test(start_paused = true)]
async fn parameters_that_nobody_serves_take_the_right_to_all_of_their_group() {
    let api = Api::start().await;
    let jane = jane(&api).await;
    let unserved = with_params("Validating", "foo.example.com/v1", "Params");
    create(&jane, &unserved).await.refused(422);
    grant(&api, "", "get", "foo.example.com", "*").await;
    create(&jane, &unserved).await.ok();
}

#[tokio::test(start_paused = true)]
async fn who_binds_a_policy_can_read_the_parameters_that_are_referred_to() {
    let named = json!({"name": "limits", "namespace": "default"});
    let everywhere = json!({"name": "limits"});
    let selected = json!({"selector": {}, "namespace": "default"});
    for sort in ["Validating", "Mutating"] {
        let lacks = |verb: &str| {
            let [user, verb] = if sort == "Mutating" { [verb, JANE] } else { [JANE, verb] };
            format!(
                "spec.paramRef: Forbidden: user {user} does not have \"{verb}\" permission on the \
                 object referenced by paramRef"
            )
        };
        for (reference, verb, namespace, allowed) in [
            (&named, "get", "default", true),
            (&named, "get", "kube-system", false),
            (&named, "list", "default", false),
            (&everywhere, "get", "default", false),
            (&everywhere, "get", "", true),
            (&selected, "list", "default", true),
            (&selected, "get", "default", false),
        ] {
            let api = Api::start().await;
            let jane = jane(&api).await;
            create(&api, &with_params(sort, "v1", "ConfigMap")).await.ok();
            let mut reference = reference.clone();
            reference["parameterNotFoundAction"] = "Deny".into();
            let bound = binding(sort, "b", "p", &json!({"paramRef": reference}));
            let asked = if reference["name"].is_null() { "list" } else { "get" };
            refused(&create(&jane, &bound).await, &lacks(asked));
            grant(&api, namespace, verb, "", "configmaps").await;
            let answer = create(&jane, &bound).await;
            let expected = if allowed { 201 } else { 422 };
            assert_eq!(answer.code, expected, "{sort} {reference} {verb} {namespace}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_binding_is_looked_at_at_every_change_as_long_as_it_refers_to_parameters() {
    let api = Api::start().await;
    let jane = jane(&api).await;
    create(&api, &with_params("Validating", "v1", "ConfigMap")).await.ok();
    let reference = json!({"name": "limits", "parameterNotFoundAction": "Deny"});
    let bound = binding("Validating", "b", "p", &json!({"paramRef": reference}));
    create(&api, &bound).await.ok();
    let path = format!("{}/b", path(&bound));
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    jane.merge(&path, &labels).await.refused(422);
    jane.merge(&path, &json!({"spec": {"paramRef": null}})).await.ok();
    jane.merge(&path, &labels).await.ok();
    create(&jane, &binding("Validating", "c", "p", &json!({}))).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_binding_tells_why_it_takes_the_right_to_everything() {
    let api = Api::start().await;
    let jane = jane(&api).await;
    create(&api, &with_params("Validating", "foo.example.com/v1", "Params")).await.ok();
    let reference = json!({"name": "limits", "parameterNotFoundAction": "Deny"});
    for (policy, failed) in
        [("p", "resolve paramKind &{foo.example.com/v1 Params}"), ("nobody", "get policy nobody")]
    {
        let bound = binding("Validating", "b", policy, &json!({"paramRef": reference}));
        let why = format!(
            "spec.paramRef: Forbidden: unable to {failed} to determine minimum required \
             permissions and user {JANE} does not have \"get\" permission for all groups, versions \
             and resources"
        );
        refused(&create(&jane, &bound).await, &why);
    }
    grant(&api, "", "get", "*", "*").await;
    create(&jane, &binding("Validating", "b", "nobody", &json!({"paramRef": reference})))
        .await
        .ok();
}
