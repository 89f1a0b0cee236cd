//! Answers that are JSON but no `AdmissionReview`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::api::{Api, CONFIG_MAPS, config_map};
use crate::webhooks::{
    MUTATING, VALIDATING, configure, json_handler, message, webhook, webhook_with,
};

/// Lets the webhook answer with these fields of the review, or of its response.
fn answer(api: &Api, review: Value, response: Value) {
    let handler = json_handler(move |question| {
        let mut answer = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": question["request"]["uid"], "allowed": true},
        });
        let fields = response.as_object().unwrap().clone();
        answer["response"].as_object_mut().unwrap().extend(fields);
        answer.as_object_mut().unwrap().extend(review.as_object().unwrap().clone());
        answer
    });
    api.server.serve_webhooks("https://webhooks.test", handler);
}

#[tokio::test(start_paused = true)]
async fn a_value_of_a_wrong_type_is_a_failure_to_ask() {
    for path in [MUTATING, VALIDATING] {
        let api = Api::start().await;
        configure(&api, path, "a", &[webhook("odd")]).await;
        let ignored = || webhook_with("odd", &json!({"failurePolicy": "Ignore"}));
        let mut number = 0;
        for (review, response, why) in mistyped() {
            number += 1;
            let name = format!("a{number}");
            answer(&api, review, response);
            let refused = api.post(CONFIG_MAPS, &config_map(&name, &json!({}))).await.refused(500);
            assert_eq!(
                message(&refused),
                format!(
                    "Internal error occurred: failed calling webhook \"odd.example.com\": failed \
                     to call webhook: {why}"
                )
            );
            let configuration = format!("{path}/a");
            api.merge(&configuration, &json!({"webhooks": [ignored()]})).await.ok();
            api.config_map(&name, &json!({})).await;
            api.merge(&configuration, &json!({"webhooks": [webhook("odd")]})).await.ok();
        }
    }
}

/// Fields of a review, and of its response, with what is wrong with them.
fn mistyped() -> Vec<(Value, Value, String)> {
    let field = |found: &str, rest: &str| {
        format!("json: cannot unmarshal {found} into Go struct field {rest}")
    };
    let response = |value: Value, found: &str, rest: &str| {
        (json!({}), value, field(found, &format!("AdmissionResponse.response.{rest}")))
    };
    vec![
        response(json!({"allowed": "true"}), "string", "allowed of type bool"),
        response(json!({"uid": 5}), "number", "uid of type types.UID"),
        response(json!({"patch": {}}), "object", "patch of type []uint8"),
        response(json!({"patch": [{"op": "x"}]}), "object", "patch of type uint8"),
        response(json!({"patchType": {}}), "object", "patchType of type v1.PatchType"),
        response(json!({"warnings": "w"}), "string", "warnings of type []string"),
        response(json!({"warnings": [1]}), "number", "warnings of type string"),
        response(
            json!({"auditAnnotations": ["x"]}),
            "array",
            "auditAnnotations of type map[string]string",
        ),
        response(json!({"status": "no"}), "string", "status of type v1.Status"),
        (
            json!({}),
            json!({"allowed": false, "status": {"code": "403"}}),
            field("string", "Status.response.status.code of type int32"),
        ),
        (
            json!({"request": "zz"}),
            json!({}),
            field("string", "AdmissionReview.request of type v1.AdmissionRequest"),
        ),
        (
            json!({"response": []}),
            json!({}),
            field("array", "AdmissionReview.response of type v1.AdmissionResponse"),
        ),
        (
            json!({}),
            json!({"patch": "!!!", "patchType": "JSONPatch"}),
            "illegal base64 data at input byte 0".to_owned(),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_patch_may_be_broken_into_lines() {
    let api = Api::start().await;
    configure(&api, MUTATING, "a", &[webhook("lines")]).await;
    let patch = STANDARD.encode(r#"[{"op":"add","path":"/data","value":{"k":"v"}}]"#);
    let (first, rest) = patch.split_at(21);
    let patch = format!("{first}\r\n{rest}\n");
    answer(&api, json!({}), json!({"patch": patch, "patchType": "JSONPatch"}));
    assert_eq!(api.config_map("a", &json!({})).await["data"], json!({"k": "v"}));
}
