mod columns;

use serde_json::json;

use super::*;
use crate::{kinds, resource::Resource};

const NOW: &str = "2026-01-02T00:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn resource(plural: &str) -> Resource {
    kinds::all().into_iter().find(|r| r.plural == plural).unwrap()
}

/// The cells of one object as kubectl would print them, wide ones included.
fn row(plural: &str, object: &Value) -> Vec<String> {
    let objects = std::slice::from_ref(object);
    let table = render(&resource(plural).columns, objects, json!({}), IncludeObject::None, now());
    cells::items(&table["rows"][0]["cells"]).iter().map(cells::printed).collect()
}

fn status_of(pod: &Value) -> [String; 3] {
    let row = row("pods", pod);
    [row[1].clone(), row[2].clone(), row[3].clone()]
}

#[test]
fn durations_are_short_words() {
    const DAY: i64 = 24 * 3600;
    for (seconds, words) in [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (600, "10m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 300, "3h5m"),
        (8 * 3600 + 300, "8h"),
        (2 * DAY, "2d"),
        (2 * DAY + 3 * 3600, "2d3h"),
        (9 * DAY + 3600, "9d"),
        (365 * 3 * DAY, "3y"),
        (365 * 3 * DAY + 40 * DAY, "3y40d"),
        (365 * 9 * DAY + 40 * DAY, "9y"),
    ] {
        assert_eq!(human_duration(seconds), words, "{seconds} s");
    }
}

#[test]
fn paths_of_printer_columns_find_what_they_name() {
    let object = json!({
        "metadata": {"annotations": {"example.com/a": "b"}},
        "spec": {"x": {"y": 1}, "list": [{"name": "a"}, {"name": "b"}], "tags": ["p", "q"]},
        "status": {"conditions": [
            {"type": "Synced", "status": "False"},
            {"type": "Ready", "status": "True", "n": 3},
        ]},
    });
    for (path, found) in [
        (".spec.x.y", json!([1])),
        ("$.spec.x.y", json!([1])),
        (".spec.*.y", json!([1])),
        ("..name", json!(["a", "b"])),
        (".spec['x'].y", json!([1])),
        (".spec.list[*].name", json!(["a", "b"])),
        (".spec.list[1].name", json!(["b"])),
        (".spec.tags[-1]", json!(["q"])),
        (".spec.tags[-2]", json!(["p"])),
        (".spec.tags[]", json!(["p"])),
        (".spec.tags[0,1]", json!(["p", "q"])),
        (".spec.tags[::2]", json!(["p"])),
        (".spec.tags[1:1]", json!([])),
        (".spec.tags[?(@=='q')]", json!(["q"])),
        (".status.conditions[-1:].type", json!(["Ready"])),
        (".status.conditions[:1].type", json!(["Synced"])),
        (".status.conditions[0]['type','status']", json!(["Synced", "False"])),
        (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"])),
        (".status.conditions[?(@.type == 'Ready')].status", json!(["True"])),
        (".status.conditions[?(@.type!=\"Ready\")].status", json!(["False"])),
        (".status.conditions[?(@.n==3)].type", json!(["Ready"])),
        (".status.conditions[?(@.n>2)].type", json!(["Ready"])),
        (".status.conditions[?(@.n<=2)].type", json!([])),
        (".status.conditions[?(@.n)].type", json!(["Ready"])),
        (".metadata.annotations.example\\.com/a", json!(["b"])),
        (".metadata.annotations['example\\.com/a']", json!(["b"])),
        // A dot in brackets is a dot.
        (".metadata.annotations['example.com/a']", json!([])),
        (".spec.absent", json!([])),
        (".spec.absent[0].name", json!([])),
        (".", json!([])),
        // What makes no sense for this object fails as a whole.
        (".spec.tags[7]", json!(null)),
        (".spec.tags[1:7]", json!(null)),
        (".spec.tags[-9223372036854775808]", json!(null)),
        (".spec.x[0]", json!(null)),
        (".spec.x[*]", json!(null)),
        (".spec.x[?(@.y)]", json!(null)),
        (".status.conditions[?(@.n=='3')].type", json!(null)),
        (".status.conditions[?(@.n=3)].type", json!(null)),
        (".spec word", json!(null)),
    ] {
        let path_of = Path::parse(path).unwrap_or_else(|| panic!("{path} should be understood"));
        assert_eq!(json!(path_of.find(&object)), found, "{path}");
    }
    for path in [
        ".spec[",
        ".spec[a]",
        ".spec[\"x\"]",
        ".spec[1:2:3:4]",
        ".spec[?(@.a",
        ".spec[?(==1)]",
        ".spec....x",
        ".spec.x\\",
        ".spec, .x",
    ] {
        assert_eq!(Path::parse(path), None, "{path} should not be understood");
    }
}

#[test]
fn a_path_that_looks_at_everything_again_and_again_gives_up() {
    let deep = (0..60).fold(json!(1), |inside, _| json!({"a": inside}));
    let path = Path::parse(&"...*".repeat(20)).unwrap();
    assert_eq!(path.find(&deep), None);
}

#[test]
fn the_status_of_a_pod_sums_up_its_containers() {
    let running = json!({"ready": true, "restartCount": 0, "state": {"running": {}}});
    let pod = |spec: Value, status: Value| json!({"spec": spec, "status": status});
    let one = json!({"containers": [{}]});
    let cases = [
        (pod(one.clone(), json!({"phase": "Pending"})), ["0/1", "Pending", "0"]),
        (
            pod(one.clone(), json!({"phase": "Running", "containerStatuses": [running]})),
            ["1/1", "Running", "0"],
        ),
        (
            pod(
                one.clone(),
                json!({"phase": "Running", "containerStatuses": [{
                    "restartCount": 4,
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    "lastState": {"terminated": {"finishedAt": "2026-01-01T23:55:00Z"}},
                }]}),
            ),
            ["0/1", "CrashLoopBackOff", "4 (5m ago)"],
        ),
        (
            pod(
                one,
                json!({"phase": "Succeeded", "containerStatuses": [
                    {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
                ]}),
            ),
            ["0/1", "Completed", "0"],
        ),
    ];
    for (pod, expected) in cases {
        assert_eq!(status_of(&pod), expected, "{pod}");
    }
}

#[test]
fn the_status_of_a_pod_tells_how_far_its_init_containers_are() {
    let running = json!({"ready": true, "restartCount": 0, "state": {"running": {}}});
    let pod = |spec: Value, status: Value| json!({"spec": spec, "status": status});
    let cases = [
        (
            pod(
                json!({"containers": [{}], "initContainers": [{"name": "i"}, {"name": "j"}]}),
                json!({"phase": "Pending", "initContainerStatuses": [
                    {"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}},
                ]}),
            ),
            ["0/1", "Init:0/2", "0"],
        ),
        (
            pod(
                json!({"containers": [{}], "initContainers": [{"name": "i"}]}),
                json!({"phase": "Pending", "initContainerStatuses": [
                    {"name": "i", "state": {"terminated": {"exitCode": 3}}},
                ]}),
            ),
            ["0/1", "Init:ExitCode:3", "0"],
        ),
        (
            pod(
                json!({"containers": [{}], "initContainers": [{"name": "i"}]}),
                json!({"phase": "Pending", "initContainerStatuses": [
                    {"name": "i", "state": {"terminated": {"reason": "Completed"}}},
                ]}),
            ),
            ["0/1", "Pending", "0"],
        ),
        (
            pod(
                json!({
                    "containers": [{}],
                    "initContainers": [{"name": "s", "restartPolicy": "Always"}],
                }),
                json!({
                    "phase": "Running",
                    "initContainerStatuses": [{
                        "name": "s", "started": true, "ready": true, "restartCount": 1,
                        "state": {"running": {}},
                    }],
                    "containerStatuses": [running],
                }),
            ),
            ["2/2", "Running", "1"],
        ),
    ];
    for (pod, expected) in cases {
        assert_eq!(status_of(&pod), expected, "{pod}");
    }
}

#[test]
fn a_pod_being_deleted_is_terminating() {
    let pod = json!({
        "metadata": {"deletionTimestamp": NOW},
        "spec": {"containers": [{}]},
        "status": {"phase": "Running"},
    });
    assert_eq!(status_of(&pod)[1], "Terminating");
}

fn meta() -> Value {
    json!({"name": "web", "creationTimestamp": "2026-01-01T23:55:00Z"})
}

#[test]
fn rows_of_workloads_are_those_that_kubectl_shows() {
    let meta = meta();
    let template = json!({"spec": {"containers": [{"name": "c", "image": "nginx:1"}]}});
    let cases = [
        (
            "deployments",
            json!({
                "metadata": meta,
                "spec": {
                    "replicas": 3,
                    "template": template,
                    "selector": {"matchLabels": {"app": "web"}},
                },
                "status": {"readyReplicas": 2, "updatedReplicas": 3},
            }),
            vec!["web", "2/3", "3", "0", "5m", "c", "nginx:1", "app=web"],
        ),
        (
            "services",
            json!({
                "metadata": meta,
                "spec": {
                    "type": "NodePort",
                    "clusterIPs": ["10.0.0.1"],
                    "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}],
                },
            }),
            vec!["web", "NodePort", "10.0.0.1", "<none>", "80:30080/TCP", "5m", "<none>"],
        ),
        (
            "jobs",
            json!({
                "metadata": meta,
                "spec": {"completions": 1, "template": template},
                "status": {
                    "succeeded": 1,
                    "startTime": "2026-01-01T23:55:00Z",
                    "completionTime": "2026-01-01T23:55:30Z",
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
            }),
            vec!["web", "Complete", "1/1", "30s", "5m", "c", "nginx:1", "<none>"],
        ),
    ];
    for (plural, object, expected) in cases {
        assert_eq!(row(plural, &object), expected, "{plural}");
    }
}

#[test]
fn rows_of_other_kinds_are_those_that_kubectl_shows() {
    let meta = meta();
    let cases = [
        (
            "nodes",
            json!({
                "metadata": {
                    "name": "n1",
                    "creationTimestamp": "2026-01-01T23:55:00Z",
                    "labels": {"node-role.kubernetes.io/control-plane": ""},
                },
                "spec": {"unschedulable": true},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "nodeInfo": {"kubeletVersion": "v1.36.4"},
                    "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}],
                },
            }),
            vec![
                "n1",
                "Ready,SchedulingDisabled",
                "control-plane",
                "5m",
                "v1.36.4",
                "10.1.0.1",
                "<none>",
                "<unknown>",
                "<unknown>",
                "<unknown>",
            ],
        ),
        (
            "persistentvolumeclaims",
            json!({
                "metadata": meta,
                "spec": {"volumeName": "pv1", "storageClassName": "fast"},
                "status": {
                    "phase": "Bound",
                    "accessModes": ["ReadWriteOnce"],
                    "capacity": {"storage": "1Gi"},
                },
            }),
            vec!["web", "Bound", "pv1", "1Gi", "RWO", "fast", "<unset>", "5m", "<unset>"],
        ),
        (
            "horizontalpodautoscalers",
            json!({
                "metadata": meta,
                "spec": {
                    "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                    "minReplicas": 1,
                    "maxReplicas": 4,
                    "metrics": [{"type": "Resource", "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 80},
                    }}],
                },
            }),
            vec!["web", "Deployment/web", "cpu: <unknown>/80%", "1", "4", "0", "5m"],
        ),
        ("configmaps", json!({"metadata": meta, "data": {"a": "b"}}), vec!["web", "1", "5m"]),
        ("roles", json!({"metadata": meta}), vec!["web", "2026-01-01T23:55:00Z"]),
    ];
    for (plural, object, expected) in cases {
        assert_eq!(row(plural, &object), expected, "{plural}");
    }
}

#[test]
fn an_event_of_either_group_makes_the_same_row() {
    let core = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": "e"},
        "type": "Normal", "reason": "Started", "message": "Started container",
        "involvedObject": {"kind": "Pod", "name": "web"},
        "lastTimestamp": "2026-01-01T23:59:00Z", "count": 2,
        "source": {"component": "kubelet", "host": "n1"},
    });
    let mut new = core.clone();
    crate::versions::to_api_version(&mut new, "events.k8s.io/v1");
    let expected = [
        "60s",
        "Normal",
        "Started",
        "pod/web",
        "",
        "kubelet, n1",
        "Started container",
        "<unknown>",
        "2",
        "e",
    ];
    assert_eq!(row("events", &core), expected);
    assert_eq!(row("events", &new), expected);
}

#[test]
fn a_custom_resource_has_the_columns_of_its_definition_or_its_age() {
    let default = columns_from_crd(&Value::Null);
    assert_eq!(default[0].name, "Age");

    let columns = columns_from_crd(&json!([
        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Since", "type": "date", "jsonPath": ".status.since"},
        {"name": "Tags", "type": "string", "jsonPath": ".spec.tags", "priority": 1},
        {"name": "Odd", "type": "string", "jsonPath": "..x"},
        {"name": "Mistyped", "type": "boolean", "jsonPath": ".spec.replicas"},
    ]));
    let object = json!({
        "metadata": {"name": "shop"},
        "spec": {"replicas": 3, "tags": ["a"]},
        "status": {"since": "2026-01-01T00:00:00Z"},
    });
    let mut shops = resource("configmaps");
    shops.columns = columns;
    let table = render(&shops.columns, &[object], json!({}), IncludeObject::None, now());
    let cells = json!(["shop", 3, "24h", "[\"a\"]", null, null]);
    assert_eq!(table["rows"][0]["cells"], cells);
    assert_eq!(table["columnDefinitions"][3]["priority"], 1);
}

#[test]
fn columns_end_before_the_first_that_nobody_understands() {
    let column = |path: &str| json!({"name": "C", "type": "string", "jsonPath": path});
    let columns = columns_from_crd(&json!([column(".a"), column(".b["), column(".c")]));
    assert_eq!(columns.len(), 1);
    let none = columns_from_crd(&json!([column(".b[")]));
    let object = json!({"metadata": {"name": "x"}});
    let table = render(&none, &[object], json!({}), IncludeObject::None, now());
    assert_eq!(table["rows"][0]["cells"], json!(["x"]));
    assert_eq!(table["columnDefinitions"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_is_no_text_is_shown_as_go_prints_it() {
    let columns =
        columns_from_crd(&json!([{"name": "C", "type": "string", "jsonPath": ".spec.a"}]));
    for (value, expected) in [
        (json!(null), "<no value>"),
        (json!(true), "true"),
        (json!(1_234_567), "1234567"),
        (json!(0.5), "0.5"),
        (json!(123_456.5), "123456.5"),
        (json!(1_234_567.5), "1.2345675e+06"),
        (json!(0.000_012), "1.2e-05"),
        (json!({"a": ["<b>"]}), r#"{"a":["\u003cb\u003e"]}"#),
    ] {
        let object = json!({"spec": {"a": value}});
        let table = render(&columns, &[object], json!({}), IncludeObject::None, now());
        assert_eq!(table["rows"][0]["cells"][1], expected);
    }
}

#[test]
fn a_table_carries_what_was_asked_of_each_object() {
    let object = json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {}});
    let list = json!({"resourceVersion": "7"});
    let render = |include| {
        render(
            &resource("configmaps").columns,
            std::slice::from_ref(&object),
            list.clone(),
            IncludeObject::parse(include).unwrap(),
            now(),
        )
    };
    let table = render("");
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["metadata"], list);
    assert_eq!(table["columnDefinitions"][0]["format"], "name");
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "a");
    assert_eq!(render("Object")["rows"][0]["object"], object);
    assert!(render("None")["rows"][0]["object"].is_null());
    assert_eq!(IncludeObject::parse("All"), None);
}

#[test]
fn the_row_of_a_pod_that_is_done_says_so() {
    let columns = resource("pods").columns;
    let conditions = |phase: &str| {
        let pod = json!({"kind": "Pod", "apiVersion": "v1", "status": {"phase": phase}});
        let table = render(&columns, &[pod], json!({}), IncludeObject::None, now());
        table["rows"][0]["conditions"].clone()
    };
    assert_eq!(
        conditions("Succeeded"),
        json!([{
            "type": "Completed", "status": "True", "reason": "Succeeded",
            "message": "The pod has completed successfully.",
        }])
    );
    assert_eq!(conditions("Failed")[0]["message"], "The pod failed.");
    assert_eq!(conditions("Running"), Value::Null);
}

#[test]
fn a_custom_column_does_not_take_the_place_of_the_name() {
    let columns =
        columns_from_crd(&json!([{"name": "Name", "type": "string", "jsonPath": ".spec.name"}]));
    let object = json!({"metadata": {"name": "a"}, "spec": {"name": "b"}});
    let table = render(&columns, &[object], json!({}), IncludeObject::None, now());
    assert_eq!(table["rows"][0]["cells"], json!(["a", "b"]));
    assert_eq!(
        table["columnDefinitions"][1]["description"],
        "Custom resource definition column (in JSONPath format): .spec.name"
    );
}

#[test]
fn every_built_in_kind_renders_an_empty_object() {
    for resource in kinds::all() {
        let table =
            render(&resource.columns, &[json!({})], json!({}), IncludeObject::Metadata, now());
        let unannounced = resource.columns.iter().filter(|column| !column.announced).count();
        let columns = cells::items(&table["columnDefinitions"]).len() + unannounced;
        assert_eq!(cells::items(&table["rows"][0]["cells"]).len(), columns, "{}", resource.kind);
    }
}
