//! What an apply does to the object, and when it is refused.

use serde_json::{Value, json};

use super::{Deployment, containers, deployment};
use crate::apply::{Apply, ApplyError, Sole, apply, check_configuration, conflict_message};
use crate::schema::Schema;

fn conflict(error: ApplyError) -> String {
    match error {
        ApplyError::Conflict(conflicts) => conflict_message(&conflicts).0,
        other => panic!("not a conflict: {other}"),
    }
}

fn invalid(result: Result<(), ApplyError>) -> String {
    match result {
        Err(ApplyError::Invalid(text)) => text,
        other => panic!("not invalid: {other:?}"),
    }
}

#[test]
fn applying_creates_and_then_merges() {
    let mut web = Deployment::new();
    web.apply("ci", json!({"replicas": 3, "paused": null}));
    assert_eq!(web.spec(), json!({"replicas": 3}), "null means not set");
    web.apply("other", json!({"minReadySeconds": 5}));
    assert_eq!(web.spec(), json!({"replicas": 3, "minReadySeconds": 5}));
}

#[test]
fn what_a_manager_no_longer_applies_is_removed() {
    let mut web = Deployment::new();
    web.apply("ci", json!({"replicas": 3, "strategy": {"type": "Recreate"}, "paused": true}));
    web.apply("ci", json!({"replicas": 3}));
    assert_eq!(web.spec(), json!({"replicas": 3}), "with the struct that became empty");
}

#[test]
fn what_another_manager_also_owns_stays() {
    let mut web = Deployment::new();
    web.apply("ci", json!({"replicas": 3, "paused": true}));
    web.apply("ops", json!({"replicas": 3}));
    web.apply("ci", json!({"paused": true}));
    assert_eq!(web.spec(), json!({"replicas": 3, "paused": true}));
    web.apply("ops", json!({"paused": true}));
    assert_eq!(web.spec(), json!({"paused": true}), "the last owner let go of replicas");
}

#[test]
fn what_an_update_wrote_stays_when_the_applier_forgets_it() {
    let mut web = Deployment::new();
    web.apply("ci", json!({"replicas": 3, "paused": true}));
    web.update("hpa", |object| object["spec"]["replicas"] = json!(5));
    web.apply("ci", json!({"paused": true}));
    assert_eq!(web.spec(), json!({"replicas": 5, "paused": true}));
}

#[test]
fn defaults_inside_an_abandoned_item_go_with_it() {
    let mut web = Deployment::new();
    web.apply(
        "ci",
        containers(json!([{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}])),
    );
    // Written by the server while defaulting, owned by nobody.
    let live = web.live.as_mut().unwrap();
    for container in live["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap() {
        container["imagePullPolicy"] = json!("Always");
    }
    web.apply("ci", containers(json!([{"name": "a", "image": "a:1"}])));
    let kept = json!([{"name": "a", "image": "a:1", "imagePullPolicy": "Always"}]);
    assert_eq!(web.spec(), containers(kept));
}

#[test]
fn an_item_with_fields_of_another_manager_survives_without_the_abandoned_ones() {
    let mut web = Deployment::new();
    web.apply("ci", containers(json!([{"name": "a", "image": "a:1", "tty": true}])));
    web.apply("mesh", containers(json!([{"name": "a", "workingDir": "/"}])));
    web.apply("ci", containers(json!([{"name": "z", "image": "z:1"}])));
    let expected = json!([{"name": "a", "workingDir": "/"}, {"name": "z", "image": "z:1"}]);
    let found = web.spec();
    let mut found = found["template"]["spec"]["containers"].as_array().unwrap().clone();
    found.sort_by_key(|container| container["name"].to_string());
    assert_eq!(Value::Array(found), expected);
}

#[test]
fn changing_what_another_manager_owns_is_a_conflict() {
    let mut web = Deployment::new();
    web.update("kubectl-client-side-apply", |object| object["spec"]["replicas"] = json!(3));
    let before = web.live.clone();
    let error = web.try_apply("ci", json!({"replicas": 5})).unwrap_err();
    assert_eq!(
        conflict(error),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using apps/v1: .spec.replicas"
    );
    assert_eq!(web.live, before);
}

#[test]
fn several_conflicts_are_listed_by_manager() {
    let mut web = Deployment::new();
    web.apply("ops", json!({"replicas": 3, "paused": true}));
    web.update("hpa", |object| object["spec"]["minReadySeconds"] = json!(5));
    let error = web
        .try_apply("ci", json!({"replicas": 1, "paused": false, "minReadySeconds": 1}))
        .unwrap_err();
    let ApplyError::Conflict(conflicts) = &error else { panic!("{error}") };
    let (_, causes) = conflict_message(conflicts);
    let causes: Vec<_> = causes.iter().map(|c| (c.message.as_str(), c.field.as_str())).collect();
    assert_eq!(
        causes,
        [
            ("conflict with \"hpa\" using apps/v1", ".spec.minReadySeconds"),
            ("conflict with \"ops\"", ".spec.paused"),
            ("conflict with \"ops\"", ".spec.replicas"),
        ]
    );
    assert_eq!(
        conflict(error),
        "Apply failed with 3 conflicts: conflicts with \"hpa\" using apps/v1:\n- .spec.minReadySeconds\n\
         conflicts with \"ops\":\n- .spec.paused\n- .spec.replicas"
    );
}

#[test]
fn conflicts_name_list_items_by_their_keys() {
    let mut web = Deployment::new();
    web.apply(
        "ops",
        containers(json!([{"name": "a", "ports": [{"containerPort": 80, "name": "x"}]}])),
    );
    let spec = containers(json!([{"name": "a", "ports": [{"containerPort": 80, "name": "y"}]}]));
    let text = conflict(web.try_apply("ci", spec).unwrap_err());
    let path =
        r#".spec.template.spec.containers[name="a"].ports[containerPort=80,protocol="TCP"].name"#;
    assert!(text.ends_with(path), "{text}");
}

#[test]
fn the_same_value_is_no_conflict() {
    let mut web = Deployment::new();
    web.apply("ops", json!({"replicas": 3}));
    web.apply("ci", json!({"replicas": 3}));
    assert_eq!(web.managers(), ["ci", "ops"]);
}

#[test]
fn force_takes_the_field_over() {
    let mut web = Deployment::new();
    web.apply("ops", json!({"replicas": 3, "paused": true}));
    web.force("ci", json!({"replicas": 5}));
    assert_eq!(web.spec(), json!({"replicas": 5, "paused": true}));
    assert_eq!(web.owned("ops"), json!({"f:paused": {}}));
    assert_eq!(web.owned("ci"), json!({"f:replicas": {}}));
}

#[test]
fn atomic_lists_and_maps_are_replaced_whole() {
    let mut web = Deployment::new();
    web.apply("ci", json!({"selector": {"matchLabels": {"a": "1"}}, "template": {"spec": {"tolerations": [{"key": "a"}]}}}));
    web.apply("ci", json!({"selector": {"matchLabels": {"b": "2"}}, "template": {"spec": {"tolerations": [{"key": "b"}]}}}));
    assert_eq!(
        web.spec(),
        json!({"selector": {"matchLabels": {"b": "2"}}, "template": {"spec": {"tolerations": [{"key": "b"}]}}})
    );
    let other = json!({"selector": {"matchLabels": {"c": "3"}}});
    assert!(conflict(web.try_apply("ops", other).unwrap_err()).ends_with(": .spec.selector"));
}

#[test]
fn lists_keep_the_live_order_and_take_the_applied_one_for_shared_items() {
    let names = |web: &Deployment| -> Vec<String> {
        let spec = web.spec();
        let items = spec["template"]["spec"]["containers"].as_array().unwrap().clone();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    let named =
        |names: &[&str]| containers(names.iter().map(|name| json!({"name": name})).collect());
    let cases: [(&[&str], &[&str], &[&str]); 5] = [
        (&["a", "b"], &["b", "c"], &["a", "b", "c"]),
        (&["a", "b"], &["c", "b"], &["a", "c", "b"]),
        (&["b", "a", "x"], &["a", "b", "n"], &["a", "x", "b", "n"]),
        (&["a"], &["b"], &["a", "b"]),
        (&["a", "b", "c"], &["c", "a"], &["b", "c", "a"]),
    ];
    for (live, applied, expected) in cases {
        let mut web = Deployment::new();
        web.apply("ops", named(live));
        web.apply("ci", named(applied));
        assert_eq!(names(&web), expected, "{live:?} + {applied:?}");
    }
}

#[test]
fn a_port_without_protocol_is_the_tcp_port() {
    let mut web = Deployment::new();
    let with = |port: Value| containers(json!([{"name": "a", "ports": [port]}]));
    web.apply("ci", with(json!({"containerPort": 80, "protocol": "TCP"})));
    web.apply("ci", with(json!({"containerPort": 80, "name": "http"})));
    assert_eq!(web.spec(), with(json!({"containerPort": 80, "name": "http"})));
    web.apply("ops", with(json!({"containerPort": 80, "protocol": "UDP"})));
    let spec = web.spec();
    let ports = spec["template"]["spec"]["containers"][0]["ports"].as_array().unwrap().len();
    assert_eq!(ports, 2, "another protocol is another port");
}

#[test]
fn a_configuration_that_makes_no_sense_is_invalid() {
    let cases = [
        (
            containers(json!([{"name": "a"}, {"name": "a"}])),
            r#".spec.template.spec.containers: duplicate entries for key [name="a"]"#,
        ),
        (json!({"replica": 3}), ".spec.replica: field not declared in schema"),
        (json!({"replicas": "3"}), ".spec.replicas: expected numeric (int or float), got string"),
        (
            containers(json!(["a"])),
            ".spec.template.spec.containers: element 0: associative list with keys may not have non-map elements",
        ),
    ];
    let head = "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): ";
    for (spec, expected) in cases {
        assert_eq!(invalid(Deployment::new().try_apply("ci", spec)), format!("{head}{expected}"));
    }
}

#[test]
fn managed_fields_cannot_be_applied() {
    let web = Deployment::new();
    let mut applied = deployment(json!({}));
    applied["metadata"]["managedFields"] = json!([]);
    let found = check_configuration(&web.schema, "apps/v1", &applied);
    assert_eq!(found, Err(ApplyError::Managed));
}

#[test]
fn without_a_schema_maps_merge_and_lists_are_atomic() {
    let schema = Schema::untyped();
    let request = |live, applied, manager| Apply {
        live,
        applied,
        manager,
        force: false,
        subresource: "",
        api_version: "demo/v1",
        now: super::NOON,
        schema: &schema,
        versions: &Sole,
        resets: &[],
    };
    let first = json!({"spec": {"a": {"b": 1}, "list": [1]}});
    let second = json!({"spec": {"a": {"c": 2}}});
    let third = json!({"spec": {"list": [2]}});
    let live = apply(request(None, &first, "ci")).unwrap();
    let live = apply(request(Some(&live), &second, "ops")).unwrap();
    assert_eq!(live["spec"], json!({"a": {"b": 1, "c": 2}, "list": [1]}));
    assert!(apply(request(Some(&live), &third, "ops")).is_err());
}

#[test]
fn kubectl_may_take_over_what_its_annotation_says() {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let applied_before = deployment(json!({"replicas": 3, "paused": true}));
    let mut web = Deployment::new();
    web.update("kubectl-client-side-apply", |object| {
        object["spec"] = json!({"replicas": 3, "paused": true});
        object["metadata"]["annotations"] = json!({annotation: applied_before.to_string()});
    });
    assert!(web.try_apply("ci", json!({"replicas": 5})).is_err(), "only kubectl may");
    web.apply("kubectl", json!({"replicas": 5}));
    assert_eq!(web.spec()["replicas"], 5);
    let kept = web.live()["metadata"]["annotations"][annotation].as_str().unwrap();
    let kept: Value = serde_json::from_str(kept).unwrap();
    assert_eq!(kept, deployment(json!({"replicas": 5})), "the annotation follows");

    web.update("hpa", |object| object["spec"]["replicas"] = json!(7));
    assert!(web.try_apply("kubectl", json!({"replicas": 5})).is_err(), "changed since");
}

#[test]
fn the_annotation_is_json_that_a_page_may_include_and_goes_where_there_is_no_room_for_it() {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let mut web = Deployment::new();
    web.update("kubectl-client-side-apply", |object| {
        object["metadata"]["annotations"] = json!({annotation: "{}"});
    });
    let annotations = |applied: &Value| {
        let request = Apply { force: true, ..web.request("kubectl", applied) };
        apply(request).unwrap()["metadata"]["annotations"].clone()
    };
    let mut applied = deployment(containers(json!([{"name": "a", "args": ["a<b"]}])));
    applied["metadata"]["annotations"] = json!({annotation: "x"});
    let text = concat!(
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{},"#,
        r#""name":"web","namespace":"default"},"spec":{"template":{"spec":{"containers":"#,
        r#"[{"args":["a\u003cb"],"name":"a"}]}}}}"#,
        "\n",
    );
    assert_eq!(annotations(&applied), json!({annotation: text}));
    let long = "x".repeat(300_000);
    let applied = deployment(containers(json!([{"name": "a", "args": [long]}])));
    assert_eq!(annotations(&applied), json!({}));
}
