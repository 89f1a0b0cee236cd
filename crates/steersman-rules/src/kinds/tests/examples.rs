//! Every kind by example: `examples.txt` has a sound object a kind and what makes it wrong.

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::kinds::for_kind;

const EXAMPLES: &str = include_str!("../examples.txt");

/// A kind of the table, with the changes that follow it.
struct Example {
    group: &'static str,
    kind: &'static str,
    object: Value,
    changes: Vec<Change>,
}

struct Change {
    /// `refuses` or `stays`.
    verb: &'static str,
    patch: Value,
    expected: Vec<&'static str>,
}

fn examples() -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for line in EXAMPLES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (verb, rest) = line.split_once(' ').unwrap();
        match verb {
            "kind" => examples.push(example(rest)),
            "" => {
                let change = examples.last_mut().and_then(|e| e.changes.last_mut()).unwrap();
                change.expected.push(rest.trim());
            }
            verb => {
                let patch = serde_json::from_str(rest).unwrap();
                let change = Change { verb, patch, expected: Vec::new() };
                examples.last_mut().unwrap().changes.push(change);
            }
        }
    }
    examples
}

fn example(line: &'static str) -> Example {
    let mut words = line.splitn(5, ' ');
    let [scope, version, _, kind, object] = std::array::from_fn(|_| words.next().unwrap());
    let mut object: Value = serde_json::from_str(object).unwrap();
    object["apiVersion"] = json!(version);
    object["kind"] = json!(kind);
    if object["metadata"]["name"].is_null() {
        object["metadata"]["name"] = json!("x");
    }
    object["metadata"]["uid"] = json!("u");
    if scope == "ns" {
        object["metadata"]["namespace"] = json!("default");
    }
    let group = version.split_once('/').map_or("", |(group, _)| group);
    Example { group, kind, object, changes: Vec::new() }
}

fn completed(example: &Example, mut object: Value) -> Value {
    let rules = for_kind(example.group, example.kind);
    rules.prepare_create(&mut object);
    rules.fill_in(&mut object);
    object
}

/// The first lines: a diff may follow.
fn messages(errors: &[FieldError]) -> Vec<String> {
    let first = |error: &FieldError| error.message().lines().next().map(str::to_owned);
    errors.iter().filter_map(first).collect()
}

#[test]
fn every_example_is_sound() {
    for example in examples() {
        let object = completed(&example, example.object.clone());
        let errors = for_kind(example.group, example.kind).validate_create(&object);
        assert_eq!(messages(&errors), Vec::<String>::new(), "{}", example.kind);
    }
}

#[test]
fn every_change_for_the_worse_is_refused_as_kubernetes_refuses_it() {
    for example in examples() {
        let rules = for_kind(example.group, example.kind);
        let sound = completed(&example, example.object.clone());
        // What every kind has in common is not the business of its rules.
        let own = |change: &&Change| !change.expected.is_empty();
        for change in example.changes.iter().filter(own) {
            let mut object = example.object.clone();
            object =
                crate::patch::merge_patch(&object, change.patch.to_string().as_bytes()).unwrap();
            let found = if change.verb == "refuses" {
                rules.validate_create(&completed(&example, object))
            } else {
                rules.prepare_update(&sound, &mut object);
                rules.fill_in(&mut object);
                object["status"] = sound["status"].clone();
                rules.validate_update(&sound, &object)
            };
            assert_eq!(messages(&found), change.expected, "{} {}", example.kind, change.patch);
        }
    }
}
