//! Ratcheting: what an object had before its definition became stricter may stay, and may not be
//! made anew.

use serde_json::{Value, json};

use super::{DEFINITIONS, Group, with_spec};
use crate::step::{Language, Role, Scenario, Step};

/// What the fields are at first, and what they become.
fn strict() -> Value {
    let positive = json!([{"rule": "self > 0", "message": "positive"}]);
    json!({"type": "object", "required": ["must"], "properties": {
        "n": {"type": "integer", "maximum": 3},
        "s": {"type": "string", "pattern": "^a"},
        "e": {"type": "string", "enum": ["x"]},
        "rule": {"type": "integer", "x-kubernetes-validations": positive},
        "cross": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.a < self.b"}]},
        "list": {"type": "array", "maxItems": 2, "items": {"type": "string", "maxLength": 2}},
        "map": {"type": "object", "maxProperties": 5,
            "additionalProperties": {"type": "integer", "maximum": 3}},
        "pairs": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "required": ["k"],
                "properties": {"k": {"type": "string"}, "v": {"type": "integer", "maximum": 3}}}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "maxItems": 5,
            "items": {"type": "string", "maxLength": 1}},
        "must": {"type": "string"}, "free": {"type": "string"},
    }})
}

fn lax() -> Value {
    let integer = json!({"type": "integer"});
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    json!({"type": "object", "properties": {
        "n": integer, "s": text, "e": text, "rule": integer,
        "cross": {"type": "object", "properties": {"a": integer, "b": integer}},
        "list": texts, "map": {"type": "object", "additionalProperties": integer},
        "pairs": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "required": ["k"],
                "properties": {"k": text, "v": integer}}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "must": text, "free": text,
    }})
}

/// Each changes one field of an object that is wrong in that field.
fn cases() -> Vec<(&'static str, Value, Value)> {
    vec![
        ("same-n", json!({"n": 9}), json!({"free": "x"})),
        ("other-n", json!({"n": 9}), json!({"n": 8})),
        ("good-n", json!({"n": 9}), json!({"n": 1})),
        ("same-s", json!({"s": "b"}), json!({"free": "x"})),
        ("other-s", json!({"s": "b"}), json!({"s": "c"})),
        ("same-e", json!({"e": "b"}), json!({"free": "x"})),
        ("other-e", json!({"e": "b"}), json!({"e": "c"})),
        ("same-rule", json!({"rule": -1}), json!({"free": "x"})),
        ("other-rule", json!({"rule": -1}), json!({"rule": -2})),
        ("same-cross", json!({"cross": {"a": 2, "b": 1}}), json!({"free": "x"})),
        ("other-cross", json!({"cross": {"a": 2, "b": 1}}), json!({"cross": {"b": 0}})),
        ("same-list", json!({"list": ["abc", "a", "b"]}), json!({"free": "x"})),
        (
            "longer-list",
            json!({"list": ["abc", "a", "b"]}),
            json!({"list": ["abc", "a", "b", "c"]}),
        ),
        ("other-list", json!({"list": ["abc"]}), json!({"list": ["abc", "abcd"]})),
        ("same-map", json!({"map": {"a": 9}}), json!({"map": {"b": 1}})),
        ("other-map", json!({"map": {"a": 9}}), json!({"map": {"b": 9}})),
        (
            "same-pair",
            json!({"pairs": [{"k": "a", "v": 9}]}),
            json!({"pairs": [{"k": "b", "v": 1}, {"k": "a", "v": 9}]}),
        ),
        (
            "other-pair",
            json!({"pairs": [{"k": "a", "v": 9}]}),
            json!({"pairs": [{"k": "b", "v": 9}, {"k": "a", "v": 9}]}),
        ),
        ("same-set", json!({"set": ["long"]}), json!({"set": ["b", "long"]})),
        ("other-set", json!({"set": ["long"]}), json!({"set": ["longer"]})),
        ("still-missing", json!({"free": "x"}), json!({"free": "y"})),
        ("unknown", json!({"free": "x"}), json!({"must": "x", "odd": 1})),
    ]
}

pub(super) fn scenario(run: &str) -> Scenario {
    let group = Group::new(run, "ratcheting");
    let mut scenario = group.scenario("lives/ratcheting");
    let things = group.things();
    group.define(&with_spec(&lax()), &mut scenario);
    for (id, old, _) in cases() {
        let mut spec = old;
        if id != "still-missing" {
            spec["must"] = "be".into();
        }
        scenario.add(Step::post(format!("{id} made"), &things, group.thing(id, &spec)));
    }
    let strict = group.definition(&with_spec(&strict()));
    let versions = json!({"spec": {"versions": strict["spec"]["versions"]}});
    let path = format!("{DEFINITIONS}/things.{}", group.name);
    scenario.add(Step::patch("strict", &path, Language::Merge, versions).role(Role::Needed));
    let wrong = group.thing("wrong", &json!({"must": "x", "n": 9}));
    let counts = Role::AwaitText("should be less than or equal to 3");
    scenario.add(Step::post("strict-counts", &things, wrong).dry().role(counts));
    for (id, _, change) in cases() {
        let patch = json!({"spec": change});
        scenario.add(Step::patch(id, &format!("{things}/{id}"), Language::Merge, patch));
    }
    scenario
}
