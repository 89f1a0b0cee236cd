//! What a watch tells of the same changes, in every form.

use serde_json::json;
use steersman_rules::resource::Verb;

use super::kinds::{Kind, Place};
use crate::step::{Language, Role, Scenario, Step};

/// How long the watches of a scenario are open; the changes take less.
const OPEN: &str = "watch=1&timeoutSeconds=10";

/// What is watched and how: the query and the form of the answer.
const WATCHES: [(&str, &str, &str); 12] = [
    ("json", "resourceVersion=${list:/metadata/resourceVersion}", "application/json"),
    (
        "protobuf",
        "resourceVersion=${list:/metadata/resourceVersion}",
        "application/vnd.kubernetes.protobuf",
    ),
    ("yaml", "resourceVersion=${list:/metadata/resourceVersion}", "application/yaml"),
    (
        "table",
        "resourceVersion=${list:/metadata/resourceVersion}",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
    ),
    (
        "table-objects",
        "includeObject=Object&resourceVersion=${list:/metadata/resourceVersion}",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
    ),
    (
        "metadata",
        "resourceVersion=${list:/metadata/resourceVersion}",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ),
    (
        "metadata-protobuf",
        "resourceVersion=${list:/metadata/resourceVersion}",
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ),
    ("from-now", "", "application/json"),
    ("from-any", "resourceVersion=0", "application/json"),
    (
        "initial-events",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        "application/json",
    ),
    (
        "initial-events-table",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
    ),
    (
        "initial-events-metadata",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ),
];

pub(super) fn scenarios(kinds: &[Kind], run: &str) -> Vec<Scenario> {
    let watched = kinds.iter().filter(|kind| kind.is_stored() && kind.can(Verb::Watch));
    watched
        .map(|kind| {
            let (mut scenario, place) = kind.scenario(run, "watch");
            steps(kind, &place, &mut scenario);
            scenario
        })
        .collect()
}

pub(super) fn steps(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let path = kind.path(place, "x");
    let old = kind.path(place, "old");
    let list = place.list();
    let object = kind.object(place, "old");
    scenario.add(Step::post("make", &place.collection, object).role(Role::Needed));
    scenario.add(Step::get("list", &list).role(Role::Setup).keep("list"));
    for (id, query, form) in WATCHES {
        let step = Step::get(id, &list).query(OPEN).query(query).accept(form);
        scenario.add(step.role(Role::Watch));
    }
    let from = "resourceVersion=${list:/metadata/resourceVersion}";
    let step = Step::get("labels", &format!("{list},state%3Don")).query(OPEN).query(from);
    scenario.add(step.role(Role::Watch));
    let name = format!("fieldSelector=metadata.name%3D{}", kind.name(place, "x"));
    let step = Step::get("name", &list).query(OPEN).query(from).query(&name);
    scenario.add(step.role(Role::Watch));
    let add = |step: Step, scenario: &mut Scenario| scenario.add(step.role(Role::Setup));
    let state = |value| json!({"metadata": {"labels": {"state": value}}});
    add(Step::post("create", &place.collection, kind.object(place, "x")), scenario);
    add(Step::patch("on", &path, Language::Merge, state(json!("on"))), scenario);
    add(Step::patch("same", &path, Language::Merge, state(json!("on"))), scenario);
    add(Step::patch("old-on", &old, Language::Merge, state(json!("on"))), scenario);
    add(Step::patch("off", &path, Language::Merge, state(json!(null))), scenario);
    let status = format!("{path}/status");
    let annotation = json!({"metadata": {"annotations": {"a": "b"}}});
    add(Step::patch("status", &status, Language::Merge, annotation), scenario);
    add(Step::delete("delete-old", &old), scenario);
    add(Step::delete("delete", &path).query("gracePeriodSeconds=0"), scenario);
}
