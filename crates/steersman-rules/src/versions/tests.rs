//! What is written in one version is found in the other, and comes back.

use serde_json::{Value, json};

use super::to_api_version;
use crate::schema::{builtin_kind, settle};

/// The object with all the fields that are always written.
fn settled(mut object: Value) -> Value {
    let text = |field: &str| object[field].as_str().unwrap().to_owned();
    let node = builtin_kind(&text("apiVersion"), &text("kind")).unwrap();
    settle(&node, &mut object);
    object
}

fn there_and_back(object: &Value, api_version: &str) -> (Value, Value) {
    let mut there = object.clone();
    to_api_version(&mut there, api_version);
    let mut back = there.clone();
    to_api_version(&mut back, object["apiVersion"].as_str().unwrap());
    (there, back)
}

#[test]
fn an_event_reads_the_same_in_both_groups() {
    let core = json!({
        "apiVersion": "v1", "kind": "Event", "message": "Started",
        "involvedObject": {"name": "web"}, "reportingComponent": "kubelet",
    });
    let (event, back) = there_and_back(&core, "events.k8s.io/v1");
    assert_eq!(event["note"], "Started");
    assert_eq!(event["regarding"]["name"], "web");
    assert_eq!(event["reportingController"], "kubelet");
    assert!(event.get("message").is_none());
    assert_eq!(event["deprecatedSource"], json!({}));
    assert!(event.get("reportingInstance").is_none());
    assert_eq!(back, settled(core));
}

#[test]
fn the_cpu_target_of_an_autoscaler_survives_both_versions() {
    let v1 = json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "spec": {"maxReplicas": 5, "targetCPUUtilizationPercentage": 70},
        "status": {"currentReplicas": 1},
    });
    let (v2, back) = there_and_back(&v1, "autoscaling/v2");
    assert_eq!(v2["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 70);
    assert_eq!(back, settled(v1));
}

#[test]
fn an_autoscaler_of_v1_without_a_target_aims_at_80_percent() {
    let v1 = json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "spec": {"maxReplicas": 5},
    });
    let (v2, _) = there_and_back(&v1, "autoscaling/v2");
    assert_eq!(v2["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 80);
}

fn rich() -> Value {
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "annotations": {"team": "shop"}},
        "spec": {
            "maxReplicas": 5,
            "behavior": {"scaleDown": {
                "stabilizationWindowSeconds": 60,
                "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}],
            }},
            "metrics": [
                {"type": "Resource", "resource": {
                    "name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"},
                }},
                {"type": "ContainerResource", "containerResource": {
                    "name": "cpu", "container": "main",
                    "target": {"type": "Utilization", "averageUtilization": 40},
                }},
                {"type": "Pods", "pods": {
                    "metric": {"name": "requests", "selector": {"matchLabels": {"a": "b"}}},
                    "target": {"type": "AverageValue", "averageValue": "10"},
                }},
                {"type": "Object", "object": {
                    "describedObject": {"kind": "Ingress", "name": "main"},
                    "metric": {"name": "hits"}, "target": {"type": "Value", "value": "2k"},
                }},
                {"type": "External", "external": {
                    "metric": {"name": "queue"},
                    "target": {"type": "AverageValue", "averageValue": "30"},
                }},
                {"type": "Resource", "resource": {
                    "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70},
                }},
            ],
        },
        "status": {
            "currentReplicas": 2,
            "conditions": [{"type": "AbleToScale", "status": "True"}],
            "currentMetrics": [{"type": "Resource", "resource": {
                "name": "cpu", "current": {"averageUtilization": 12, "averageValue": "120m"},
            }}],
        },
    })
}

#[test]
fn what_v1_does_not_know_comes_back_from_its_annotations() {
    let (v1, back) = there_and_back(&rich(), "autoscaling/v1");
    let spec = json!({
        "maxReplicas": 5, "targetCPUUtilizationPercentage": 70,
        "scaleTargetRef": {"kind": "", "name": ""},
    });
    assert_eq!(v1["spec"], spec);
    let status = json!({
        "currentReplicas": 2, "currentCPUUtilizationPercentage": 12, "desiredReplicas": 0,
    });
    assert_eq!(v1["status"], status);
    assert_eq!(back, settled(rich()));
}

#[test]
fn the_annotations_of_v1_are_those_that_clients_know() {
    let (v1, _) = there_and_back(&rich(), "autoscaling/v1");
    let annotation = |name: &str| -> Value {
        let key = format!("autoscaling.alpha.kubernetes.io/{name}");
        serde_json::from_str(v1["metadata"]["annotations"][key].as_str().unwrap()).unwrap()
    };
    let metrics = annotation("metrics");
    assert_eq!(metrics.as_array().unwrap().len(), 5);
    assert_eq!(metrics[0]["resource"], json!({"name": "memory", "targetAverageValue": "1Gi"}));
    assert_eq!(metrics[3]["object"]["target"]["name"], "main");
    assert_eq!(metrics[3]["object"]["targetValue"], "2k");
    assert_eq!(annotation("behavior")["ScaleDown"]["Policies"][0]["PeriodSeconds"], 15);
    assert_eq!(annotation("conditions")[0]["type"], "AbleToScale");
    assert_eq!(annotation("current-metrics")[0]["resource"]["currentAverageValue"], "120m");
    assert_eq!(v1["metadata"]["annotations"]["team"], "shop");
}

#[test]
fn the_annotations_of_v1_are_written_as_go_writes_its_types() {
    let (v1, _) = there_and_back(&rich(), "autoscaling/v1");
    for (name, expected) in [
        ("conditions", r#"[{"type":"AbleToScale","status":"True","lastTransitionTime":null}]"#),
        (
            "current-metrics",
            "[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\
             \"currentAverageUtilization\":12,\"currentAverageValue\":\"120m\"}}]",
        ),
        (
            "behavior",
            "{\"ScaleUp\":null,\"ScaleDown\":{\"StabilizationWindowSeconds\":60,\
             \"SelectPolicy\":null,\"Policies\":[{\"Type\":\"Pods\",\"Value\":1,\
             \"PeriodSeconds\":15}],\"Tolerance\":null}}",
        ),
        (
            "metrics",
            "[{\"type\":\"Resource\",\"resource\":{\"name\":\"memory\",\
             \"targetAverageValue\":\"1Gi\"}},\
             {\"type\":\"ContainerResource\",\"containerResource\":{\"name\":\"cpu\",\
             \"targetAverageUtilization\":40,\"container\":\"main\"}},\
             {\"type\":\"Pods\",\"pods\":{\"metricName\":\"requests\",\
             \"targetAverageValue\":\"10\",\"selector\":{\"matchLabels\":{\"a\":\"b\"}}}},\
             {\"type\":\"Object\",\"object\":{\"target\":{\"kind\":\"Ingress\",\
             \"name\":\"main\"},\"metricName\":\"hits\",\"targetValue\":\"2k\"}},\
             {\"type\":\"External\",\"external\":{\"metricName\":\"queue\",\
             \"targetAverageValue\":\"30\"}}]",
        ),
    ] {
        let key = format!("autoscaling.alpha.kubernetes.io/{name}");
        assert_eq!(v1["metadata"]["annotations"][key], expected, "{name}");
    }
}

#[test]
fn annotations_that_cannot_be_read_count_for_nothing() {
    let v1 = json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "annotations": {
            "autoscaling.alpha.kubernetes.io/metrics": "[{",
            "autoscaling.alpha.kubernetes.io/behavior": "7",
            "autoscaling.alpha.kubernetes.io/current-metrics": "[3, {\"resource\": {}}]",
        }},
        "spec": {"maxReplicas": 5, "targetCPUUtilizationPercentage": 70},
    });
    let (v2, _) = there_and_back(&v1, "autoscaling/v2");
    assert_eq!(v2["spec"]["metrics"].as_array().unwrap().len(), 1);
    assert_eq!(v2["metadata"], json!({"name": "web"}));
}

#[test]
fn stable_versions_come_before_beta_before_alpha_before_other_names() {
    let mut versions = ["foo", "bar", "v1alpha1", "v2", "v1", "v1beta1", "v10", "v1beta2"];
    versions.sort_by(|a, b| super::order(b, a));
    assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo"]);
}
