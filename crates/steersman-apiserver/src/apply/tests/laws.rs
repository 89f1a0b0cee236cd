//! What holds for every input.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Deployment, containers};
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

proptest! {
    #[test]
    fn applying_again_changes_nothing(first in spec(), second in spec()) {
        let mut web = Deployment::new();
        web.apply("ci", first);
        web.apply("ci", second.clone());
        let once = web.live.clone();
        web.now = super::LATER;
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
        prop_assert_eq!(one.live, two.live);
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
            Value::Object(kept.filter(|(_, v)| *v != json!({}) && *v != json!([])).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_empty).collect()),
        scalar => scalar,
    }
}
