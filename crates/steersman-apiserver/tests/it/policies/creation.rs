//! What is checked when a policy is written.

use serde_json::{Value, json};

use super::{GROUP, create, policy, validation};
use crate::api::Api;

/// The causes of a refusal, as `field: message`.
fn causes(refusal: &Value) -> Vec<String> {
    let causes = refusal["details"]["causes"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    causes.iter().map(|c| format!("{}: {}", text(&c["field"]), text(&c["message"]))).collect()
}

#[tokio::test(start_paused = true)]
async fn expressions_must_compile() {
    let api = Api::start().await;
    let fields = json!({
        "matchConditions": [{"name": "a", "expression": "params.x"}],
        "variables": [
            {"name": "one", "expression": "variables.two"}, {"name": "two", "expression": "1"},
        ],
        "validations": [
            {"expression": "object.", "messageExpression": "authorizer"},
            {"expression": "variables.two == true"},
        ],
        "auditAnnotations": [{"key": "a", "valueExpression": "1"}],
    });
    let refused = create(&api, &policy("Validating", "p", &fields)).await.refused(422);
    let told = causes(&refused);
    let expected = [
        "spec.matchConditions[0].expression: Invalid value: \"params.x\": compilation failed: ERROR: \
          <input>:1:1: undeclared reference to 'params' (in container '')",
        "spec.variables[0].expression: Invalid value: \"variables.two\": compilation failed: ERROR: \
         <input>:1:10: undefined field 'two'",
        "spec.validations[0].expression: Invalid value: \"object.\": compilation failed: ERROR: \
         <input>:1:8: Syntax error",
        "spec.validations[0].messageExpression: Invalid value: \"authorizer\": compilation failed: \
         ERROR: <input>:1:1: undeclared reference to 'authorizer' (in container '')",
        "spec.validations[1].expression: Invalid value: \"variables.two == true\": compilation failed: \
         ERROR: <input>:1:15: found no matching overload for '_==_' applied to '(int, bool)'",
        "spec.auditAnnotations[0].valueExpression: Invalid value: \"1\": must evaluate to one of \
         [string null_type] but got int",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told}\n{expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_is_checked_as_well() {
    let api = Api::start().await;
    create(&api, &policy("Validating", "p", &validation("true"))).await.ok();
    let path = format!("{GROUP}/validatingadmissionpolicies/p");
    let refused = api.merge(&path, &json!({"spec": validation("1")})).await.refused(422);
    assert_eq!(
        causes(&refused),
        ["spec.validations[0].expression: Invalid value: \"1\": must evaluate to bool but got int"]
    );
}

#[tokio::test(start_paused = true)]
async fn changes_of_objects_must_compile() {
    let api = Api::start().await;
    let fields = json!({"mutations": [
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object.spec{}"}},
        {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 1}]"}},
        {"patchType": "JSONPatch", "jsonPatch": {"expression": "object"}},
    ]});
    let refused = create(&api, &policy("Mutating", "p", &fields)).await.refused(422);
    let told = causes(&refused);
    let expected = [
        "spec.mutations[0].applyConfiguration.expression: Invalid value: \"Object.spec{}\": must \
         evaluate to Object but got Object.spec",
        "spec.mutations[1].jsonPatch.expression: Invalid value: \"[JSONPatch{op: 1}]\": compilation \
         failed: ERROR: <input>:1:14: expected type of field 'op' is 'string' but provided type is \
         'int'",
        "spec.mutations[2].jsonPatch.expression: Invalid value: \"object\": must evaluate to \
         list(JSONPatch) but got dyn",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told}\n{expected}");
    }
}
