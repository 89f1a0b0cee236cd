//! PUT: versions, names, fields that stay.

use serde_json::{Value, json};

use super::{FORMS, make};
use crate::corpus::kinds::{Kind, Place};
use crate::step::{Body, Role, Scenario, Step};

pub(super) fn steps(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    make(kind, place, scenario);
    let path = kind.path(place, "x");
    let changed = |change: Value| Body::Kept("object", change);
    let put = |id: &str, change: Value| Step::put(id, &path, changed(change));
    // Controllers within a server may have written since.
    let fresh = |id: &str, name| Step::get(id, &path).role(Role::Setup).keep(name);
    scenario.add(fresh("fresh", "object"));
    scenario.add(put("unchanged", json!({})));
    let label = json!({"metadata": {"labels": {"changed": "yes"}}});
    scenario.add(put("dry-run", label.clone()).dry());
    scenario.add(put("label", label));
    scenario.add(fresh("newer", "newer"));
    scenario.add(put("stale", json!({"metadata": {"labels": {"changed": "late"}}})));
    versions(&path, scenario);
    for (id, change) in metadata() {
        scenario.add(Step::put(id, &path, Body::Kept("newer", change)).dry());
    }
    for (index, stays) in kind.stays.iter().enumerate() {
        let body = Body::Kept("newer", stays.clone());
        scenario.add(Step::put(format!("stays-{index}"), &path, body).dry());
    }
    for (index, refused) in kind.refuses.iter().enumerate() {
        let body = Body::Kept("newer", refused.clone());
        scenario.add(Step::put(format!("refused-{index}"), &path, body).dry());
    }
    for (id, form) in FORMS {
        let step = Step::put(format!("as-{id}"), &path, Body::Kept("newer", json!({})));
        scenario.add(step.accept(form).dry());
    }
    options(kind, place, scenario);
    missing(kind, place, scenario);
    scenario.add(Step::get("stored", &path));
}

fn versions(path: &str, scenario: &mut Scenario) {
    let versions = [
        ("rv-empty", ""),
        ("rv-zero", "0"),
        ("rv-zeros", "00"),
        ("rv-odd", "abc"),
        ("rv-negative", "-1"),
        ("rv-one", "1"),
        ("rv-future", "999999999999"),
        ("rv-huge", "99999999999999999999999"),
    ];
    for (id, version) in versions {
        let change = json!({"metadata": {"resourceVersion": version, "labels": {"rv": id}}});
        let body = Body::Kept("newer", change);
        scenario.add(Step::put(id, path, body).dry());
    }
}

fn metadata() -> Vec<(&'static str, Value)> {
    vec![
        ("other-name", json!({"metadata": {"name": "other"}})),
        ("no-name", json!({"metadata": {"name": null}})),
        ("other-namespace", json!({"metadata": {"namespace": "other"}})),
        ("no-namespace", json!({"metadata": {"namespace": null}})),
        ("other-uid", json!({"metadata": {"uid": "other"}})),
        ("no-uid", json!({"metadata": {"uid": null}})),
        ("other-kind", json!({"kind": "Other"})),
        ("other-version", json!({"apiVersion": "other/v1"})),
        ("no-type", json!({"apiVersion": null, "kind": null})),
        ("bad-label", json!({"metadata": {"labels": {"a b": "c"}}})),
        ("generation", json!({"metadata": {"generation": 77}})),
        ("created", json!({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}})),
        ("no-created", json!({"metadata": {"creationTimestamp": null}})),
        ("deleted", json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}})),
        ("grace", json!({"metadata": {"deletionGracePeriodSeconds": 3}})),
        ("managers-none", json!({"metadata": {"managedFields": null}})),
        ("managers-empty", json!({"metadata": {"managedFields": [{}]}})),
        ("managers-odd", json!({"metadata": {"managedFields": [{"manager": "m"}]}})),
        ("finalizer", json!({"metadata": {"finalizers": ["example.com/x"]}})),
        ("bad-finalizer", json!({"metadata": {"finalizers": ["x"]}})),
        ("annotation", json!({"metadata": {"annotations": {"a": "b"}}})),
        ("generate-name", json!({"metadata": {"generateName": "other-"}})),
        ("self-link", json!({"metadata": {"selfLink": "/x"}})),
        ("no-metadata", json!({"metadata": null})),
        ("no-spec", json!({"spec": null})),
        ("no-status", json!({"status": null})),
        ("status", json!({"status": {"unknown": 1}})),
        (
            "owner",
            json!({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}]}}),
        ),
    ]
}

fn options(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let path = kind.path(place, "x");
    let same = || Body::Kept("newer", json!({"unknown": 1}));
    let queries = [
        ("unknown-strict", "dryRun=All&fieldValidation=Strict"),
        ("unknown-warn", "dryRun=All&fieldValidation=Warn"),
        ("validation-odd", "dryRun=All&fieldValidation=Odd"),
        ("dry-run-odd", "dryRun=Odd"),
        ("manager", "dryRun=All&fieldManager=me"),
        ("force", "dryRun=All&force=true"),
    ];
    for (id, query) in queries {
        scenario.add(Step::put(id, &path, same()).query(query));
    }
    for (id, body) in
        [("body-empty", ""), ("body-list", "[]"), ("body-cut", "{"), ("body-object", "{}")]
    {
        scenario.add(Step::put(id, &path, body).dry());
    }
    scenario.add(Step::put("text", &path, same()).content_type("text/plain").dry());
}

fn missing(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let path = kind.path(place, "missing");
    let object = kind.object(place, "missing");
    let with = |change: Value| kind.changed(place, "missing", &change);
    scenario.add(Step::put("missing-dry-run", &path, &object).dry());
    let version = with(json!({"metadata": {"resourceVersion": "5"}}));
    scenario.add(Step::put("missing-rv", &path, version));
    let uid = with(json!({"metadata": {"uid": "u"}}));
    scenario.add(Step::put("missing-uid", &path, uid));
    let invalid = with(json!({"metadata": {"labels": {"a b": "c"}}}));
    scenario.add(Step::put("missing-invalid", &path, invalid));
    scenario.add(Step::put("missing", &path, &object));
}
