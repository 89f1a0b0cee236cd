//! What a `resourceVersion` in a body means: a number, of which zero stands for none.

use serde_json::{Value, json};

use crate::api::{Api, CONFIG_MAPS, config_map, version};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn versioned(mut object: Value, version: &str) -> Value {
    object["metadata"]["resourceVersion"] = version.into();
    object
}

fn lease() -> Value {
    json!({"metadata": {"name": "x"}, "spec": {"holderIdentity": "me"}})
}

fn budget() -> Value {
    json!({"metadata": {"name": "x"}, "spec": {"minAvailable": 1}})
}

/// What an update with a version is answered: a code, and how its message begins and ends.
async fn check(api: &Api, collection: &str, object: &Value, text: &str, expected: (u16, &str)) {
    let path = format!("{collection}/x");
    let (code, message) = expected;
    let patch = json!({"metadata": {"resourceVersion": text}});
    for (by, answer) in [
        ("put", api.put(&path, &versioned(object.clone(), text)).await),
        ("merge patch", api.merge(&path, &patch).await),
    ] {
        assert_eq!(answer.code, code, "{by} of {path} with {text:?}: {answer:?}");
        if code >= 400 {
            assert_eq!(answer.json()["message"], message, "{by} of {path} with {text:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn zero_is_no_version_and_what_is_no_number_is_an_error() {
    let api = Api::start().await;
    let config_map = config_map("x", &json!({"k": "1"}));
    let created = api.post(CONFIG_MAPS, &config_map).await.ok();
    let current = version(&created).to_string();
    let padded = format!("0{current}");
    let stale = "Operation cannot be fulfilled on configmaps \"x\": the object has been modified; \
                 please apply your changes to the latest version and try again";
    let odd = |text: &str, why: &str| format!("strconv.ParseUint: parsing \"{text}\": {why}");
    let huge = "99999999999999999999";
    for (text, code, message) in [
        ("", 200, String::new()),
        ("0", 200, String::new()),
        ("00", 200, String::new()),
        (&current, 200, String::new()),
        (&padded, 200, String::new()),
        ("1", 409, stale.to_owned()),
        ("abc", 500, odd("abc", "invalid syntax")),
        ("-1", 500, odd("-1", "invalid syntax")),
        ("+1", 500, odd("+1", "invalid syntax")),
        ("1.0", 500, odd("1.0", "invalid syntax")),
        (" 1", 500, odd(" 1", "invalid syntax")),
        (huge, 500, odd(huge, "value out of range")),
    ] {
        check(&api, CONFIG_MAPS, &config_map, text, (code, &message)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn kinds_that_want_a_version_do_not_take_zero_for_one() {
    let api = Api::start().await;
    api.post(LEASES, &lease()).await.ok();
    api.post(BUDGETS, &budget()).await.ok();
    let why =
        "is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    for text in ["", "0", "00"] {
        let expected = format!("leases.coordination.k8s.io \"x\" {why}");
        check(&api, LEASES, &lease(), text, (422, &expected)).await;
        let expected = format!("poddisruptionbudgets.policy \"x\" {why}");
        check(&api, BUDGETS, &budget(), text, (422, &expected)).await;
    }
    let status = api.put(&format!("{LEASES}/x"), &lease()).await.refused(422);
    assert_eq!(status["details"]["kind"], "leases");
    let odd = "strconv.ParseUint: parsing \"abc\": invalid syntax";
    check(&api, LEASES, &lease(), "abc", (500, odd)).await;
    let status = api.put(&format!("{LEASES}/x"), &versioned(lease(), "abc")).await.refused(500);
    assert!(status.get("reason").is_none_or(|reason| reason == ""), "{status}");
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_names_a_version_is_for_that_version() {
    let api = Api::start().await;
    let path = format!("{LEASES}/x?fieldManager=me");
    let apply = "application/apply-patch+yaml";
    let configuration = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x"},
        "spec": {"holderIdentity": "me"},
    });
    let created = api.patch(&path, apply, &configuration).await.ok();
    api.patch(&path, apply, &configuration).await.ok();
    let current = version(&created).to_string();
    api.patch(&path, apply, &versioned(configuration.clone(), &current)).await.ok();
    api.patch(&path, apply, &versioned(configuration.clone(), "1")).await.refused(409);
    api.patch(&path, apply, &versioned(configuration, "abc")).await.refused(500);
}

#[tokio::test(start_paused = true)]
async fn a_new_object_has_no_version_unless_nothing_is_written() {
    let api = Api::start().await;
    let object = |text: &str| versioned(config_map("x", &json!({})), text);
    let wrong = versioned(config_map("x", &json!({"a/b": "c"})), "5");
    api.post(CONFIG_MAPS, &wrong).await.refused(422);
    api.post(&format!("{CONFIG_MAPS}?dryRun=All"), &object("5")).await.ok();
    let status = api.post(CONFIG_MAPS, &object("5")).await.refused(500);
    assert_eq!(status["message"], "resourceVersion should not be set on objects to be created");
    // Zero is none, and what is no number is not looked at.
    for text in ["0", "00", "abc"] {
        api.post(CONFIG_MAPS, &object(text)).await.ok();
        api.delete(&format!("{CONFIG_MAPS}/x")).await.ok();
    }
}

#[tokio::test(start_paused = true)]
async fn another_uid_is_a_conflict_for_a_put_and_a_mistake_in_a_patch() {
    let api = Api::start().await;
    let mut object = api.config_map("x", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/x");
    object["metadata"]["uid"] = "other".into();
    let status = api.put(&path, &object).await.refused(409);
    assert!(status["message"].as_str().unwrap().contains("UID in precondition: other"), "{status}");
    let patch = json!({"metadata": {"uid": "other"}});
    for content_type in ["application/merge-patch+json", "application/strategic-merge-patch+json"] {
        let status = api.patch(&path, content_type, &patch).await.refused(422);
        assert_eq!(
            status["message"],
            "ConfigMap \"x\" is invalid: metadata.uid: Invalid value: \"other\": field is immutable"
        );
    }
}
