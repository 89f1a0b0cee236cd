//! The lives of definitions: what the server says of them as they begin, change and end.

use serde_json::{Value, json};

use super::{DEFINITIONS, Group, with_spec};
use crate::step::{Language, Role, Scenario, Step};

pub(super) fn scenarios(run: &str) -> Vec<Scenario> {
    vec![life(run), names(run), versions(run), fields(run), status(run)]
}

/// What the server says once a definition is served.
const SERVED: Role = Role::AwaitText("InitialNamesAccepted");

fn any() -> Value {
    with_spec(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}))
}

/// From the beginning to an end that something holds up.
fn life(run: &str) -> Scenario {
    let group = Group::new(run, "life");
    let mut scenario = group.scenario("lives/life");
    let path = group.path("things");
    let things = group.things();
    scenario.add(Step::post("made", DEFINITIONS, group.definition(&any())).role(Role::Needed));
    scenario.add(Step::get("conditions", &path).role(SERVED));
    scenario.add(Step::get("served", &things).role(Role::Await));
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    scenario.add(Step::get("table", &path).accept(table));
    let mut held = group.thing("held", &json!({"a": 1}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    scenario.add(Step::post("held", &things, held));
    scenario.add(Step::post("free", &things, group.thing("free", &json!({}))));
    scenario.add(Step::delete("delete", &path));
    let in_progress = Role::AwaitText("InstanceDeletionInProgress");
    scenario.add(Step::get("ending", &path).role(in_progress));
    scenario.add(Step::get("free-after", &format!("{things}/free")).role(Role::AwaitGone));
    scenario.add(Step::get("held-after", &format!("{things}/held")));
    let late = group.thing("late", &json!({}));
    scenario.add(Step::post("create-while-ending", &things, late));
    scenario.add(Step::get("list-while-ending", &things));
    scenario.add(Step::delete("delete-again", &path));
    scenario.add(Step::get("discovery-while-ending", &format!("/apis/{}/v1", group.name)));
    let again = group.definition(&any());
    scenario.add(Step::post("again-while-ending", DEFINITIONS, again));
    let free = json!({"metadata": {"finalizers": null}});
    scenario.add(Step::patch("let-go", &format!("{things}/held"), Language::Merge, free));
    scenario.add(Step::get("gone", &path).role(Role::AwaitGone));
    scenario.add(Step::get("things-gone", &things).role(Role::AwaitGone));
    scenario
}

/// Names that others have.
fn names(run: &str) -> Scenario {
    let group = Group::new(run, "names");
    let mut scenario = group.scenario("lives/names");
    let named = |plural: &str, names: Value| {
        let mut definition = group.definition(&any());
        definition["metadata"]["name"] = format!("{plural}.{}", group.name).into();
        definition["spec"]["names"] = names;
        definition
    };
    let first =
        json!({"plural": "firsts", "singular": "one", "kind": "First", "shortNames": ["f"]});
    scenario.add(Step::post("first", DEFINITIONS, named("firsts", first)).role(Role::Needed));
    scenario.add(Step::get("first-served", &group.path("firsts")).role(SERVED));
    let cases = [
        ("kinds", json!({"plural": "kinds", "kind": "First"})),
        ("lists", json!({"plural": "lists", "kind": "Other", "listKind": "FirstList"})),
        ("singulars", json!({"plural": "singulars", "singular": "one", "kind": "Singular"})),
        (
            "shorts",
            json!({"plural": "shorts", "kind": "Short", "shortNames": ["f", "s", "firsts"]}),
        ),
        ("crosses", json!({"plural": "crosses", "singular": "firsts", "kind": "Cross"})),
        ("alls", json!({"plural": "alls", "singular": "firsts", "kind": "First"})),
    ];
    for (plural, names) in cases {
        let made = Step::post(plural, DEFINITIONS, named(plural, names));
        scenario.add(made);
        let path = group.path(plural);
        let told = Role::AwaitText("not all names are accepted");
        scenario.add(Step::get(format!("{plural}-conditions"), &path).role(told));
        scenario.add(Step::get(
            format!("{plural}-served"),
            &format!("/apis/{}/v1/{plural}", group.name),
        ));
    }
    let other = json!({"spec": {"names": {"kind": "Kind", "listKind": "KindList"}}});
    let kinds = group.path("kinds");
    scenario.add(Step::patch("kinds-renamed", &kinds, Language::Merge, other));
    scenario.add(Step::get("kinds-accepted", &kinds).role(SERVED));
    scenario.add(Step::delete("first-deleted", &group.path("firsts")));
    scenario.add(Step::get("first-gone", &group.path("firsts")).role(Role::AwaitGone));
    scenario.add(Step::get("singulars-accepted", &group.path("singulars")).role(SERVED));
    scenario
}

/// Versions that come and go.
fn versions(run: &str) -> Scenario {
    let group = Group::new(run, "versions");
    let mut scenario = group.scenario("lives/versions");
    let path = group.path("things");
    group.define(&any(), &mut scenario);
    scenario.add(Step::get("conditions", &path).role(SERVED));
    scenario.add(Step::post("old", &group.things(), group.thing("old", &json!({"a": 1}))));
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": any()}})
    };
    let merge = |id: &'static str, patch: Value| Step::patch(id, &path, Language::Merge, patch);
    let spec = |versions: Value| json!({"spec": {"versions": versions}});
    let two = spec(json!([version("v1", false), version("v2", true)]));
    scenario.add(merge("store-v2", two));
    let second = format!("/apis/{}/v2/things", group.name);
    scenario.add(Step::get("v2-served", &second).role(Role::Await));
    scenario.add(Step::get("stored-versions", &path));
    scenario.add(Step::get("old-as-v2", &format!("{second}/old")));
    scenario.add(Step::get("group", &format!("/apis/{}", group.name)));
    scenario.add(merge("drop-v1", spec(json!([version("v2", true)]))));
    let status = format!("{path}/status");
    let stored = |versions: Value| json!({"status": {"storedVersions": versions}});
    for (id, versions) in [
        ("none", json!([])),
        ("unknown", json!(["v2", "v7"])),
        ("without-storage", json!(["v1"])),
        ("twice", json!(["v2", "v2"])),
    ] {
        let patch = stored(versions);
        let id = format!("stored-{id}");
        scenario.add(Step::patch(id, &status, Language::Merge, patch).dry());
    }
    let migrated = Step::patch("migrated", &status, Language::Merge, stored(json!(["v2"])));
    scenario.add(migrated);
    scenario.add(merge("drop-v1-now", spec(json!([version("v2", true)]))));
    scenario.add(Step::get("v1-gone", &group.things()).role(Role::AwaitGone));
    scenario.add(Step::get("after", &path));
    let mixed = ["v2", "v10", "v1beta1", "v11alpha2", "foo1", "v1", "v3beta1", "foo10"];
    let mixed: Vec<Value> = mixed.iter().map(|name| version(name, *name == "v2")).collect();
    scenario.add(merge("many", spec(json!(mixed))));
    let last = format!("/apis/{}/foo10/things", group.name);
    scenario.add(Step::get("many-served", &last).role(Role::Await));
    let versions = Role::AwaitText("foo10");
    scenario.add(Step::get("many-in-order", &format!("/apis/{}", group.name)).role(versions));
    scenario.add(Step::get("bad-rename", &format!("/apis/{}/v9/things", group.name)));
    scenario
}

/// Fields that lists select by.
fn fields(run: &str) -> Scenario {
    let group = Group::new(run, "fields");
    let mut scenario = group.scenario("lives/fields");
    let schema = with_spec(&json!({"type": "object", "properties": {"color": {"type": "string"},
        "size": {"type": "integer"}, "on": {"type": "boolean"}, "other": {"type": "string"}}}));
    let mut definition = group.definition(&schema);
    definition["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.color"},
        {"jsonPath": ".spec.size"}, {"jsonPath": ".spec.on"}]);
    scenario.add(Step::post("definition", DEFINITIONS, definition).role(Role::Needed));
    let things = group.things();
    scenario.add(Step::get("served", &things).role(Role::Await));
    let values = [
        ("a", json!({"color": "red", "size": 1, "on": true})),
        ("b", json!({"color": "blue", "size": 2, "on": false})),
        ("c", json!({})),
    ];
    for (name, spec) in values {
        let made = Step::post(format!("make-{name}"), &things, group.thing(name, &spec));
        scenario.add(made.role(Role::Setup));
    }
    for selector in [
        "spec.color=red",
        "spec.color==blue",
        "spec.color!=red",
        "spec.color=",
        "spec.size=1",
        "spec.size=0",
        "spec.size=01",
        "spec.on=true",
        "spec.on=false",
        "spec.on=x",
        "spec.color=red,spec.size=2",
        "spec.color=red,metadata.name=a",
        "metadata.name=b",
        "metadata.namespace=",
        "spec.other=x",
        ".spec.color=red",
        "spec.color",
        "spec.color in (red)",
        "=",
    ] {
        let value = selector.replace('=', "%3D").replace(' ', "%20").replace('!', "%21");
        let query = format!("fieldSelector={value}");
        scenario.add(Step::get(selector, &things).query(&query));
    }
    scenario.add(Step::delete("delete", &things).query("fieldSelector=spec.color%3Dred"));
    scenario.add(
        Step::get("openapi", &format!("/openapi/v3/apis/{}/v1", group.name))
            .role(Role::AwaitText("x-kubernetes-selectable-fields")),
    );
    scenario
}

/// Rules and defaults of the parts that have paths of their own.
fn status(run: &str) -> Scenario {
    let group = Group::new(run, "status");
    let mut scenario = group.scenario("lives/status");
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"replicas": {"type": "integer", "maximum": 5}},
            "x-kubernetes-validations": [{"rule": "self.replicas != 3", "message": "not three"}]},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"},
                "phase": {"type": "string", "enum": ["On", "Off"]}},
            "x-kubernetes-validations": [
                {"rule": "!has(self.phase) || self.phase == 'On'", "message": "must be on"}]}},
        "x-kubernetes-validations": [
            {"rule": "!has(self.status) || self.status.replicas <= self.spec.replicas"},
            {"rule": "self.metadata.name != 'bad'", "message": "a bad name"},
            {"rule": "!has(self.metadata.generateName) || self.metadata.generateName != 'bad-'"}]});
    let mut definition = group.definition(&schema);
    definition["spec"]["versions"][0]["subresources"] = json!({"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}});
    scenario.add(Step::post("definition", DEFINITIONS, definition).role(Role::Needed));
    let things = group.things();
    scenario.add(Step::get("served", &things).role(Role::Await));
    let make = |name: &str, replicas: u8| group.thing(name, &json!({"replicas": replicas}));
    scenario.add(Step::post("bad-name", &things, make("bad", 1)));
    let mut generated = make("", 1);
    generated["metadata"] = json!({"generateName": "bad-"});
    scenario.add(Step::post("bad-prefix", &things, generated));
    scenario.add(Step::post("three", &things, make("x", 3)));
    scenario.add(Step::post("make", &things, make("x", 2)).role(Role::Needed));
    let status = format!("{things}/x/status");
    for (id, patch) in [
        ("more", json!({"status": {"replicas": 4}})),
        ("off", json!({"status": {"phase": "Off", "replicas": 1}})),
        ("odd", json!({"status": {"phase": "Odd"}})),
        ("spec-ignored", json!({"spec": {"replicas": 3}, "status": {"replicas": 1}})),
        ("fine", json!({"status": {"replicas": 2, "phase": "On"}})),
    ] {
        scenario.add(Step::patch(format!("status-{id}"), &status, Language::Merge, patch));
    }
    let scale = format!("{things}/x/scale");
    scenario.add(Step::get("scale", &scale));
    for replicas in [1, 3, 6, 4] {
        let patch = json!({"spec": {"replicas": replicas}});
        scenario.add(Step::patch(format!("scale-{replicas}"), &scale, Language::Merge, patch));
    }
    scenario
}
