//! The table of comparisons: wanted, there, ours, found.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::comparison::{Difference, Why, compare};
use crate::context::AppliedMemory;

/// Whole objects around a `spec`, of which `ours` is ours.
fn differences(wanted: &Value, actual: &Value, ours: &Value) -> Vec<(String, Why)> {
    let wanted = json!({"apiVersion": "v1", "kind": "Thing",
        "metadata": {"name": "a", "namespace": "b"}, "spec": wanted});
    let actual = json!({"apiVersion": "v1", "kind": "Thing", "spec": actual,
        "metadata": {"name": "a", "namespace": "b", "uid": "1", "generation": 4,
        "managedFields": [
            {"manager": "me", "operation": "Update", "apiVersion": "v1", "fieldsV1": {}},
            {"manager": "me", "operation": "Apply", "apiVersion": "v1",
                "fieldsV1": {"f:spec": ours}}]},
        "status": {"observed": true}});
    found(&compare(&wanted, &actual, "me"))
}

fn found(differences: &[Difference]) -> Vec<(String, Why)> {
    differences.iter().map(|it| (it.path.clone(), it.why)).collect()
}

/// Wanted, there, ours, and what is found.
type Row<'a> = (Value, Value, Value, &'a [(&'a str, Why)]);

#[test]
fn only_what_we_own_and_want_is_looked_at() {
    let none: &[(&str, Why)] = &[];
    let table: &[Row<'_>] = &[
        // Scalars.
        (json!({"n": 3}), json!({"n": 3}), json!({"f:n": {}}), none),
        (json!({"n": 3}), json!({"n": 2}), json!({"f:n": {}}), &[(".spec.n", Why::Differs)]),
        (json!({"n": 3}), json!({}), json!({"f:n": {}}), &[(".spec.n", Why::Differs)]),
        (json!({"n": 3}), json!({"n": 3.0}), json!({"f:n": {}}), none),
        // Defaults and fields of others.
        (json!({"n": 3}), json!({"n": 3, "default": 1}), json!({"f:n": {}}), none),
        (json!({"n": 3}), json!({"n": 3}), json!({"f:x": {}}), &[(".spec.n", Why::NotOurs)]),
        (json!({"n": 3}), json!({"n": 2}), json!({"f:x": {}}), &[(".spec.n", Why::Differs)]),
        // What we set before.
        (
            json!({"n": 3}),
            json!({"n": 3, "old": 1}),
            json!({"f:n": {}, "f:old": {}}),
            &[(".spec.old", Why::Unwanted)],
        ),
        (
            json!({"n": 3, "old": null}),
            json!({"n": 3, "old": 1}),
            json!({"f:n": {}, "f:old": {}}),
            &[(".spec.old", Why::Unwanted)],
        ),
        (json!({"n": 3}), json!({"n": 3}), json!({"f:n": {}, "f:old": {}}), none),
        // Nothing, where that says something.
        (json!({"e": {}}), json!({"e": {}}), json!({"f:e": {}}), none),
        (json!({"e": {}}), json!({"host": 1}), json!({"f:x": {}}), &[(".spec.e", Why::Differs)]),
        (
            json!({"l": [{"select": {}}]}),
            json!({"l": [{}]}),
            json!({"f:l": {}}),
            &[(".spec.l", Why::Differs)],
        ),
        // Nothing, written in different ways.
        (json!({"m": {}, "l": [], "x": null}), json!({}), json!({"f:m": {}}), none),
        (json!({"m": {"a": {}}}), json!({"m": {}}), json!({"f:m": {"f:a": {}}}), none),
        (
            json!({"m": {}}),
            json!({"m": {"a": 1}}),
            json!({"f:m": {}}),
            &[(".spec.m", Why::Differs)],
        ),
        // Amounts, but only where there are any.
        (
            json!({"limits": {"cpu": "1000m"}}),
            json!({"limits": {"cpu": "1"}}),
            json!({"f:limits": {"f:cpu": {}}}),
            none,
        ),
        (
            json!({"data": {"cpu": "1000m"}}),
            json!({"data": {"cpu": "1"}}),
            json!({"f:data": {"f:cpu": {}}}),
            &[(".spec.data.cpu", Why::Differs)],
        ),
    ];
    for (wanted, actual, ours, expected) in table {
        let expected: Vec<_> = expected.iter().map(|(p, why)| ((*p).to_owned(), *why)).collect();
        assert_eq!(differences(wanted, actual, ours), expected, "{wanted} beside {actual}");
    }
}

#[test]
fn items_with_keys_are_compared_one_by_one() {
    let ours = json!({"f:c": {
        "k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:image": {}},
        "k:{\"name\":\"b\"}": {".": {}, "f:name": {}}}});
    let item = |name: &str, image: &str| json!({"name": name, "image": image});
    let injected = json!({"c": [item("sidecar", "s"), {"name": "a", "image": "1", "pull": "Always"},
        {"name": "b", "image": "theirs"}]});
    let wanted = json!({"c": [item("a", "1"), {"name": "b"}]});
    assert_eq!(differences(&wanted, &injected, &ours), []);
    let newer = json!({"c": [item("a", "2"), {"name": "b"}]});
    let path = ".spec.c[name=a].image".to_owned();
    assert_eq!(differences(&newer, &injected, &ours), [(path, Why::Differs)]);
    let fewer = json!({"c": [item("a", "1")]});
    let path = ".spec.c[name=b]".to_owned();
    assert_eq!(differences(&fewer, &injected, &ours), [(path, Why::Unwanted)]);
    let more = json!({"c": [item("a", "1"), {"name": "b"}, {"name": "new"}]});
    assert_eq!(differences(&more, &injected, &ours), [(".spec.c".to_owned(), Why::NotOurs)]);
    let turned = json!({"c": [{"name": "b"}, item("a", "1")]});
    assert_eq!(differences(&turned, &injected, &ours), [(".spec.c".to_owned(), Why::Order)]);
    let gone = json!({"c": [item("a", "1")]});
    let path = ".spec.c[name=b]".to_owned();
    assert_eq!(differences(&wanted, &gone, &ours), [(path, Why::Differs)]);
}

#[test]
fn keys_may_have_defaults_that_we_do_not_write() {
    let ours = json!({"f:ports": {
        "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
        "k:{\"port\":80,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}}}});
    let actual = json!({"ports": [{"port": 80, "protocol": "TCP", "targetPort": 80},
        {"port": 80, "protocol": "UDP", "targetPort": 80}]});
    let wanted = json!({"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]});
    assert_eq!(differences(&wanted, &actual, &ours), []);
}

#[test]
fn sets_are_compared_by_their_values() {
    let ours = json!({"f:s": {"v:\"a\"": {}, "v:\"b\"": {}}});
    let actual = json!({"s": ["other", "a", "b"]});
    assert_eq!(differences(&json!({"s": ["a", "b"]}), &actual, &ours), []);
    let path = ".spec.s[=\"b\"]".to_owned();
    assert_eq!(differences(&json!({"s": ["a"]}), &actual, &ours), [(path, Why::Unwanted)]);
    let more = differences(&json!({"s": ["a", "b", "c"]}), &actual, &ours);
    assert_eq!(more, [(".spec.s".to_owned(), Why::NotOurs)]);
}

#[test]
fn lists_that_are_one_value_are_compared_as_one() {
    let ours = json!({"f:args": {}});
    let actual = json!({"args": ["a", "b"]});
    assert_eq!(differences(&json!({"args": ["a", "b"]}), &actual, &ours), []);
    let path = ".spec.args".to_owned();
    for wanted in [json!(["a"]), json!(["b", "a"]), json!(["a", "b", "c"])] {
        let found = differences(&json!({ "args": wanted }), &actual, &ours);
        assert_eq!(found, [(path.clone(), Why::Differs)], "{wanted}");
    }
}

#[test]
fn what_we_never_applied_is_not_ours() {
    let wanted = json!({"apiVersion": "v1", "spec": {"n": 1}});
    let entry = |manager: &str, version: &str, sub: &str| {
        json!({"spec": {"n": 1}, "metadata": {"managedFields": [{"manager": manager,
            "operation": "Apply", "apiVersion": version, "subresource": sub,
            "fieldsV1": {"f:spec": {"f:n": {}}}}]}})
    };
    assert_eq!(compare(&wanted, &entry("me", "v1", ""), "me"), []);
    for other in [
        entry("other", "v1", ""),
        entry("me", "v2", ""),
        entry("me", "v1", "status"),
        json!({"spec": {"n": 1}, "metadata": {}}),
    ] {
        let found = found(&compare(&wanted, &other, "me"));
        assert_eq!(found, [(String::new(), Why::NotOurs)], "{other}");
    }
}

#[test]
fn what_an_apply_left_is_no_reason_for_another() {
    let memory = AppliedMemory::default();
    let meta = |uid: &str, version: &str| ObjectMeta {
        uid: Some(uid.into()),
        resource_version: Some(version.into()),
        ..ObjectMeta::default()
    };
    let (applied, later) = (&meta("uid", "7"), &meta("uid", "8"));
    let difference = |found: &str| {
        vec![Difference { path: ".a".into(), why: Why::Differs, found: Some(found.into()) }]
    };
    let wanted = json!({"a": 1});
    assert!(!memory.left(later, &wanted, &difference("2")));
    memory.note(applied, &wanted, &difference("2"));
    assert!(memory.left(later, &wanted, &difference("2")));
    assert!(!memory.left(later, &wanted, &difference("3")), "it changed");
    assert!(!memory.left(later, &json!({"a": 5}), &difference("2")), "something else is wanted");
    assert!(!memory.left(&meta("other", "8"), &wanted, &difference("2")), "another object");
    memory.note(applied, &wanted, &Vec::<Difference>::new());
    assert!(!memory.left(later, &wanted, &difference("2")));
    assert!(memory.left(applied, &wanted, &difference("2")), "the cache strips something");
    assert!(memory.left(later, &wanted, &difference("2")), "and goes on to");
    memory.forget(applied);
    assert!(!memory.left(applied, &wanted, &difference("2")));
}
