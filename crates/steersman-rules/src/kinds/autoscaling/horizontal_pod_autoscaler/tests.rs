use super::*;
use crate::field::messages;

fn autoscaler() -> Value {
    let mut autoscaler = json!({
        "apiVersion": "autoscaling/v2",
        "metadata": {"name": "web"},
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "behavior": {},
        },
    });
    RULES.fill_in(&mut autoscaler);
    autoscaler
}

fn complaints(key: &str, value: &Value) -> Vec<String> {
    let mut autoscaler = autoscaler();
    autoscaler["spec"][key] = value.clone();
    messages(&RULES.validate_create(&autoscaler))
}

#[test]
fn an_autoscaler_is_filled_in() {
    let spec = &autoscaler()["spec"];
    assert_eq!(spec["minReplicas"], 1);
    assert_eq!(
        spec["metrics"],
        json!([{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
        }}])
    );
    assert_eq!(spec["behavior"]["scaleUp"]["policies"].as_array().map(Vec::len), Some(2));
    assert_eq!(spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"], Value::Null);
    assert!(RULES.validate_create(&autoscaler()).is_empty());
}

const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// An autoscaler of `v1` with these annotations.
fn annotated(annotations: &Value) -> Value {
    json!({
        "apiVersion": OLDER, "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "annotations": annotations},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}},
    })
}

#[test]
fn annotations_between_the_versions_are_written_anew_in_v1_and_never_in_v2() {
    let memory = r#"[ {"resource": {"targetAverageValue": "1Gi", "name": "memory"},
                       "type": "Resource"} ]"#;
    let tolerance = "autoscaling.alpha.kubernetes.io/scale-up-tolerance";
    let mut v1 = annotated(&json!({METRICS: memory, tolerance: "1", "a": "b"}));
    RULES.fill_in(&mut v1);
    let written =
        r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]"#;
    assert_eq!(v1["metadata"]["annotations"], json!({METRICS: written, "a": "b"}));
    assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], Value::Null);
    let mut unreadable = annotated(&json!({METRICS: "[{", "a": "b"}));
    RULES.fill_in(&mut unreadable);
    assert_eq!(unreadable["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(unreadable["spec"]["targetCPUUtilizationPercentage"], 80);
    let mut v2 = autoscaler();
    v2["metadata"]["annotations"] = json!({METRICS: memory, "a": "b"});
    RULES.fill_in(&mut v2);
    assert_eq!(v2["metadata"]["annotations"], json!({"a": "b"}));
}

#[test]
fn annotations_of_v1_are_spec_or_status() {
    let [one, other] = [
        r#"[{"type":"Pods","pods":{"metricName":"a","targetAverageValue":"1"}}]"#,
        r#"[{"type":"Pods","pods":{"metricName":"b","targetAverageValue":"1"}}]"#,
    ];
    let [is, was] = [r#"[{"type":"A","status":"True"}]"#, r#"[{"type":"B","status":"True"}]"#];
    let mut new = annotated(&json!({METRICS: one, CONDITIONS: is}));
    RULES.prepare_create(&mut new);
    assert_eq!(new["metadata"]["annotations"], json!({METRICS: one}));
    let old = annotated(&json!({METRICS: one, CONDITIONS: was}));
    let sent = annotated(&json!({METRICS: other, CONDITIONS: is}));
    let mut updated = sent.clone();
    RULES.prepare_update(&old, &mut updated);
    assert_eq!(updated["metadata"]["annotations"], json!({METRICS: other, CONDITIONS: was}));
    let mut reported = sent;
    RULES.prepare_status_update(&old, &mut reported);
    assert_eq!(reported["metadata"]["annotations"], json!({METRICS: one, CONDITIONS: is}));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn mistakes_of_an_autoscaler() {
    let metric = |metric: Value| json!([metric]);
    let rules = |key: &str, value: Value| {
        let mut rules = json!({"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1}]});
        rules[key] = value;
        json!({"scaleUp": rules})
    };
    let cases: Vec<(&str, Value, Vec<&str>)> = vec![
        (
            "minReplicas",
            json!(0),
            vec![
                "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
                "spec.metrics: Forbidden: must specify at least one Object or External metric to \
             support scaling to zero replicas",
            ],
        ),
        (
            "maxReplicas",
            json!(0),
            vec![
                "spec.maxReplicas: Required value: must be set and greater than 0",
                "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
            ],
        ),
        (
            "scaleTargetRef",
            json!({"apiVersion": "v1", "kind": "Deployment", "name": "a/b"}),
            vec![
                "spec.scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/'",
                "spec.scaleTargetRef.apiVersion: Invalid value: \"v1\": apiVersion must specify API \
             group",
            ],
        ),
        (
            "scaleTargetRef",
            json!({"apiVersion": "v1", "kind": "ReplicationController", "name": "a"}),
            vec![],
        ),
        (
            "metrics",
            metric(json!({"type": "Pods"})),
            vec![
                "spec.metrics[0].pods: Required value: must populate information for the given metric \
             source",
            ],
        ),
        (
            "metrics",
            metric(json!({"type": "Pods", "pods": {
                "metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "0"},
            }})),
            vec![
                "spec.metrics[0].pods.target.averageValue: Invalid value: \"0\": must be positive",
            ],
        ),
        (
            "metrics",
            metric(json!({"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Percent"},
            }})),
            vec![
                "spec.metrics[0].resource.target.type: Invalid value: \"Percent\": must be either \
                 Utilization, Value, or AverageValue",
                "spec.metrics[0].resource.target.averageUtilization: Required value: must set \
                 either a target raw value or a target utilization",
            ],
        ),
        (
            "metrics",
            metric(json!({"type": "External", "external": {
                "metric": {"name": ""},
                "target": {"type": "Value", "value": "1", "averageValue": "1"},
            }})),
            vec![
                "spec.metrics[0].external.metric.name: Required value: must specify a metric name",
                "spec.metrics[0].external.target.value: Forbidden: may not set both a target \
                 value for metric and a per-pod target",
            ],
        ),
        (
            "metrics",
            metric(json!({"type": "ContainerResource", "containerResource": {
                "name": "gpus", "container": "",
                "target": {"type": "Utilization", "averageUtilization": 0},
            }})),
            vec![
                "spec.metrics[0].containerResource.name: Invalid value: \"gpus\": must be a \
                 standard resource type or fully qualified",
                "spec.metrics[0].containerResource.name: Invalid value: \"gpus\": must be a \
                 standard resource for containers",
                "spec.metrics[0].containerResource.container: Required value: must specify a \
                 container",
                "spec.metrics[0].containerResource.target.averageUtilization: Invalid value: 0: \
                 must be greater than 0",
            ],
        ),
        (
            "behavior",
            rules("stabilizationWindowSeconds", json!(3601)),
            vec![
                "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less \
             than or equal to 3600",
            ],
        ),
        (
            "behavior",
            rules("selectPolicy", json!("Mid")),
            vec![
                "spec.behavior.scaleUp.selectPolicy: Unsupported value: \"Mid\": supported values: \
             \"Disabled\", \"Max\", \"Min\"",
            ],
        ),
        (
            "behavior",
            rules("policies", json!([])),
            vec![
                "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy",
            ],
        ),
        (
            "behavior",
            rules("policies", json!([{"type": "Pods", "value": 0, "periodSeconds": 1801}])),
            vec![
                "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than \
                 zero",
                "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be \
                 less than or equal to 1800",
            ],
        ),
    ];
    for (key, value, expected) in cases {
        assert_eq!(complaints(key, &value), expected, "{key} = {value}");
    }
}
