//! Autoscalers: one stored object, served as `autoscaling/v1` and `v2`.

use serde_json::{Value, json};

use crate::api::Api;

const V1: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
const V2: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";

fn autoscaler(name: &str, spec: &Value) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let mut object = json!({"metadata": {"name": name}, "spec": spec});
    object["spec"]["scaleTargetRef"] = target;
    object["spec"]["maxReplicas"] = 5.into();
    object
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_of_v1_is_read_as_v2_and_back() {
    let api = Api::start().await;
    let created = autoscaler("web", &json!({"targetCPUUtilizationPercentage": 70}));
    let created = api.post(V1, &created).await.ok();
    assert_eq!(created["apiVersion"], "autoscaling/v1");
    let v2 = api.get(&format!("{V2}/web")).await.ok();
    assert_eq!(v2["apiVersion"], "autoscaling/v2");
    assert_eq!(v2["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 70);
    assert_eq!(v2["metadata"]["uid"], created["metadata"]["uid"]);
    assert_eq!(api.get(&format!("{V1}/web")).await.ok(), created);
    let list = api.get(V2).await.ok();
    assert_eq!(list["apiVersion"], "autoscaling/v2");
    assert_eq!(list["items"][0]["spec"], v2["spec"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_target_both_versions_aim_at_80_percent() {
    let api = Api::start().await;
    let v1 = api.post(V1, &autoscaler("one", &json!({}))).await.ok();
    assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 80);
    api.post(V2, &autoscaler("two", &json!({}))).await.ok();
    let v1 = api.get(&format!("{V1}/two")).await.ok();
    assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 80);
    assert!(v1["spec"].get("metrics").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_update_through_v1_keeps_what_only_v2_knows() {
    let api = Api::start().await;
    let memory = json!({"type": "Resource", "resource": {
        "name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"},
    }});
    let behavior = json!({"scaleDown": {"stabilizationWindowSeconds": 60}});
    let object = autoscaler("web", &json!({"metrics": [memory], "behavior": behavior}));
    let before = api.post(V2, &object).await.ok();
    let mut v1 = api.get(&format!("{V1}/web")).await.ok();
    let kept = &v1["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"];
    let kept: Value = serde_json::from_str(kept.as_str().unwrap()).unwrap();
    let memory = json!({"name": "memory", "targetAverageValue": "1Gi"});
    assert_eq!(kept, json!([{"type": "Resource", "resource": memory}]));
    v1["spec"]["maxReplicas"] = 9.into();
    v1["spec"]["targetCPUUtilizationPercentage"] = 50.into();
    api.put(&format!("{V1}/web"), &v1).await.ok();
    let after = api.get(&format!("{V2}/web")).await.ok();
    assert_eq!(after["spec"]["maxReplicas"], 9);
    assert_eq!(after["spec"]["behavior"], before["spec"]["behavior"]);
    assert_eq!(after["spec"]["metrics"][0], before["spec"]["metrics"][0]);
    assert_eq!(after["spec"]["metrics"][1]["resource"]["target"]["averageUtilization"], 50);
    assert!(after["metadata"].get("annotations").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_wrong_target_is_refused_in_the_words_of_v2() {
    let api = Api::start().await;
    let wrong = autoscaler("web", &json!({"targetCPUUtilizationPercentage": 0}));
    let status = api.post(V1, &wrong).await.refused(422);
    assert_eq!(
        status["details"]["causes"][0]["field"],
        "spec.metrics[0].resource.target.averageUtilization"
    );
}

#[tokio::test(start_paused = true)]
async fn an_annotation_of_the_wrong_shape_breaks_no_reader_of_v2() {
    let api = Api::start().await;
    let mut object = autoscaler("web", &json!({"targetCPUUtilizationPercentage": 70}));
    object["metadata"]["annotations"] = json!({
        "autoscaling.alpha.kubernetes.io/metrics":
            r#"[{"type":"Pods","pods":{"metricName":{},"selector":{"matchLabels":3}}}]"#,
    });
    api.post(V1, &object).await.ok();
    let v2 = api.get(&format!("{V2}/web")).await.ok();
    assert_eq!(v2["spec"]["metrics"].as_array().unwrap().len(), 1);
    assert_eq!(v2["spec"]["metrics"][0]["type"], "Resource");
}
