//! PATCH in its four languages.

use serde_json::{Value, json};

use super::{FORMS, make};
use crate::corpus::kinds::{Kind, Place};
use crate::step::{Body, Language, Scenario, Step};

/// How many of the first cases of a language are written; the others, on which servers may
/// differ, must not change what follows.
const WRITTEN: usize = 4;

pub(super) fn steps(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    make(kind, place, scenario);
    let path = kind.path(place, "x");
    json_patches(&path, scenario);
    merges(&path, Language::Merge, scenario);
    merges(&path, Language::Strategic, scenario);
    directives(&path, scenario);
    for (index, change) in kind.refuses.iter().chain(&kind.stays).enumerate() {
        for language in [Language::Merge, Language::Strategic] {
            let id = format!("{}-refused-{index}", language.name());
            scenario.add(Step::patch(id, &path, language, change).dry());
        }
    }
    media_types(&path, scenario);
    applies(kind, place, scenario);
    missing(kind, place, scenario);
    scenario.add(Step::get("stored", &path));
}

fn json_patches(path: &str, scenario: &mut Scenario) {
    let add = json!([{"op": "add", "path": "/metadata/labels/json", "value": "a"}]);
    let cases = [
        ("add", add.to_string()),
        ("replace", r#"[{"op":"replace","path":"/metadata/labels/json","value":"b"}]"#.into()),
        ("test", r#"[{"op":"test","path":"/metadata/labels/json","value":"b"}]"#.into()),
        ("test-fails", r#"[{"op":"test","path":"/metadata/labels/json","value":"c"}]"#.into()),
        ("remove", r#"[{"op":"remove","path":"/metadata/labels/json"}]"#.into()),
        ("remove-again", r#"[{"op":"remove","path":"/metadata/labels/json"}]"#.into()),
        ("replace-absent", r#"[{"op":"replace","path":"/metadata/none/x","value":"b"}]"#.into()),
        ("add-below-absent", r#"[{"op":"add","path":"/none/x","value":"b"}]"#.into()),
        ("copy", r#"[{"op":"copy","from":"/metadata/name","path":"/metadata/labels/n"}]"#.into()),
        ("move-absent", r#"[{"op":"move","from":"/none","path":"/metadata/labels/n"}]"#.into()),
        ("odd-operation", r#"[{"op":"odd","path":"/metadata/labels/x","value":"b"}]"#.into()),
        ("no-path", r#"[{"op":"add","value":"b"}]"#.into()),
        ("no-value", r#"[{"op":"add","path":"/metadata/labels/x"}]"#.into()),
        ("name", r#"[{"op":"replace","path":"/metadata/name","value":"other"}]"#.into()),
        ("uid", r#"[{"op":"replace","path":"/metadata/uid","value":"other"}]"#.into()),
        ("kind", r#"[{"op":"replace","path":"/kind","value":"Other"}]"#.into()),
        ("label-is-number", r#"[{"op":"add","path":"/metadata/labels/x","value":1}]"#.into()),
        ("metadata-is-text", r#"[{"op":"replace","path":"/metadata","value":"x"}]"#.into()),
        ("root", r#"[{"op":"replace","path":"","value":{}}]"#.into()),
        ("nothing", "[]".into()),
        ("object", "{}".into()),
        ("empty", String::new()),
        ("cut", "[".into()),
        ("null", "null".into()),
        ("text", "\"x\"".into()),
        ("unknown", r#"[{"op":"add","path":"/unknown","value":1}]"#.into()),
    ];
    for (index, (id, body)) in cases.into_iter().enumerate() {
        let step = Step::patch(format!("json-{id}"), path, Language::Json, body);
        scenario.add(if index < WRITTEN { step } else { step.dry() });
    }
    let unknown = r#"[{"op":"add","path":"/unknown","value":1,"odd":2}]"#;
    let step = Step::patch("json-unknown-strict", path, Language::Json, unknown);
    scenario.add(step.query("fieldValidation=Strict"));
    let dry = Step::patch("json-dry-run", path, Language::Json, &add).dry();
    scenario.add(dry);
}

fn merges(path: &str, language: Language, scenario: &mut Scenario) {
    let name = language.name();
    let version = |version: &str| {
        json!({"metadata": {"resourceVersion": version, "labels": {"v": version}}}).to_string()
    };
    let cases = [
        ("label", json!({"metadata": {"labels": {name: "a"}}}).to_string()),
        ("same-again", json!({"metadata": {"labels": {name: "a"}}}).to_string()),
        ("remove", json!({"metadata": {"labels": {name: null}}}).to_string()),
        ("remove-again", json!({"metadata": {"labels": {name: null}}}).to_string()),
        ("nothing", "{}".into()),
        ("name", json!({"metadata": {"name": "other"}}).to_string()),
        ("namespace", json!({"metadata": {"namespace": "other"}}).to_string()),
        ("uid", json!({"metadata": {"uid": "other"}}).to_string()),
        ("kind", json!({"kind": "Other"}).to_string()),
        ("version", json!({"apiVersion": "other/v1"}).to_string()),
        ("rv-empty", version("")),
        ("rv-zero", version("0")),
        ("rv-odd", version("abc")),
        ("rv-stale", version("1")),
        ("rv-first", version("${object:/metadata/resourceVersion}")),
        ("bad-label", json!({"metadata": {"labels": {"a b": "c"}}}).to_string()),
        ("label-is-number", json!({"metadata": {"labels": {"a": 1}}}).to_string()),
        ("labels-are-text", json!({"metadata": {"labels": "x"}}).to_string()),
        ("metadata-is-null", json!({"metadata": null}).to_string()),
        ("metadata-is-text", json!({"metadata": "x"}).to_string()),
        ("spec-is-text", json!({"spec": "x"}).to_string()),
        ("created", json!({"metadata": {"creationTimestamp": null}}).to_string()),
        ("managers", json!({"metadata": {"managedFields": []}}).to_string()),
        ("managers-reset", json!({"metadata": {"managedFields": [{}]}}).to_string()),
        ("status", json!({"status": {"unknown": 1}}).to_string()),
        ("finalizer", json!({"metadata": {"finalizers": ["x"]}}).to_string()),
        ("empty", String::new()),
        ("cut", "{".into()),
        ("null", "null".into()),
        ("list", "[]".into()),
        ("text", "\"x\"".into()),
        ("number", "3".into()),
        ("trailing", "{} x".into()),
    ];
    for (index, (id, body)) in cases.into_iter().enumerate() {
        let step = Step::patch(format!("{name}-{id}"), path, language, body);
        scenario.add(if index < WRITTEN { step } else { step.dry() });
    }
    let unknown = json!({"unknown": 1, "metadata": {"odd": 2}});
    let queries = [
        ("unknown", "dryRun=All"),
        ("unknown-strict", "dryRun=All&fieldValidation=Strict"),
        ("unknown-warn", "dryRun=All&fieldValidation=Warn"),
        ("force", "dryRun=All&force=true"),
        ("force-odd", "dryRun=All&force=odd"),
        ("manager", "dryRun=All&fieldManager=me"),
        ("manager-unprintable", "dryRun=All&fieldManager=a%07b"),
        ("dry-run-odd", "dryRun=odd"),
    ];
    for (id, query) in queries {
        let step = Step::patch(format!("{name}-{id}"), path, language, &unknown);
        scenario.add(step.query(query));
    }
    let twice = r#"{"metadata":{"labels":{"a":"b","a":"c"}}}"#;
    for level in ["Strict", "Warn"] {
        let id = format!("{name}-twice-{}", level.to_lowercase());
        let step = Step::patch(id, path, language, twice).dry();
        scenario.add(step.query(&format!("fieldValidation={level}")));
    }
    let forms = FORMS.iter().filter(|_| language == Language::Merge);
    for (id, form) in forms {
        let label = json!({"metadata": {"labels": {"form": id}}});
        let step = Step::patch(format!("{name}-as-{id}"), path, language, label);
        scenario.add(step.accept(form).dry());
    }
}

/// What strategic merge patches say to themselves.
fn directives(path: &str, scenario: &mut Scenario) {
    let cases = [
        ("replace", json!({"metadata": {"annotations": {"$patch": "replace", "a": "b"}}})),
        ("delete", json!({"metadata": {"annotations": {"$patch": "delete"}}})),
        ("merge", json!({"metadata": {"annotations": {"$patch": "merge", "a": "b"}}})),
        ("odd", json!({"metadata": {"annotations": {"$patch": "odd"}}})),
        ("number", json!({"metadata": {"annotations": {"$patch": 1}}})),
        ("retain-keys", json!({"metadata": {"annotations": {"$retainKeys": ["b"], "b": "c"}}})),
        ("retain-keys-odd", json!({"metadata": {"annotations": {"$retainKeys": "b"}}})),
        ("finalizers", json!({"metadata": {"finalizers": ["example.com/a"]}})),
        ("finalizers-more", json!({"metadata": {"finalizers": ["example.com/b"]}})),
        (
            "finalizers-order",
            json!({"metadata": {
            "$setElementOrder/finalizers": ["example.com/b", "example.com/a"],
            "finalizers": ["example.com/b"]}}),
        ),
        (
            "finalizers-gone",
            json!({"metadata": {
            "$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b"]}}),
        ),
        (
            "owners",
            json!({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u1"}]}}),
        ),
        ("owners-merge", json!({"metadata": {"ownerReferences": [{"uid": "u1", "name": "b"}]}})),
        ("owners-no-key", json!({"metadata": {"ownerReferences": [{"name": "b"}]}})),
        (
            "owners-gone",
            json!({"metadata": {"ownerReferences": [
            {"$patch": "delete", "uid": "u1"}]}}),
        ),
        ("root-delete", json!({"$patch": "delete"})),
    ];
    for (id, patch) in cases {
        let id = format!("directive-{id}");
        scenario.add(Step::patch(id, path, Language::Strategic, patch));
    }
}

fn media_types(path: &str, scenario: &mut Scenario) {
    for media_type in ["application/json", "application/yaml", "text/plain", "nonsense", "a/b/c"] {
        let id = format!("content-type-{}", media_type.replace('/', "-"));
        let step = Step::new("PATCH", id, path).body("{}").content_type(media_type);
        scenario.add(step.dry());
    }
    let charset = "application/merge-patch+json; charset=utf-8";
    let step = Step::new("PATCH", "content-type-charset", path).body("{}").content_type(charset);
    scenario.add(step.dry());
    let upper = "Application/Merge-Patch+JSON";
    let step = Step::new("PATCH", "content-type-case", path).body("{}").content_type(upper);
    scenario.add(step.dry());
}

fn applies(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let path = kind.path(place, "applied");
    let with = |change: Value| kind.changed(place, "applied", &change);
    let apply = |id: &str, body: Value, query: &str| {
        Step::patch(format!("apply-{id}"), &path, Language::Apply, body).query(query)
    };
    let label = |value: &str| with(json!({"metadata": {"labels": {"a": value}}}));
    scenario.add(apply("dry-run", label("1"), "fieldManager=one&dryRun=All"));
    scenario.add(apply("create", label("1"), "fieldManager=one").keep("applied"));
    scenario.add(apply("again", label("1"), "fieldManager=one"));
    scenario.add(apply("conflict", label("2"), "fieldManager=two"));
    scenario.add(apply("conflict-dry-run", label("2"), "fieldManager=two&dryRun=All"));
    scenario.add(apply("force", label("2"), "fieldManager=two&force=true"));
    scenario.add(apply("lost", label("1"), "fieldManager=one"));
    scenario.add(apply("less", with(json!({"metadata": {"labels": null}})), "fieldManager=two"));
    scenario.add(apply("no-manager", label("1"), "force=true"));
    scenario.add(apply("force-odd", label("1"), "fieldManager=one&force=odd"));
    let cases = [
        ("other-name", json!({"metadata": {"name": "other"}})),
        ("no-name", json!({"metadata": {"name": null}})),
        ("other-kind", json!({"kind": "Other"})),
        ("no-kind", json!({"kind": null})),
        ("other-version", json!({"apiVersion": "other/v1"})),
        ("no-version", json!({"apiVersion": null})),
        ("managers", json!({"metadata": {"managedFields": [{"manager": "m"}]}})),
        ("managers-empty", json!({"metadata": {"managedFields": []}})),
        ("uid", json!({"metadata": {"uid": "other"}})),
        ("version-odd", json!({"metadata": {"resourceVersion": "abc"}})),
        ("version-stale", json!({"metadata": {"resourceVersion": "1"}})),
        ("bad-label", json!({"metadata": {"labels": {"a b": "c"}}})),
        ("label-is-number", json!({"metadata": {"labels": {"a": 1}}})),
        ("spec-is-text", json!({"spec": "x"})),
        ("unknown", json!({"unknown": 1})),
        ("status", json!({"status": {"unknown": 1}})),
    ];
    for (id, change) in cases {
        scenario.add(apply(id, with(change), "fieldManager=one&force=true&dryRun=All"));
    }
    let unknown = with(json!({"unknown": 1}));
    for level in ["Strict", "Warn", "Ignore"] {
        let query = format!("fieldManager=one&dryRun=All&force=true&fieldValidation={level}");
        let id = format!("unknown-{}", level.to_lowercase());
        scenario.add(apply(&id, unknown.clone(), &query));
    }
    for (id, body) in
        [("empty", ""), ("cut", "{"), ("list", "[]"), ("broken", "a: b: c"), ("null", "null")]
    {
        let step = Step::patch(format!("apply-body-{id}"), &path, Language::Apply, body);
        scenario.add(step.query("fieldManager=one"));
    }
    let update = Body::Kept(
        "applied",
        json!({"metadata": {"resourceVersion": null,
        "labels": {"a": "3"}, "managedFields": null}}),
    );
    scenario.add(Step::put("apply-then-update", &path, update).query("fieldManager=three"));
    scenario.add(Step::get("applied", &path));
}

fn missing(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let path = kind.path(place, "missing");
    for language in Language::ALL {
        let body = if language == Language::Json { json!([]) } else { json!({}) };
        let id = format!("missing-{}", language.name());
        scenario.add(Step::patch(id, &path, language, body).query("fieldManager=m"));
    }
    let uid = json!({"metadata": {"uid": "u"}});
    scenario.add(Step::patch("missing-uid", &path, Language::Merge, uid));
}
