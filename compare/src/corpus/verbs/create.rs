//! POST: what is taken, what is refused, and in which words.

use serde_json::{Value, json};
use steersman_rules::protobuf;

use super::FORMS;
use crate::corpus::kinds::{Kind, Place};
use crate::mask::GENERATED;
use crate::step::{Body, Role, Scenario, Step};

pub(super) fn steps(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let path = &place.collection;
    let object = kind.object(place, "x");
    scenario.add(Step::post("dry-run", path, &object).dry());
    if let Some(sample) = &kind.sample {
        let sample = kind.adapted(sample, place, "sample");
        scenario.add(Step::post("sample", path, sample).dry());
    }
    forms(path, &object, scenario);
    metadata(kind, place, scenario);
    bodies(path, &object, scenario);
    options(path, &object, scenario);
    for (index, refused) in kind.refuses.iter().enumerate() {
        let refused = kind.changed(place, "x", refused);
        scenario.add(Step::post(format!("refused-{index}"), path, refused).dry());
    }
    scenario.add(Step::post("real", path, &object).role(Role::Needed).keep("object"));
    scenario.add(Step::post("again", path, &object));
    scenario.add(Step::post("again-dry-run", path, &object).dry());
    scenario.add(Step::post("again-invalid", path, kind.changed(place, "x", &bad_label())));
    scenario.add(Step::post("at-object", &kind.path(place, "x"), &object));
    scenario.add(Step::get("stored", &kind.path(place, "x")));
    let generated = kind.changed(place, "x", &generated());
    scenario.add(Step::post("generate-name", path, generated));
}

/// Kinds that are answered and not stored.
pub(super) fn review(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let path = &place.collection;
    let object = kind.object(place, "x");
    scenario.add(Step::post("plain", path, &object));
    scenario.add(Step::post("dry-run", path, &object).dry());
    forms(path, &object, scenario);
    bodies(path, &object, scenario);
    options(path, &object, scenario);
    let changes = [
        ("no-spec", json!({"spec": null})),
        ("empty-spec", json!({"spec": {}})),
        ("spec-is-text", json!({"spec": "x"})),
        ("named", json!({"metadata": {"name": "x"}})),
        ("status-given", json!({"status": {"x": 1}})),
        ("bad-label", bad_label()),
    ];
    for (id, change) in changes {
        scenario.add(Step::post(id, path, kind.changed(place, "x", &change)));
    }
    scenario.add(Step::get("list", path));
    scenario.add(Step::get("get", &format!("{path}/x")));
    scenario.add(Step::new("PUT", "put", &format!("{path}/x")).body(&object));
    scenario.add(Step::delete("delete", &format!("{path}/x")));
    scenario.add(Step::delete("delete-collection", path));
}

fn forms(path: &str, object: &Value, scenario: &mut Scenario) {
    for (id, form) in FORMS {
        scenario.add(Step::post(format!("as-{id}"), path, object).dry().accept(form));
    }
    if let Ok(bytes) = protobuf::encode(object) {
        let step = Step::new("POST", "from-protobuf", path).body(Body::Bytes(bytes.to_vec()));
        scenario.add(step.content_type("application/vnd.kubernetes.protobuf").dry());
    }
    if let Ok(yaml) = serde_saphyr::to_string(object) {
        let step = Step::post("from-yaml", path, yaml);
        scenario.add(step.content_type("application/yaml").dry());
    }
}

fn metadata(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let long = "a".repeat(260);
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "o"});
    let whole = json!({"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u",
        "controller": true, "blockOwnerDeletion": true});
    let event = json!({"apiVersion": "v1", "kind": "Event", "name": "o", "uid": "u"});
    let changes = [
        ("generate-name-dry-run", generated()),
        ("no-name", json!({"metadata": {"name": null}})),
        ("bad-name", json!({"metadata": {"name": "Bad_Name"}})),
        ("slash-name", json!({"metadata": {"name": "a/b"}})),
        ("long-name", json!({"metadata": {"name": long}})),
        ("bad-generate-name", json!({"metadata": {"name": null, "generateName": "Bad_gen-"}})),
        ("other-namespace", json!({"metadata": {"namespace": "other"}})),
        ("other-kind", json!({"kind": "Other"})),
        ("other-version", json!({"apiVersion": "other/v1"})),
        ("no-kind", json!({"kind": null})),
        ("no-version", json!({"apiVersion": null})),
        ("no-type", json!({"apiVersion": null, "kind": null})),
        ("version", json!({"metadata": {"resourceVersion": "5"}})),
        ("version-zero", json!({"metadata": {"resourceVersion": "0"}})),
        ("uid", json!({"metadata": {"uid": "mine"}})),
        ("bad-label-key", bad_label()),
        ("bad-label-value", json!({"metadata": {"labels": {"a": "b c"}}})),
        ("bad-annotation", json!({"metadata": {"annotations": {"a b": "c"}}})),
        ("null-labels", json!({"metadata": {"labels": null}})),
        ("null-label", json!({"metadata": {"labels": {"a": ""}}})),
        ("finalizer", json!({"metadata": {"finalizers": ["example.com/x"]}})),
        ("bad-finalizer", json!({"metadata": {"finalizers": ["x y"]}})),
        ("plain-finalizer", json!({"metadata": {"finalizers": ["x"]}})),
        ("owner-without-uid", json!({"metadata": {"ownerReferences": [owner]}})),
        ("owner", json!({"metadata": {"ownerReferences": [whole.clone()]}})),
        ("two-controllers", json!({"metadata": {"ownerReferences": [whole.clone(), whole]}})),
        ("owner-event", json!({"metadata": {"ownerReferences": [event]}})),
        ("generation", json!({"metadata": {"generation": 7}})),
        ("negative-generation", json!({"metadata": {"generation": -7}})),
        ("created-long-ago", json!({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}})),
        ("deleted", json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}})),
        ("self-link", json!({"metadata": {"selfLink": "/x"}})),
        ("managed-fields", json!({"metadata": {"managedFields": [{"manager": "m"}]}})),
        ("no-metadata", json!({"metadata": null})),
        ("metadata-is-text", json!({"metadata": "x"})),
        ("status-given", json!({"status": {"unknown": 1}})),
    ];
    for (id, change) in changes {
        scenario.add(Step::post(id, &place.collection, kind.changed(place, "x", &change)).dry());
    }
}

fn bodies(path: &str, object: &Value, scenario: &mut Scenario) {
    let text = object.to_string();
    let broken = [
        ("body-empty", String::new()),
        ("body-null", "null".into()),
        ("body-list", "[]".into()),
        ("body-text", "\"x\"".into()),
        ("body-number", "3".into()),
        ("body-cut", text[..text.len() - 1].to_owned()),
        ("body-brace", "{".into()),
        ("body-empty-object", "{}".into()),
        ("body-trailing", format!("{text} x")),
        ("body-no-json", "no json".into()),
    ];
    for (id, body) in broken {
        scenario.add(Step::post(id, path, body).dry());
    }
    let yaml = [("yaml-broken", "a: b: c"), ("yaml-list", "- a"), ("yaml-tab", "a:\n\t- b")];
    for (id, body) in yaml {
        scenario.add(Step::post(id, path, body).content_type("application/yaml").dry());
    }
    let types = ["text/plain", "application/xml", "application/merge-patch+json", "nonsense"];
    for media_type in types {
        let id = format!("content-type-{}", media_type.replace('/', "-"));
        scenario.add(Step::post(id, path, object).content_type(media_type).dry());
    }
    let step = Step::post("content-type-charset", path, object).dry();
    scenario.add(step.content_type("application/json; charset=utf-8"));
    let step = Step::post("protobuf-without-prefix", path, "no protobuf").dry();
    scenario.add(step.content_type("application/vnd.kubernetes.protobuf"));
    validation(path, object, scenario);
}

/// Fields that are unknown or stand twice, in the three ways of telling.
fn validation(path: &str, object: &Value, scenario: &mut Scenario) {
    let text = object.to_string();
    let rest = &text[1..];
    let mut unknown = object.clone();
    unknown["unknown"] = 1.into();
    unknown["metadata"]["odd"] = json!({"a": 1});
    unknown["spec"]["strange"] = json!([1]);
    let twice = format!(r#"{{"kind": "Twice", "metadata": {{"name": "twice"}}, {rest}"#);
    for level in ["Strict", "Warn", "Ignore"] {
        let query = format!("fieldValidation={level}");
        let id = |what: &str| format!("{what}-{}", level.to_lowercase());
        scenario.add(Step::post(id("unknown"), path, &unknown).dry().query(&query));
        scenario.add(Step::post(id("twice"), path, twice.as_str()).dry().query(&query));
        if let Ok(yaml) = serde_saphyr::to_string(&unknown) {
            let yaml = format!("{yaml}\nunknown: 2\n");
            let step = Step::post(id("yaml-twice"), path, yaml).dry().query(&query);
            scenario.add(step.content_type("application/yaml"));
        }
    }
    scenario.add(Step::post("unknown-default", path, &unknown).dry());
}

fn options(path: &str, object: &Value, scenario: &mut Scenario) {
    let long = format!("fieldManager={}", "m".repeat(129));
    let queries = [
        ("dry-run-odd", "dryRun=Some"),
        ("dry-run-twice", "dryRun=All&dryRun=All"),
        ("dry-run-empty", "dryRun=All&dryRun="),
        ("validation-odd", "dryRun=All&fieldValidation=Odd"),
        ("validation-empty", "dryRun=All&fieldValidation="),
        ("manager", "dryRun=All&fieldManager=me"),
        ("manager-long", &format!("dryRun=All&{long}")),
        ("manager-unprintable", "dryRun=All&fieldManager=a%07b"),
        ("pretty", "dryRun=All&pretty=true"),
        ("unknown-parameter", "dryRun=All&unknown=1"),
        ("timeout", "dryRun=All&timeout=10s"),
        ("timeout-odd", "dryRun=All&timeout=x"),
    ];
    for (id, query) in queries {
        scenario.add(Step::post(id, path, object).query(query));
    }
}

fn generated() -> Value {
    json!({"metadata": {"name": null, "generateName": GENERATED}})
}

fn bad_label() -> Value {
    json!({"metadata": {"labels": {"a b": "c"}}})
}
