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
