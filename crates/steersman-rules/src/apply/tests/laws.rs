//! What holds for every input.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::random::{Custom, Flavour, Request, custom, document, schema, story};
use super::{Deployment, LATER, NOON, containers};
use crate::apply::ApplyError;
use crate::apply::fieldset::FieldSet;
use crate::apply::path::Step;

/// Deployment specs with scalars, keyed lists, sets of ports and labels.
fn spec() -> impl Strategy<Value = Value> {
    let port = (80..83, prop::bool::ANY).prop_map(|(port, udp)| {
        if udp {
            json!({"containerPort": port, "protocol": "UDP"})
        } else {
            json!({"containerPort": port})
        }
    });
    let ports =
        prop::collection::vec(port, 0..3).prop_map(|ports| unique(ports, ToString::to_string));
    let container = ("[a-c]", "[xyz]", ports).prop_map(|(name, image, ports)| {
        // An empty list is owned by nobody, so nothing would hold what it stands in.
        if ports.is_empty() {
            return json!({"name": name, "image": image});
        }
        json!({"name": name, "image": image, "ports": ports})
    });
    let list = prop::collection::vec(container, 1..4)
        .prop_map(|list| unique(list, |item| item["name"].to_string()));
    let scalars = (prop::option::of(0..3), prop::option::of(prop::bool::ANY));
    (list, scalars).prop_map(|(list, (replicas, paused))| {
        let mut spec = containers(Value::Array(list));
        if let Some(replicas) = replicas {
            spec["replicas"] = json!(replicas);
        }
        if let Some(paused) = paused {
            spec["paused"] = json!(paused);
        }
        spec
    })
}

fn unique(items: Vec<Value>, key: impl Fn(&Value) -> String) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        if !kept.iter().any(|known| key(known) == key(&item)) {
            kept.push(item);
        }
    }
    kept
}

/// The half of a spec whose fields are not those of [`right`].
fn left(spec: &Value) -> Value {
    pick(
        spec,
        &["replicas", "template"],
        |container| json!({"name": container["name"], "image": container["image"]}),
    )
}

fn right(spec: &Value) -> Value {
    pick(spec, &["paused", "template"], |container| {
        let mut container = container.clone();
        container.as_object_mut().unwrap().remove("image");
        container
    })
}

fn pick(spec: &Value, fields: &[&str], container: impl Fn(&Value) -> Value) -> Value {
    let fields = spec.as_object().unwrap().iter().filter(|(key, _)| fields.contains(&key.as_str()));
    let mut picked =
        Value::Object(fields.map(|(k, v)| (k.clone(), v.clone())).collect::<Map<_, _>>());
    for item in picked["template"]["spec"]["containers"].as_array_mut().unwrap() {
        *item = container(item);
    }
    picked
}

fn set() -> impl Strategy<Value = FieldSet> {
    let step = prop_oneof!["[a-c]".prop_map(Step::Field), (0..3_u64).prop_map(Step::Index)];
    prop::collection::vec(prop::collection::vec(step, 1..4), 0..8).prop_map(|paths| {
        let mut set = FieldSet::default();
        paths.iter().for_each(|path| set.insert(path));
        set
    })
}

/// Who owns what, whenever that came to be.
fn owners(object: &Value) -> BTreeMap<String, Value> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.map(|entry| (entry["manager"].to_string(), entry["fieldsV1"].clone())).collect()
}

proptest! {
    #[test]
    fn applying_again_changes_nothing(first in spec(), second in spec()) {
        let mut web = Deployment::new();
        web.apply("ci", first);
        web.apply("ci", second.clone());
        let once = web.live.clone();
        web.now = LATER;
        web.apply("ci", second);
        prop_assert_eq!(web.live, once);
    }

    #[test]
    fn a_sole_manager_gets_exactly_what_it_applies(first in spec(), second in spec()) {
        let (mut twice, mut fresh) = (Deployment::new(), Deployment::new());
        twice.apply("ci", first);
        twice.apply("ci", second.clone());
        fresh.apply("ci", second);
        prop_assert_eq!(without_empty(twice.spec()), without_empty(fresh.spec()));
    }

    #[test]
    fn managers_of_disjoint_fields_commute(spec in spec()) {
        let (mut one, mut two) = (Deployment::new(), Deployment::new());
        one.apply("left", left(&spec));
        one.apply("right", right(&spec));
        two.apply("right", right(&spec));
        two.apply("left", left(&spec));
        let one = one.live.unwrap();
        let two = two.live.unwrap();
        prop_assert_eq!(owners(&one), owners(&two));
        prop_assert_eq!(&one["spec"], &two["spec"]);
    }

    #[test]
    fn a_refused_apply_would_have_changed_somebody_elses_field(first in spec(), second in spec()) {
        let mut web = Deployment::new();
        web.apply("ops", first);
        let before = web.live.clone();
        match web.try_apply("ci", second.clone()) {
            Ok(()) => prop_assert_eq!(
                web.live()["metadata"]["managedFields"].as_array().map(|e| e.iter().any(|e| e["manager"] == "ops")),
                before.as_ref().and_then(|b| b["metadata"]["managedFields"].as_array()).map(|_| true)
            ),
            Err(_) => {
                prop_assert_eq!(&web.live, &before);
                web.force("ci", second);
                prop_assert_ne!(&web.live.as_ref().unwrap()["spec"], &before.as_ref().unwrap()["spec"]);
            }
        }
    }

    #[test]
    fn whatever_came_before_an_apply_repeated_changes_nothing((schema, requests) in story()) {
        let mut thing = Custom::new(&schema);
        for request in &requests {
            thing.now = NOON;
            // A null claims a container without emptying it, and means more the second time.
            let plain = matches!(request, Request::Apply { spec, .. } if !spec.to_string().contains("null"));
            // Who applies nothing but empty lists owns nothing, and is not remembered.
            let sent = thing.send(request).is_ok() && plain;
            if sent && thing.live.as_ref().is_some_and(has_managers) {
                let once = thing.live.clone();
                thing.now = LATER;
                prop_assert_eq!(thing.send(request), Ok(()));
                prop_assert_eq!(&thing.live, &once, "not even a time");
            }
        }
    }

    #[test]
    fn a_conflict_changes_nothing_and_force_never_meets_one((schema, requests) in story()) {
        let mut thing = Custom::new(&schema);
        for request in &requests {
            let before = thing.live.clone();
            match (thing.send(request), request) {
                (Err(ApplyError::Conflict(conflicts)), Request::Apply { manager, force, spec }) => {
                    prop_assert!(!force && !conflicts.is_empty());
                    prop_assert_eq!(&thing.live, &before);
                    prop_assert_eq!(thing.force(manager, spec), Ok(()));
                }
                (found, _) => prop_assert!(!matches!(found, Err(ApplyError::Conflict(_)))),
            }
        }
    }

    #[test]
    fn who_leaves_takes_only_what_nobody_else_owns((schema, mine, theirs) in two_documents()) {
        let (mut alone, mut both) = (Custom::new(&schema), Custom::new(&schema));
        prop_assert_eq!(alone.apply("ann", &theirs), Ok(()));
        prop_assert_eq!(both.apply("ann", &theirs), Ok(()));
        if both.apply("bob", &mine).is_ok() {
            prop_assert_eq!(both.apply("bob", &json!({})), Ok(()));
            let spec = |thing: &Custom| {
                without_empty(json!({"spec": thing.live.as_ref().unwrap()["spec"]}))
            };
            prop_assert_eq!(sorted(spec(&both)), sorted(spec(&alone)));
        }
    }

    #[test]
    fn managers_who_do_not_conflict_commute((schema, mine, theirs) in two_documents()) {
        let (mut one, mut two) = (Custom::new(&schema), Custom::new(&schema));
        let found = one.apply("ann", &mine).and_then(|()| one.apply("bob", &theirs));
        let other = two.apply("bob", &theirs).and_then(|()| two.apply("ann", &mine));
        if found.is_ok() && other.is_ok() {
            let one = one.live.unwrap();
            let two = two.live.unwrap();
            // Who applies nothing but empty lists owns nothing, and is not known as an applier.
            prop_assume!(has_appliers(&one) && has_appliers(&two));
            prop_assert_eq!(owners(&one), owners(&two));
            prop_assert_eq!(sorted(one["spec"].clone()), sorted(two["spec"].clone()));
        }
    }

    #[test]
    fn no_document_makes_an_apply_panic(
        schema in schema(),
        live in anything(),
        applied in anything(),
    ) {
        let mut thing = Custom::new(&schema);
        thing.live = Some(custom(&live));
        let _ = thing.apply("ann", &applied);
        let _ = thing.send(&Request::Update { manager: "bob", spec: applied.clone() });
        let _ = thing.force("ann", &live);
    }

    #[test]
    fn sets_obey_the_laws_of_sets(a in set(), b in set(), c in set()) {
        let union = |a: &FieldSet, b: &FieldSet| a.clone().union(b);
        prop_assert_eq!(union(&a, &b), union(&b, &a));
        prop_assert_eq!(union(&union(&a, &b), &c), union(&a, &union(&b, &c)));
        prop_assert_eq!(union(&a, &a), a.clone());
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.intersection(&a), a.clone());
        prop_assert_eq!(union(&a.difference(&b), &a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert_eq!(a.difference(&union(&b, &c)), a.difference(&b).difference(&c));
        prop_assert_eq!(a.paths().len(), a.difference(&b).paths().len() + a.intersection(&b).paths().len());
        prop_assert_eq!(FieldSet::decode(&a.encode()), Ok(a));
    }
}

/// Empty lists and objects mean nothing here: a removed list's parent may stay or go.
fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().map(|(k, v)| (k, without_empty(v)));
            let empty = |v: &Value| v.is_null() || *v == json!({}) || *v == json!([]);
            Value::Object(kept.filter(|(_, v)| !empty(v)).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_empty).collect()),
        scalar => scalar,
    }
}

fn has_managers(object: &Value) -> bool {
    object["metadata"]["managedFields"].is_array()
}

fn has_appliers(object: &Value) -> bool {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.is_some_and(|entries| entries.iter().all(|entry| entry["operation"] == "Apply"))
}

/// A schema and two documents that fit it.
fn two_documents() -> impl Strategy<Value = (Value, Value, Value)> {
    schema().prop_flat_map(|schema| {
        let documents = || document(&schema, Flavour::Plain);
        let documents = (documents(), documents());
        (Just(schema), documents).prop_map(|(schema, (one, two))| (schema, one, two))
    })
}

/// Documents of the fields that random schemas have, of any type.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        "[xyz]".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("[a-ekl]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The same with every list in order: which of two appliers came first decides where items are
/// that only one of them has.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.into_iter().map(sorted).collect();
            items.sort_by_key(ToString::to_string);
            Value::Array(items)
        }
        scalar => scalar,
    }
}
