//! What typed clients could not read is refused, or brought into a form that they can.

use serde_json::{Value, json};

use crate::api::{Api, CONFIG_MAPS, config_map, deployment, pod};
use crate::crd::{DEFINITIONS, WIDGETS, definition, widget};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test(start_paused = true)]
async fn a_scale_is_typed_for_built_in_and_custom_resources() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, &deployment("web", 2)).await.ok();
    api.post(DEFINITIONS, &definition()).await.ok();
    api.post(WIDGETS, &widget("web", 2)).await.ok();
    let negative = "spec.replicas: Invalid value: -1: must be greater than or equal to 0";
    let where_stored = ".spec.size: Invalid value: -1: should be a non-negative integer";
    for (object, why) in [(DEPLOYMENTS, negative), (WIDGETS, where_stored)] {
        let path = format!("{object}/web/scale");
        for replicas in [json!(2_147_483_648_i64), json!("3"), json!(1.5)] {
            let scale = json!({"metadata": {"name": "web"}, "spec": {"replicas": replicas}});
            api.put(&path, &scale).await.refused(400);
            api.merge(&path, &json!({"spec": {"replicas": replicas}})).await.refused(422);
        }
        let status = api.merge(&path, &json!({"spec": {"replicas": -1}})).await.refused(422);
        let message = status["message"].as_str().unwrap();
        assert!(message.contains(why), "{message}");
        api.put(&path, &json!({"spec": [], "metadata": {}})).await.refused(400);
    }
}

#[tokio::test(start_paused = true)]
async fn bindings_evictions_and_delete_options_are_typed() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await.ok();
    let path = format!("{PODS}/p/binding");
    for part in ["labels", "annotations"] {
        let binding = json!({"metadata": {"name": "p", part: {"a": 1}}, "target": {"name": "n"}});
        api.post(&path, &binding).await.refused(400);
    }
    let grace = json!({"gracePeriodSeconds": "abc"});
    api.delete_with(&format!("{PODS}/p"), &grace).await.refused(400);
    let path = format!("{PODS}/p/eviction");
    api.post(&path, &json!({"metadata": {"name": "p"}, "deleteOptions": grace})).await.refused(400);
    api.post(&path, &json!({"metadata": {"name": "other"}})).await.refused(400);
    api.get(&format!("{PODS}/p")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn bytes_are_base64_and_ports_fit() {
    let api = Api::start().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = |text: &str| json!({"metadata": {"name": "s"}, "data": {"k": text}});
    for (wrong, byte) in [("%%%", 0), ("YQ", 0), ("YQ=", 3), ("_-_-", 0), ("aGVs\nbG8=x", 9)] {
        let status = api.post(secrets, &secret(wrong)).await.refused(400);
        let message = status["message"].as_str().unwrap();
        let why = format!("illegal base64 data at input byte {byte}");
        assert!(message.ends_with(&why), "{message}");
    }
    let created = api.post(secrets, &secret("aGVs\nbG8=")).await.ok();
    assert_eq!(created["data"]["k"], "aGVsbG8=");
    // Go passes over bits that belong to no byte, and writes none.
    let changed = api.put(&format!("{secrets}/s"), &secret("aGVsbG9=")).await.ok();
    assert_eq!(changed["data"]["k"], "aGVsbG8=");
    assert_eq!(changed["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
    let service = json!({"metadata": {"name": "s"}, "spec": {
        "ports": [{"port": 80, "targetPort": 2_147_483_648_i64}],
    }});
    api.post("/api/v1/namespaces/default/services", &service).await.refused(400);
}

#[tokio::test(start_paused = true)]
async fn times_are_rfc_3339_and_kept_in_utc() {
    let api = Api::start().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = |time: &str| json!({"metadata": {"name": "l"}, "spec": {"renewTime": time}});
    for wrong in ["2025-01-01t00:00:00Z", "2025-01-01T00:00:60Z", "2025-01-01 00:00:00Z", "now"] {
        api.post(leases, &lease(wrong)).await.refused(400);
    }
    let created = api.post(leases, &lease("2025-01-01T02:00:00.5+02:00")).await.ok();
    assert_eq!(created["spec"]["renewTime"], "2025-01-01T00:00:00.500000Z");
    let mut object = pod("p");
    object["status"] = json!({});
    api.post(PODS, &object).await.ok();
    let started = json!({"status": {"startTime": "2025-01-01T02:00:00.5+02:00"}});
    let changed = api.merge(&format!("{PODS}/p/status"), &started).await.ok();
    assert_eq!(changed["status"]["startTime"], "2025-01-01T00:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn nulls_in_maps_and_lists_are_zeros() {
    let api = Api::start().await;
    let mut object = config_map("a", &json!({"k": null}));
    object["metadata"]["annotations"] = json!({"note": null});
    let created = api.post(CONFIG_MAPS, &object).await.ok();
    assert_eq!(created["data"], json!({"k": ""}));
    assert_eq!(created["metadata"]["annotations"], json!({"note": ""}));
    let mut object = pod("p");
    object["spec"]["containers"] = json!([null]);
    api.post(PODS, &object).await.refused(422);
}

#[tokio::test(start_paused = true)]
async fn only_an_apply_is_forced_and_managers_have_decent_names() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let status = api.merge(&format!("{path}?force=true"), &json!({})).await.refused(422);
    assert_eq!(
        status["message"],
        "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch"
    );
    for manager in ["x".repeat(129), "a%07b".to_owned()] {
        let change = json!({"data": {"k": "v"}});
        api.merge(&format!("{path}?fieldManager={manager}"), &change).await.refused(422);
    }
    // Every character that cannot be seen is told: here a soft hyphen, a bell and an odd space.
    let odd = format!("{path}?fieldManager=a%C2%ADb%07%C3%A9%C2%A0");
    let status = api.merge(&odd, &json!({})).await.refused(422);
    let causes = status["details"]["causes"].as_array().unwrap();
    let told: Vec<_> = causes.iter().map(|cause| cause["message"].as_str().unwrap()).collect();
    assert_eq!(told.len(), 3, "{status}");
    for (message, end) in told.iter().zip([
        "invalid character U+00AD (at position 1)",
        "invalid character U+0007 (at position 4)",
        "invalid character U+00A0 (at position 7)",
    ]) {
        assert!(message.ends_with(end), "{message}");
    }
    api.merge(&format!("{path}?fieldManager=%C3%A9t%C3%A9%20%22"), &json!({})).await.ok();
}

#[tokio::test(start_paused = true)]
async fn finalizers_of_built_in_kinds_are_qualified_or_standard() {
    let api = Api::start().await;
    let with = |finalizer: &str| {
        let mut object = config_map("a", &json!({}));
        object["metadata"]["finalizers"] = json!([finalizer]);
        object
    };
    let status = api.post(CONFIG_MAPS, &with("hold")).await.refused(422);
    assert_eq!(
        status["message"],
        "ConfigMap \"a\" is invalid: metadata.finalizers[0]: Invalid value: \"hold\": name is neither a standard finalizer name nor is it fully qualified"
    );
    api.post(CONFIG_MAPS, &with("orphan")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn amounts_are_not_negative_and_percentages_not_more_than_all() {
    let api = Api::start().await;
    let mut object = pod("p");
    object["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "-1"}, "limits": {"memory": "1e2147483647"}});
    let status = api.post(PODS, &object).await.refused(422);
    let message = status["message"].as_str().unwrap();
    let why = "spec.containers[0].resources.requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0";
    assert!(message.contains(why), "{message}");

    let mut object: Value = deployment("web", 1);
    object["spec"]["strategy"] = json!({"rollingUpdate": {"maxUnavailable": "101%"}});
    let status = api.post(DEPLOYMENTS, &object).await.refused(422);
    assert!(status["message"].as_str().unwrap().contains("must not be greater than 100%"));
}

#[tokio::test(start_paused = true)]
async fn events_do_not_come_as_yaml() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}?watch=1");
    assert_eq!(api.get_as(&path, "application/yaml").await.code, 406);
    api.watch_as(&path, "application/yaml, application/json;q=0.5").await;
}
