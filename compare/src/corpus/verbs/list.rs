//! GET of a collection: forms, selectors, pages, versions.

use steersman_rules::resource::Verb;

use super::FORMS;
use crate::corpus::kinds::{Kind, Place};
use crate::step::{Role, Scenario, Step};

const QUERIES: [(&str, &str); 50] = [
    ("limit-two", "limit=2"),
    ("limit-zero", "limit=0"),
    ("limit-negative", "limit=-1"),
    ("limit-odd", "limit=abc"),
    ("continue-odd", "continue=abc"),
    ("continue-odd-json", "continue=e30"),
    ("continue-and-version", "limit=1&continue=${page:/metadata/continue}&resourceVersion=1"),
    (
        "continue-and-match",
        "limit=1&continue=${page:/metadata/continue}&resourceVersionMatch=Exact",
    ),
    ("labels", "labelSelector=compare"),
    ("labels-none", "labelSelector=compare%3Dnobody"),
    ("labels-set", "labelSelector=a%20in%20(b,c)"),
    ("labels-not", "labelSelector=!a"),
    ("labels-odd", "labelSelector=a%3D%3D%3Db"),
    ("labels-odd-set", "labelSelector=a%20within%20(b)"),
    ("labels-odd-key", "labelSelector=a%20b%3Dc"),
    ("labels-odd-value", "labelSelector=a%3Db%20c"),
    ("labels-comma", "labelSelector=,"),
    ("labels-more-than", "labelSelector=a%3E1"),
    ("labels-more-than-text", "labelSelector=a%3Ex"),
    ("fields-other-name", "fieldSelector=metadata.name%21%3Dnobody"),
    ("fields-no-name", "fieldSelector=metadata.name%3Dnobody"),
    ("fields-namespace", "fieldSelector=metadata.namespace%3Ddefault"),
    ("fields-unknown", "fieldSelector=spec.unknown%3Dx"),
    ("fields-odd", "fieldSelector=abc"),
    ("fields-odd-operator", "fieldSelector=metadata.name%3E1"),
    ("fields-empty", "fieldSelector="),
    ("version-empty", "resourceVersion="),
    ("version-zero", "resourceVersion=0"),
    ("version-odd", "resourceVersion=abc"),
    ("version-negative", "resourceVersion=-1"),
    ("version-own", "resourceVersion=${list:/metadata/resourceVersion}"),
    ("exact", "resourceVersion=${list:/metadata/resourceVersion}&resourceVersionMatch=Exact"),
    ("exact-zero", "resourceVersion=0&resourceVersionMatch=Exact"),
    ("exact-alone", "resourceVersionMatch=Exact"),
    (
        "not-older",
        "resourceVersion=${list:/metadata/resourceVersion}&resourceVersionMatch=NotOlderThan",
    ),
    ("not-older-zero", "resourceVersion=0&resourceVersionMatch=NotOlderThan"),
    ("match-odd", "resourceVersion=0&resourceVersionMatch=Odd"),
    ("match-odd-alone", "resourceVersionMatch=Odd"),
    ("initial-events", "sendInitialEvents=true"),
    ("initial-events-odd", "sendInitialEvents=odd"),
    ("initial-events-watch", "watch=1&sendInitialEvents=true&timeoutSeconds=1"),
    (
        "initial-events-exact",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact&timeoutSeconds=1",
    ),
    ("watch-match", "watch=1&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"),
    ("watch-continue", "watch=1&continue=abc&timeoutSeconds=1"),
    ("watch-version-odd", "watch=1&resourceVersion=abc&timeoutSeconds=1"),
    ("watch-odd", "watch=odd&timeoutSeconds=1"),
    ("timeout-seconds-odd", "timeoutSeconds=abc"),
    ("timeout-odd", "timeout=abc"),
    ("bookmarks", "allowWatchBookmarks=true"),
    ("bookmarks-odd", "allowWatchBookmarks=odd"),
];

pub(super) fn steps(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let list = if kind.is_stored() { place.list() } else { place.collection.clone() };
    if kind.is_stored() {
        scenario.add(Step::get("empty", &list));
        for tag in ["x", "y", "z"] {
            let step =
                Step::post(format!("make-{tag}"), &place.collection, kind.object(place, tag));
            scenario.add(step.role(Role::Needed));
        }
    }
    scenario.add(Step::get("plain", &list).keep("list"));
    for (id, form) in FORMS {
        let form = form.replace("PartialObjectMetadata;", "PartialObjectMetadataList;");
        scenario.add(Step::get(format!("as-{id}"), &list).accept(&form));
    }
    forms(&list, scenario);
    scenario.add(Step::get("page", &list).query("limit=1").keep("page"));
    let next = "limit=1&continue=${page:/metadata/continue}";
    scenario.add(Step::get("next-page", &list).query(next));
    for (id, query) in QUERIES {
        match query.strip_prefix("labelSelector=") {
            // Of several selectors only the first counts.
            Some(more) if kind.is_stored() => {
                scenario.add(Step::get(id, &format!("{list},{more}")));
            }
            _ => scenario.add(Step::get(id, &list).query(query)),
        }
    }
    for field in &kind.resource.selectable_fields {
        for operator in ["%3D", "%21%3D"] {
            let id = format!("field-{field}{}", if operator == "%3D" { "" } else { "-not" });
            let query = format!("fieldSelector={field}{operator}x");
            scenario.add(Step::get(id, &list).query(&query));
        }
    }
    let name = kind.name(place, "x");
    let query = format!("fieldSelector=metadata.name%3D{name}");
    scenario.add(Step::get("field-name", &list).query(&query));
    scenario.add(Step::get("everywhere", &place.ours(&place.everywhere)));
    scenario.add(Step::new("PUT", "put", &list).body(kind.object(place, "x")));
    scenario.add(Step::new("PATCH", "patch", &list).body("{}"));
    if !kind.can(Verb::DeleteCollection) {
        scenario.add(Step::delete("delete", &list));
    }
}

fn forms(list: &str, scenario: &mut Scenario) {
    let metadata = "as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let more = [
        (
            "metadata-v1beta1",
            "application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io",
        ),
        ("metadata-protobuf", &format!("application/vnd.kubernetes.protobuf;{metadata}")),
        ("metadata-yaml", &format!("application/yaml;{metadata}")),
        ("one-metadata", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
    ];
    for (id, form) in more {
        scenario.add(Step::get(format!("as-{id}"), list).accept(form));
    }
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for include in ["None", "Object", "Metadata", "Odd"] {
        let step = Step::get(format!("table-with-{}", include.to_lowercase()), list);
        scenario.add(step.accept(table).query(&format!("includeObject={include}")));
    }
    scenario.add(Step::get("table-page", list).accept(table).query("limit=1"));
}
