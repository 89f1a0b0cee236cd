//! What a binding makes of what does not hold: a refusal, a warning, or a note for those who audit.

use serde_json::{Value, json};
use steersman_apiserver::audit::{AuditRecord, Auditing, Policy};

use super::{judge, judged, validation, warnings, why};
use crate::api::{Api, CONFIG_MAPS, config_map};

fn audited(api: &Api) -> AuditRecord {
    let record = AuditRecord::default();
    let rules = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata";
    api.server.audit(Auditing::new(Policy::parse(rules).unwrap()).recorded(&record));
    record
}

/// What the last request was annotated with.
fn annotations(record: &AuditRecord) -> Value {
    let mut annotations = record.documents().last().unwrap()["annotations"].clone();
    if let Some(fields) = annotations.as_object_mut() {
        fields.retain(|key, _| !key.starts_with("authorization.k8s.io/"));
    }
    annotations
}

#[tokio::test(start_paused = true)]
async fn warnings_do_not_refuse() {
    let api = judged(&validation("false"), &json!({"validationActions": ["Warn"]})).await;
    let answer = api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await;
    answer.ok();
    assert_eq!(
        warnings(&answer),
        ["299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed \
          expression: false\""]
    );
}

#[tokio::test(start_paused = true)]
async fn failures_are_audited() {
    let fields = json!({"validations": [
        {"expression": "true"}, {"expression": "1 > 2", "message": "a < b"}, {"expression": "false"},
    ]});
    let api = judged(&fields, &json!({"validationActions": ["Audit", "Warn"]})).await;
    let record = audited(&api);
    let answer = api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await;
    answer.ok();
    assert_eq!(warnings(&answer).len(), 2);
    // The first stays.
    assert_eq!(
        annotations(&record),
        json!({"validation.policy.admission.k8s.io/validation_failure":
            "[{\"message\":\"a \\u003c b\",\"policy\":\"p\",\"binding\":\"b\",\"expressionIndex\":1,\
             \"validationActions\":[\"Audit\",\"Warn\"]}]"})
    );
}

#[tokio::test(start_paused = true)]
async fn a_policy_annotates_what_it_sees() {
    let fields = json!({"auditAnnotations": [
        {"key": "name", "valueExpression": "'it is ' + object.metadata.name"},
        {"key": "nothing", "valueExpression": "null"},
        {"key": "empty", "valueExpression": "' '"},
        {"key": "size", "valueExpression": "has(object.data) ? string(size(object.data)) : 'none'"},
    ]});
    let api = judged(&fields, &json!({})).await;
    let record = audited(&api);
    api.config_map("a", &json!({"a": "b"})).await;
    assert_eq!(annotations(&record), json!({"p/name": "it is a", "p/size": "1"}));
}

#[tokio::test(start_paused = true)]
async fn an_annotation_that_cannot_be_computed_refuses() {
    let mut fields = json!({"auditAnnotations": [
        {"key": "broken", "valueExpression": "string(object.nothing)"},
    ]});
    let api = judged(&fields, &json!({"validationActions": ["Warn"]})).await;
    let refused = api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await;
    assert_eq!(
        why(&refused),
        "expression 'string(object.nothing)' resulted in error: no such key: nothing"
    );
    fields["failurePolicy"] = "Ignore".into();
    let api = judged(&fields, &json!({})).await;
    api.config_map("a", &json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn what_several_bindings_say_is_told_together() {
    let api = Api::start().await;
    let fields = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": super::rules(&[""], &["secrets"], &["CREATE"])},
        "auditAnnotations": [{"key": "by", "valueExpression": "string(params.metadata.name)"}],
    });
    judge(
        &api,
        "p",
        &fields,
        &json!({"paramRef": {
            "selector": {}, "parameterNotFoundAction": "Deny",
        }}),
    )
    .await;
    for name in ["one", "two"] {
        api.config_map(name, &json!({})).await;
    }
    let record = audited(&api);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    api.post("/api/v1/namespaces/default/secrets", &secret).await.ok();
    assert_eq!(annotations(&record), json!({"p/by": "one, two"}));
}

#[tokio::test(start_paused = true)]
async fn what_policies_find_is_counted_and_timed() {
    let fields = json!({"validations": [
        {"expression": "true"}, {"expression": "1 > 2"}, {"expression": "object.data.a == ''"},
    ]});
    let api = judged(&fields, &json!({"validationActions": ["Audit", "Warn"]})).await;
    let mut ignored = validation("object.nothing == 1");
    ignored["failurePolicy"] = "Ignore".into();
    judge(&api, "ignored", &ignored, &json!({})).await;
    judge(&api, "strict", &validation("object.metadata.name != 'b'"), &json!({})).await;
    let mutations = json!({"mutations": [
        {"patchType": "JSONPatch", "jsonPatch": {"expression":
            "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]"}},
    ]});
    super::change(&api, "m", &mutations, &json!({})).await;
    api.config_map("a", &json!({})).await;
    assert_eq!(api.post(CONFIG_MAPS, &config_map("b", &json!({}))).await.code, 422);
    let page = String::from_utf8(api.get("/metrics").await.bytes.to_vec()).unwrap();
    let judged = |action: &str, policy: &str, binding: &str| {
        format!(
            "{{enforcement_action=\"{action}\",error_type=\"invalid_error\",policy=\"{policy}\",\
             policy_binding=\"{binding}\""
        )
    };
    for (labels, times) in [
        // Two that do not hold, for each of two objects; what does hold is not counted.
        (judged("audit", "p", "b"), 4),
        (judged("warn", "p", "b"), 4),
        (judged("allow", "ignored", "b-ignored"), 2),
        (judged("deny", "strict", "b-strict"), 1),
    ] {
        let name = "apiserver_validating_admission_policy_check";
        for line in [
            format!("{name}_total{labels}}} {times}\n"),
            format!("{name}_duration_seconds_count{labels}}} {times}\n"),
            format!("{name}_duration_seconds_bucket{labels},le=\"5e-07\"}} {times}\n"),
        ] {
            assert!(page.contains(&line), "{line}\n{page}");
        }
    }
    let labels = "{error_type=\"no_error\",policy=\"m\",policy_binding=\"b-m\"";
    let name = "apiserver_mutating_admission_policy_check";
    for line in [
        format!("{name}_total{labels}}} 2\n"),
        format!("{name}_duration_seconds_bucket{labels},le=\"1\"}} 2\n"),
    ] {
        assert!(page.contains(&line), "{line}\n{page}");
    }
}
