//! Policies that change objects.

use serde_json::{Value, json};

use super::{change, judge, policy, rules, validation, why};
use crate::api::{Api, CONFIG_MAPS, config_map, deployment, pod};
use crate::crd::{DEFINITIONS, WIDGETS, definition, widget};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn applying(expression: &str) -> Value {
    json!({"mutations": [{
        "patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression},
    }]})
}

fn patching(expression: &str) -> Value {
    json!({"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]})
}

/// The same, about something else.
fn about(mut fields: Value, groups: &[&str], resources: &[&str]) -> Value {
    let rules = rules(groups, resources, &["CREATE", "UPDATE"]);
    fields["matchConstraints"] = json!({"resourceRules": rules});
    fields
}

#[tokio::test(start_paused = true)]
async fn a_configuration_is_laid_over_the_object() {
    let api = Api::start().await;
    let expression = "Object{metadata: Object.metadata{labels: {'by': request.operation}}, \
                      spec: Object.spec{containers: object.spec.containers.map(c, \
                      Object.spec.containers{name: c.name, env: [Object.spec.containers.env{\
                      name: 'A', value: c.image}]})}}";
    change(&api, "p", &about(applying(expression), &[""], &["pods"]), &json!({})).await;
    let made = api.post(PODS, &pod("web")).await.ok();
    assert_eq!(made["metadata"]["labels"], json!({"by": "CREATE"}));
    let container = &made["spec"]["containers"][0];
    assert_eq!(container["env"], json!([{"name": "A", "value": "nginx"}]));
    assert_eq!(container["image"], "nginx");
    // Nobody owns what a policy has set.
    let managers = made["metadata"]["managedFields"].to_string();
    assert!(!managers.contains("f:env"), "{managers}");
}

#[tokio::test(start_paused = true)]
async fn operations_change_the_object() {
    let api = Api::start().await;
    let expression = "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}, \
                      JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('x.io/y'), \
                      value: 'c'}, \
                      JSONPatch{op: 'test', path: '/data/k', value: 'v'}, \
                      JSONPatch{op: 'copy', from: '/data/k', path: '/data/copied'}, \
                      JSONPatch{op: 'remove', path: '/data/k'}]";
    change(&api, "p", &patching(expression), &json!({})).await;
    let made = api.config_map("a", &json!({"k": "v"})).await;
    assert_eq!(made["metadata"]["labels"], json!({"a": "b", "x.io/y": "c"}));
    assert_eq!(made["data"], json!({"copied": "v"}));
    // A test that fails leaves the object alone.
    let made = api.config_map("b", &json!({"k": "other"})).await;
    assert_eq!(
        (&made["data"], &made["metadata"]["labels"]),
        (&json!({"k": "other"}), &Value::Null)
    );
}

#[tokio::test(start_paused = true)]
async fn objects_are_values_of_operations_too() {
    let api = Api::start().await;
    let expression = "[JSONPatch{op: 'add', path: '/spec/template/spec/tolerations', value: \
                      [Object.spec.template.spec.tolerations{key: 'a', operator: 'Exists'}]}]";
    change(&api, "p", &about(patching(expression), &["apps"], &["deployments"]), &json!({})).await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let made = api.post(path, &deployment("web", 1)).await.ok();
    let tolerations = &made["spec"]["template"]["spec"]["tolerations"];
    assert_eq!(*tolerations, json!([{"key": "a", "operator": "Exists"}]));
}

#[tokio::test(start_paused = true)]
async fn mutations_follow_each_other_and_see_what_was_changed() {
    let api = Api::start().await;
    let fields = json!({
        "variables": [{"name": "count", "expression": "string(size(object.data))"}],
        "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {
                "expression": "Object{data: Object.data{first: variables.count}}"}},
            {"patchType": "JSONPatch", "jsonPatch": {
                "expression": "[JSONPatch{op: 'add', path: '/data/second', value: variables.count}]"}},
        ],
    });
    change(&api, "p1", &fields, &json!({})).await;
    let third = "Object{data: Object.data{third: string(size(object.data))}}";
    change(&api, "p2", &applying(third), &json!({})).await;
    let made = api.config_map("a", &json!({"k": "v"})).await;
    assert_eq!(made["data"], json!({"k": "v", "first": "1", "second": "2", "third": "3"}));
}

#[tokio::test(start_paused = true)]
async fn parameters_conditions_and_dry_runs_are_as_elsewhere() {
    let api = Api::start().await;
    let mut fields = about(
        applying("Object{metadata: Object.metadata{labels: {'team': string(params.data.team)}}}"),
        &[""],
        &["secrets"],
    );
    fields["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    fields["matchConditions"] =
        json!([{"name": "a", "expression": "object.metadata.name != 'spared'"}]);
    let bound = json!({"paramRef": {"name": "team", "parameterNotFoundAction": "Deny"}});
    change(&api, "p", &fields, &bound).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret =
        |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
    let refused = api.post(secrets, &secret("a")).await.refused(403);
    let told = "policy 'p' with binding 'b-p' denied request: failed to configure binding: no params \
                found for policy binding with `Deny` parameterNotFoundAction";
    assert_eq!(refused["message"], told);
    assert_eq!(refused["reason"], "Forbidden");
    assert_eq!(refused["details"]["causes"], json!([{"message": told}]));
    api.config_map("team", &json!({"team": "red"})).await;
    let made = api.post(&format!("{secrets}?dryRun=All"), &secret("a")).await.ok();
    assert_eq!(made["metadata"]["labels"], json!({"team": "red"}));
    let made = api.post(secrets, &secret("spared")).await.ok();
    assert_eq!(made["metadata"]["labels"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_changed_is_refused_or_left() {
    for (fields, expected) in [
        (
            applying("Object{data: Object.data{k: string(object.nothing)}}"),
            "expression 'Object{data: Object.data{k: string(object.nothing)}}' resulted in error: no \
             such key: nothing",
        ),
        (
            applying("Object{data: Object.wrong{k: 'v'}}"),
            "type mismatch: unexpected type name \"Object.wrong\", expected \"Object.data\", which \
             matches field name path from root Object type",
        ),
        (
            applying("Object{nodata: 'x'}"),
            "error applying patch: failed to convert patch object to typed object: .nodata: field \
             not declared in schema",
        ),
        (
            patching("[JSONPatch{op: 'remove', path: '/data/none'}]"),
            "JSON Patch: error in remove for path: '/data/none': Unable to remove nonexistent key: none: \
             missing value",
        ),
    ] {
        let api = Api::start().await;
        change(&api, "p", &fields, &json!({})).await;
        let refused = api.post(CONFIG_MAPS, &config_map("a", &json!({"k": "v"}))).await;
        assert!(why(&refused).starts_with(expected), "{}\n{expected}", why(&refused));
        assert_eq!((refused.code, &refused.json()["reason"]), (403, &json!("Invalid")));
        let api = Api::start().await;
        let mut ignored = fields.clone();
        ignored["failurePolicy"] = "Ignore".into();
        change(&api, "p", &ignored, &json!({})).await;
        assert_eq!(api.config_map("a", &json!({"k": "v"})).await["data"], json!({"k": "v"}));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_replaced_as_a_whole_is_not_changed_in_part() {
    let api = Api::start().await;
    let expression = "Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}";
    change(&api, "p", &about(applying(expression), &[""], &["pods"]), &json!({})).await;
    assert_eq!(
        why(&api.post(PODS, &pod("a")).await),
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or \
         structs: .spec.nodeSelector"
    );
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_changed_by_their_schema() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    let expression = "Object{spec: Object.spec{color: 'blue', size: object.spec.size + 1}}";
    change(&api, "p", &about(applying(expression), &["example.com"], &["widgets"]), &json!({}))
        .await;
    let made = api.post(WIDGETS, &widget("a", 1)).await.ok();
    assert_eq!(made["spec"], json!({"color": "blue", "size": 2}));
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_evaluated_again_if_others_change_the_object_after_it() {
    for (wish, expected) in [("IfNeeded", "2"), ("Never", "1")] {
        let api = Api::start().await;
        let count = "Object{data: Object.data{seen: string(size(object.data) - \
                     (has(object.data.seen) ? 1 : 0))}}";
        let mut first = applying(count);
        first["reinvocationPolicy"] = wish.into();
        change(&api, "p1", &first, &json!({})).await;
        change(&api, "p2", &applying("Object{data: Object.data{later: 'x'}}"), &json!({})).await;
        let made = api.config_map("a", &json!({"k": "v"})).await;
        assert_eq!(made["data"], json!({"k": "v", "later": "x", "seen": expected}), "{wish}");
    }
}

/// As in Kubernetes, it is evaluated again for its own change.
#[tokio::test(start_paused = true)]
async fn a_policy_that_changes_an_object_is_evaluated_again_by_itself() {
    for (wish, expected) in [("IfNeeded", "xx"), ("Never", "x")] {
        let api = Api::start().await;
        let append = "Object{data: Object.data{k: object.data.k + 'x'}}";
        let mut fields = applying(append);
        fields["reinvocationPolicy"] = wish.into();
        change(&api, "p", &fields, &json!({})).await;
        let made = api.config_map("a", &json!({"k": ""})).await;
        assert_eq!(made["data"], json!({"k": expected}), "{wish}");
    }
}

#[tokio::test(start_paused = true)]
async fn deletions_are_not_changed_and_updates_are() {
    let api = Api::start().await;
    let refused = {
        let mut policy = policy("Mutating", "p", &applying("Object{}"));
        let operations = json!(["DELETE"]);
        policy["spec"]["matchConstraints"]["resourceRules"][0]["operations"] = operations;
        super::create(&api, &policy).await
    };
    assert!(
        refused.refused(422)["message"].as_str().unwrap().contains("Unsupported value: \"DELETE\"")
    );
    api.config_map("a", &json!({"k": "v"})).await;
    let mut always = applying("Object{data: Object.data{op: request.operation}}");
    always["matchConstraints"] = json!({"resourceRules": rules(&[""], &["configmaps"], &["*"])});
    change(&api, "p", &always, &json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let changed = api.merge(&path, &json!({"metadata": {"labels": {"x": "y"}}})).await.ok();
    assert_eq!(changed["data"], json!({"k": "v", "op": "UPDATE"}));
    api.delete(&path).await.ok();
}

#[tokio::test(start_paused = true)]
async fn what_is_changed_is_judged() {
    let api = Api::start().await;
    change(&api, "p", &applying("Object{data: Object.data{k: 'bad'}}"), &json!({})).await;
    judge(&api, "p", &validation("object.data.k != 'bad'"), &json!({})).await;
    api.post(CONFIG_MAPS, &config_map("a", &json!({"k": "good"}))).await.refused(422);
}
