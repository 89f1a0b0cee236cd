//! What validations say.

use serde_json::{Value, json};

use super::{create, judge, judged, policy, validation, why};
use crate::api::{Api, CONFIG_MAPS, config_map, deployment};

#[tokio::test(start_paused = true)]
async fn what_does_not_hold_is_refused_in_kubernetes_words() {
    let api = judged(&validation("object.data.size == 'small'"), &json!({})).await;
    api.config_map("fits", &json!({"size": "small"})).await;
    let refused = api.post(CONFIG_MAPS, &config_map("huge", &json!({"size": "big"}))).await;
    let text = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: \
                object.data.size == 'small'";
    assert_eq!(
        refused.refused(422),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("configmaps \"huge\" is forbidden: {text}"),
            "reason": "Invalid", "code": 422,
            "details": {"name": "huge", "kind": "configmaps", "causes": [{"message": text}]},
        })
    );
    api.get(&format!("{CONFIG_MAPS}/huge")).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_has_the_message_and_the_reason_of_its_validation() {
    for (fields, code, reason, expected) in [
        (json!({"message": " too big "}), 422, "Invalid", "too big"),
        (json!({"message": "no", "reason": "Forbidden"}), 403, "Forbidden", "no"),
        (
            json!({"message": "no", "reason": "RequestEntityTooLarge"}),
            413,
            "RequestEntityTooLarge",
            "no",
        ),
        (
            json!({"message": "no", "messageExpression": "'no ' + object.metadata.name"}),
            422,
            "Invalid",
            "no a",
        ),
        // What cannot be computed, is empty or has several lines is not said.
        (json!({"message": "no", "messageExpression": "string(object.a)"}), 422, "Invalid", "no"),
        (json!({"message": "no", "messageExpression": "'  '"}), 422, "Invalid", "no"),
        (json!({"message": "no", "messageExpression": "'a\\nb'"}), 422, "Invalid", "no"),
        (json!({"messageExpression": "'a\\nb'"}), 422, "Invalid", "failed expression: false"),
    ] {
        let mut validation = json!({"expression": "false"});
        for (field, value) in fields.as_object().unwrap() {
            validation[field] = value.clone();
        }
        let api = judged(&json!({"validations": [validation]}), &json!({})).await;
        let refused = api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await;
        assert_eq!((refused.code, why(&refused).as_str()), (code, expected), "{fields}");
        assert_eq!(refused.json()["reason"], reason);
    }
}

#[tokio::test(start_paused = true)]
async fn an_expression_sees_the_request_and_both_objects() {
    let api = Api::start().await;
    api.config_map("a", &json!({"k": "1"})).await;
    let expressions = json!([
        {"expression": "request.operation == 'UPDATE' && request.name == 'a'"},
        {"expression": "request.namespace == 'default' && request.dryRun == false"},
        {"expression": "request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps'"},
        {"expression": "request.requestKind.version == 'v1' && !has(request.subResource)"},
        {"expression": "request.userInfo.username == 'jane'"},
        {"expression": "request.options.kind == 'UpdateOptions' && request.options.fieldManager == 'me'"},
        {"expression": "object.data.k == '2' && oldObject.data.k == '1'"},
        {"expression": "object.apiVersion == 'v1' && object.kind == 'ConfigMap'"},
        {"expression": "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'default'"},
        {"expression": "namespaceObject.status.phase == 'Active'"},
        {"expression": "authorizer.requestResource.check('update').allowed()"},
        {"expression": "authorizer.group('').resource('pods').namespace('default').check('get').allowed()"},
    ]);
    judge(&api, "p", &json!({"validations": expressions}), &json!({})).await;
    let jane = api.acting_as("jane", &["system:masters"]);
    let path = format!("{CONFIG_MAPS}/a?fieldManager=me");
    jane.merge(&path, &json!({"data": {"k": "2"}})).await.ok();
    let refused = api.acting_as("joe", &["system:masters"]).merge(&path, &json!({})).await;
    assert!(why(&refused).contains("request.userInfo.username == 'jane'"));
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_has_no_new_object() {
    let api = Api::start().await;
    api.config_map("keep", &json!({})).await;
    api.config_map("go", &json!({})).await;
    let expression = "request.operation != 'DELETE' || (object == null && \
                      oldObject.metadata.name != 'keep')";
    judge(&api, "p", &validation(expression), &json!({})).await;
    api.delete(&format!("{CONFIG_MAPS}/go")).await.ok();
    let refused = api.delete(&format!("{CONFIG_MAPS}/keep")).await;
    refused.refused(422);
    api.get(&format!("{CONFIG_MAPS}/keep")).await.ok();
    // What is created has no old one.
    judge(&api, "new", &validation("oldObject == null"), &json!({})).await;
    api.config_map("new", &json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_judged_as_well() {
    let api = judged(&validation("!request.dryRun"), &json!({})).await;
    let object = config_map("a", &json!({}));
    api.post(&format!("{CONFIG_MAPS}?dryRun=All"), &object).await.refused(422);
    api.post(CONFIG_MAPS, &object).await.ok();
}

#[tokio::test(start_paused = true)]
async fn variables_are_composed_and_computed_only_where_they_are_needed() {
    let fields = json!({
        "variables": [
            {"name": "sizes", "expression": "object.data.sizes.split(',').map(s, int(s))"},
            {"name": "largest", "expression": "variables.sizes.max()"},
            {"name": "broken", "expression": "object.nothing.at.all"},
        ],
        "validations": [{
            "expression": "variables.largest < 10 || (variables.broken == 1)",
            "messageExpression": "'largest is ' + string(variables.largest)",
        }],
    });
    let api = judged(&fields, &json!({})).await;
    api.config_map("small", &json!({"sizes": "1,2"})).await;
    let refused = api.post(CONFIG_MAPS, &config_map("a", &json!({"sizes": "1,20"}))).await;
    assert_eq!(
        why(&refused),
        "expression 'variables.largest < 10 || (variables.broken == 1)' resulted in error: \
         composited variable \"broken\" fails to evaluate: no such key: nothing"
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_evaluated_ends_as_the_failure_policy_says() {
    let fields = validation("object.data.nothing == 'x'");
    let api = judged(&fields, &json!({})).await;
    let refused = api.post(CONFIG_MAPS, &config_map("a", &json!({"k": "v"}))).await;
    assert_eq!(
        why(&refused),
        "expression 'object.data.nothing == 'x'' resulted in error: no such key: nothing"
    );
    assert_eq!(refused.json()["reason"], "Invalid");
    let mut fields = fields;
    fields["failurePolicy"] = "Ignore".into();
    let api = judged(&fields, &json!({})).await;
    api.config_map("a", &json!({"k": "v"})).await;
    // What does not hold is refused all the same.
    api.post(CONFIG_MAPS, &config_map("b", &json!({"nothing": "y"}))).await.refused(422);
}

#[tokio::test(start_paused = true)]
async fn an_expression_that_costs_too_much_fails() {
    let data = json!({"k": "x".repeat(2000)});
    // One evaluation may cost a million.
    let one = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, \
               [1,2,3,4,5,6,7,8,9,10].all(c, object.data.k.contains(object.data.k))))";
    let api = judged(&validation(one), &json!({})).await;
    let refused = api.post(CONFIG_MAPS, &config_map("a", &data)).await;
    assert_eq!(
        why(&refused),
        format!(
            "expression '{one}' resulted in error: operation cancelled: actual cost limit exceeded"
        )
    );
    // All of them together may cost ten times that.
    let some = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2].all(b, object.data.k.contains(object.data.k)))";
    let many: Vec<Value> = (0..15).map(|_| json!({"expression": some})).collect();
    let api = judged(&json!({"validations": many}), &json!({})).await;
    let refused = api.post(CONFIG_MAPS, &config_map("a", &data)).await;
    assert_eq!(
        why(&refused),
        "validation failed due to running out of cost budget, no further validation rules will be \
         run"
    );
    api.config_map("small", &json!({"k": "x"})).await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_counts_from_when_it_is_bound_until_it_is_not() {
    let api = Api::start().await;
    create(&api, &policy("Validating", "p", &validation("false"))).await.ok();
    api.config_map("unbound", &json!({})).await;
    let bound = super::binding("Validating", "b", "p", &json!({}));
    create(&api, &bound).await.ok();
    api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(422);
    // Another expression counts at once.
    let path = format!("{}/validatingadmissionpolicies/p", super::GROUP);
    api.merge(&path, &json!({"spec": validation("true")})).await.ok();
    api.config_map("a", &json!({})).await;
    api.merge(&path, &json!({"spec": validation("false")})).await.ok();
    api.delete(&format!("{}/validatingadmissionpolicybindings/b", super::GROUP)).await.ok();
    api.config_map("b", &json!({})).await;
    create(&api, &bound).await.ok();
    api.delete(&path).await.ok();
    api.config_map("c", &json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn of_several_policies_that_refuse_the_first_is_told() {
    let api = Api::start().await;
    for name in ["one", "two"] {
        judge(
            &api,
            name,
            &json!({"validations": [{"expression": "false", "message": name}]}),
            &json!({}),
        )
        .await;
    }
    let refused = api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await;
    assert_eq!(why(&refused), "one");
    assert_eq!(refused.json()["details"]["causes"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_version_of_kubernetes_example_holds() {
    let constraints = json!({"resourceRules": super::rules(&["apps"], &["deployments"], &["*"])});
    let mut fields = validation("object.spec.replicas <= 5");
    fields["matchConstraints"] = constraints;
    let api = judged(&fields, &json!({})).await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    api.post(path, &deployment("small", 5)).await.ok();
    let refused = api.post(path, &deployment("large", 6)).await;
    assert_eq!(
        refused.refused(422)["message"],
        "deployments.apps \"large\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' \
         denied request: failed expression: object.spec.replicas <= 5"
    );
}

#[tokio::test(start_paused = true)]
async fn variables_that_need_too_many_others_fail_and_nothing_else_does() {
    let mut variables = vec![json!({"name": "v0", "expression": "1"})];
    let next = |n: usize| json!({"name": format!("v{n}"), "expression": format!("((((variables.v{} + 1))))", n - 1)});
    variables.extend((1..1000).map(next));
    let fields = |last: usize| {
        json!({
            "variables": variables.clone(),
            "validations": [{"expression": format!("variables.v{last} == {}", last + 1)}],
        })
    };
    let api = judged(&fields(10), &json!({})).await;
    api.config_map("a", &json!({})).await;
    let api = judged(&fields(999), &json!({})).await;
    let refused = api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await;
    assert!(why(&refused).ends_with("too many variables need each other"), "{}", why(&refused));
    // More than a thousand are refused.
    variables.push(json!({"name": "last", "expression": "1"}));
    let many = json!({"variables": variables, "validations": [{"expression": "true"}]});
    let refused = create(&api, &policy("Validating", "many", &many)).await.refused(422);
    let told = refused["message"].as_str().unwrap();
    assert!(
        told.contains("spec.variables: Too many: 1001: must have at most 1000 items"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn of_two_variables_of_one_name_the_later_one_counts() {
    let fields = json!({
        "variables": [
            {"name": "a", "expression": "1"}, {"name": "a", "expression": "variables.a + 1"},
            {"name": "b", "expression": "1"}, {"name": "b", "expression": "2"},
        ],
        "validations": [{"expression": "variables.b == 2"}, {"expression": "variables.a == 2"}],
    });
    let api = judged(&fields, &json!({})).await;
    let refused = api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await;
    assert!(why(&refused).ends_with("composited variable \"a\" needs itself"), "{}", why(&refused));
}
