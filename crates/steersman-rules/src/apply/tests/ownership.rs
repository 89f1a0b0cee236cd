//! What managedFields record.

use serde_json::{Value, json};

use super::{Deployment, LATER, NOON, containers};
use crate::apply::fieldset::{FieldSet, MOVED};
use crate::apply::managed_fields::{ManagerId, Operation};
use crate::apply::{Sole, Track, keep_times, track};
use crate::schema::Schema;

#[test]
fn fields_are_written_in_kubernetes_notation() {
    let mut web = Deployment::new();
    web.apply(
        "ci",
        json!({
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "finalizers": ["a/b"]},
                "spec": {"containers": [{
                    "name": "web",
                    "args": ["x"],
                    "resources": {},
                    "ports": [{"containerPort": 80}],
                }]},
            },
        }),
    );
    assert_eq!(
        web.managed_fields(),
        &json!([{
            "manager": "ci",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": NOON,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {
                "f:replicas": {},
                "f:selector": {},
                "f:template": {
                    "f:metadata": {
                        "f:labels": {"f:app": {}},
                        "f:finalizers": {"v:\"a/b\"": {}},
                    },
                    "f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {
                        ".": {},
                        "f:name": {},
                        "f:args": {},
                        "f:resources": {},
                        "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                            ".": {},
                            "f:containerPort": {},
                        }},
                    }}},
                },
            }},
        }])
    );
}

#[test]
fn a_create_owns_what_it_sets_like_kubernetes_writes_it() {
    let mut web = Deployment::new();
    web.update("kubectl-create", |object| {
        object["metadata"]["labels"] = json!({"app": "web"});
        object["metadata"]["uid"] = json!("1");
        object["spec"] = containers(json!([{"name": "a", "livenessProbe": {"periodSeconds": 1}}]));
        object["spec"]["strategy"] =
            json!({"rollingUpdate": {"maxSurge": 1}, "type": "RollingUpdate"});
    });
    assert_eq!(
        web.managed_fields()[0]["fieldsV1"],
        json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {
                "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}},
                "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {
                    ".": {},
                    "f:livenessProbe": {".": {}, "f:periodSeconds": {}},
                    "f:name": {},
                    "f:resources": {},
                }}}},
            },
        }),
        "identity is stripped; structs held by value are not owned themselves"
    );
    assert_eq!(web.managed_fields()[0]["operation"], "Update");
}

#[test]
fn an_update_takes_what_it_changes_and_drops_what_it_removes() {
    let mut web = Deployment::new();
    web.apply("ci", json!({"replicas": 3, "paused": true, "minReadySeconds": 1}));
    web.update("hpa", |object| {
        object["spec"]["replicas"] = json!(5);
        object["spec"].as_object_mut().unwrap().remove("paused");
    });
    assert_eq!(web.owned("ci"), json!({"f:minReadySeconds": {}}));
    assert_eq!(web.owned("hpa"), json!({"f:replicas": {}}));
}

#[test]
fn a_manager_without_fields_has_no_entry() {
    let mut web = Deployment::new();
    web.apply("ci", json!({"replicas": 3}));
    web.update("hpa", |object| object["spec"]["replicas"] = json!(5));
    assert_eq!(web.managers(), ["hpa"]);
    web.apply("ci", json!({}));
    assert_eq!(web.managers(), ["ci", "hpa"], "an empty spec is owned");
    assert_eq!(web.owned("ci"), json!({}));
}

#[test]
fn an_apply_that_changes_nothing_keeps_even_the_time() {
    let mut web = Deployment::new();
    let spec = containers(json!([{"name": "a", "image": "a:1"}]));
    web.apply("ci", spec.clone());
    let before = web.live.clone();
    web.now = LATER;
    web.apply("ci", spec);
    assert_eq!(web.live, before);
    web.update("hpa", |_| {});
    assert_eq!(web.live, before, "nor does an update without a change");
}

#[test]
fn times_go_back_if_nothing_else_has_changed_in_the_end() {
    let mut web = Deployment::new();
    web.apply("ci", json!({"replicas": 3}));
    let old = web.live().clone();
    let mut later = old.clone();
    later["metadata"]["managedFields"][0]["time"] = json!(LATER);
    let mut same = later.clone();
    keep_times(&old, &mut same);
    assert_eq!(same, old);
    let mut other = later.clone();
    other["spec"]["replicas"] = json!(4);
    let mut shared = later.clone();
    shared["metadata"]["managedFields"][0]["manager"] = json!("cd");
    for mut changed in [other, shared] {
        let before = changed.clone();
        keep_times(&old, &mut changed);
        assert_eq!(changed, before);
    }
}

#[test]
fn the_time_moves_when_something_changes() {
    let mut web = Deployment::new();
    web.apply("ci", json!({"replicas": 3}));
    web.update("hpa", |object| object["spec"]["paused"] = json!(true));
    web.now = LATER;
    web.apply("ci", json!({"replicas": 4}));
    let times: Vec<_> =
        web.managed_fields().as_array().unwrap().iter().map(|e| e["time"].clone()).collect();
    assert_eq!(times, [LATER, NOON]);
}

#[test]
fn entries_are_sorted_by_operation_then_age_then_name() {
    let mut web = Deployment::new();
    web.update("z-updater", |object| object["spec"]["replicas"] = json!(1));
    web.apply("b-applier", json!({"paused": true}));
    web.update("a-updater", |object| object["spec"]["minReadySeconds"] = json!(1));
    web.now = LATER;
    web.apply("a-applier", json!({"progressDeadlineSeconds": 1}));
    assert_eq!(web.managers(), ["b-applier", "a-applier", "a-updater", "z-updater"]);
}

#[test]
fn managers_are_in_the_order_of_what_kubernetes_knows_them_by() {
    let expected = [
        ("a b", Operation::Update, ""),
        ("a", Operation::Apply, "status"),
        ("a", Operation::Apply, ""),
        ("a", Operation::Update, "scale"),
        ("a", Operation::Update, "status"),
        ("a", Operation::Update, ""),
        ("a-b", Operation::Apply, ""),
    ];
    let id = |(manager, operation, subresource)| {
        ManagerId::new(operation, manager, "apps/v1", subresource)
    };
    let mut ids = expected.map(id);
    ids.reverse();
    ids.sort();
    assert_eq!(ids, expected.map(id));
}

#[test]
fn subresources_have_entries_of_their_own() {
    let mut web = Deployment::new();
    web.update("manager", |object| object["spec"]["replicas"] = json!(1));
    let live = web.live.clone().unwrap();
    let mut new = live.clone();
    new["status"] = json!({"replicas": 1});
    new["metadata"]["managedFields"] = json!([]);
    track(Track {
        live: Some(&live),
        new: &mut new,
        manager: "manager",
        subresource: "status",
        api_version: "apps/v1",
        now: NOON,
        schema: &web.schema,
        versions: &Sole,
        resets: &[],
    });
    let entries = new["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "and cannot reset them");
    assert_eq!(entries[1]["subresource"], "status");
    assert_eq!(entries[1]["fieldsV1"], json!({"f:status": {"f:replicas": {}}}));
}

#[test]
fn an_empty_list_forgets_everybody_until_the_next_apply() {
    for reset in [json!([]), json!([{}])] {
        let mut web = Deployment::new();
        web.apply("ci", json!({"replicas": 3}));
        web.update("admin", |object| object["metadata"]["managedFields"] = reset.clone());
        assert_eq!(web.managed_fields(), &Value::Null);
        web.update("hpa", |object| object["spec"]["replicas"] = json!(4));
        assert_eq!(web.managed_fields(), &Value::Null, "still untracked");
        web.apply("ci", json!({"replicas": 4}));
        assert_eq!(web.managers(), ["ci", "before-first-apply"]);
        assert!(web.try_apply("ci", json!({"replicas": 5})).is_err(), "somebody set it before");
    }
}

#[test]
fn a_client_may_correct_managed_fields() {
    let mut web = Deployment::new();
    web.apply("ci", json!({"replicas": 3}));
    web.update("admin", |object| object["metadata"]["managedFields"][0]["manager"] = json!("cd"));
    assert_eq!(web.managers(), ["cd"]);
    web.update("admin", |object| {
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
    });
    assert_eq!(web.managers(), ["cd"], "leaving them out is not a reset");
    web.update("admin", |object| object["metadata"]["managedFields"][0]["operation"] = json!("?"));
    assert_eq!(web.managers(), ["cd"], "nonsense is ignored");
}

#[test]
fn the_oldest_updaters_beyond_ten_become_ancient_changes() {
    let schema = Schema::builtin("", "v1", "ConfigMap").unwrap();
    let mut live: Option<Value> = None;
    for index in 0..14 {
        let mut new =
            live.clone().unwrap_or_else(|| json!({"metadata": {"name": "c"}, "data": {}}));
        new["data"][format!("key{index}")] = json!("x");
        track(Track {
            live: live.as_ref(),
            new: &mut new,
            manager: &format!("manager-{index}"),
            subresource: "",
            api_version: "v1",
            now: &format!("2026-01-01T12:00:{index:02}Z"),
            schema: &schema,
            versions: &Sole,
            resets: &[],
        });
        live = Some(new);
    }
    let live = live.unwrap();
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0]["manager"], "ancient-changes");
    assert_eq!(entries[0]["time"], "2026-01-01T12:00:04Z");
    let keys = entries[0]["fieldsV1"]["f:data"].as_object().unwrap().len();
    assert_eq!(keys, 6, "five keys and the map itself");
}

#[test]
fn fields_v1_survives_reading_and_writing() {
    let fields = json!({
        "f:spec": {
            ".": {},
            "f:a.b/c": {},
            "f:list": {"k:{\"a\":1,\"b\":\"x\"}": {".": {}, "f:y": {}}, "k:{\"a\":2}": {}},
            "f:set": {"v:\"x\"": {}, "v:1": {}, "v:true": {}},
            "f:old": {"i:0": {}},
        },
    });
    assert_eq!(FieldSet::decode(&fields).unwrap().encode(), fields);
    for bad in
        [json!({"xy:z": {}}), json!({"nocolon": {}}), json!({"k:[1]": {}}), json!({"f:a": 1})]
    {
        assert!(FieldSet::decode(&bad).is_err(), "{bad}");
    }
    let of_later = json!({"f:a": {"x:y": {"f:b": {}}}, "f:c": null, "x:y": 1});
    assert_eq!(FieldSet::decode(&of_later).unwrap().encode(), json!({"f:a": {}, "f:c": {}}));
}

/// An object with managers who each own a key, as a client sends it.
fn managed(managers: usize) -> Value {
    let entry = |n: usize| {
        json!({
            "manager": format!("m{n:06}"), "operation": "Update", "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {format!("f:k{n:06}"): {}}},
        })
    };
    let entries: Vec<Value> = (0..managers).map(entry).collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "managedFields": entries}, "data": {"k": "v"},
    })
}

fn write(live: Option<&Value>, new: &mut Value) {
    let schema = Schema::builtin("", "v1", "ConfigMap").unwrap();
    track(Track {
        live,
        new,
        manager: "m",
        subresource: "",
        api_version: "v1",
        now: NOON,
        schema: &schema,
        versions: &Sole,
        resets: &[],
    });
}

#[test]
fn the_oldest_of_thousands_of_updaters_become_one_in_one_go() {
    let moved = |managers: usize| {
        let live = managed(managers);
        let mut new = live.clone();
        new["data"]["k"] = "w".into();
        MOVED.set(0);
        write(Some(&live), &mut new);
        let entries = new["metadata"]["managedFields"].as_array().unwrap();
        assert_eq!(entries.len(), 10);
        let ancient = entries.iter().find(|entry| entry["manager"] == "ancient-changes").unwrap();
        let keys = ancient["fieldsV1"]["f:data"].as_object().unwrap().len();
        assert_eq!(keys, managers + 1 - 9, "all but the nine that are left");
        MOVED.get()
    };
    let (few, many) = (moved(500), moved(2000));
    assert!(many < 8 * few, "four times the managers took {few} and {many} steps");
}

#[test]
fn a_client_that_sends_too_many_managers_is_not_believed() {
    let mut new = managed(1001);
    write(None, &mut new);
    let entries = new["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!((entries.len(), &entries[0]["manager"]), (1, &json!("m")));
    let fault = super::super::managers_fault(&managed(1001)["metadata"]["managedFields"]);
    let why = "must have at most 1000 managed fields entries, got 1001";
    assert_eq!(fault.as_deref(), Some(why));
}
