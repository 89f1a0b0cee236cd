use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;

use super::*;
use crate::cache::Item;
use crate::selector;

type Rules = Vec<(&'static str, Box<dyn Predicate<Deployment>>)>;

fn item(metadata: serde_json::Value) -> Item<Deployment> {
    let mut metadata = metadata;
    metadata["name"] = json!("web");
    Item::typed(serde_json::from_value(json!({"metadata": metadata})).unwrap())
}

fn update(old: serde_json::Value, new: serde_json::Value) -> Event<Deployment> {
    Event::Updated { old: item(old), new: item(new) }
}

/// An update that changes nothing a predicate looks at, except that the deletion begins.
fn dying() -> Event<Deployment> {
    let kept = json!({"generation": 1, "resourceVersion": "1"});
    let mut new = kept.clone();
    new["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    update(kept, new)
}

fn deleted() -> Event<Deployment> {
    Event::Deleted { object: item(json!({})), final_state_unknown: false }
}

fn added() -> Event<Deployment> {
    Event::Added { object: item(json!({})), initial: false }
}

fn web() -> kube::core::Selector {
    selector::parse("app=web").unwrap()
}

/// Predicates that keep everything away which they may.
fn closed() -> Rules {
    let never = || |_: &Event<Deployment>| false;
    vec![
        ("generation", Box::new(generation_changed())),
        ("version", Box::new(resource_version_changed())),
        ("label", Box::new(label_changed())),
        ("annotation", Box::new(annotation_changed())),
        ("selector", Box::new(label_selector(web()))),
        ("closure", Box::new(never())),
        ("and", Box::new(generation_changed().and(label_changed()))),
        ("or", Box::new(generation_changed().or(never()))),
        ("not", Box::new(not(|_: &Event<Deployment>| true))),
        ("not not", Box::new(generation_changed().not().not())),
        ("funcs", Box::new(funcs().on_update(|_, _| false))),
    ]
}

#[test]
fn no_predicate_keeps_deletions_or_their_beginning_away() {
    for (name, predicate) in closed() {
        let predicate = [predicate];
        assert!(pass(&predicate, &deleted()), "{name}");
        assert!(pass(&predicate, &dying()), "{name}");
        let same = json!({"generation": 1, "resourceVersion": "1"});
        assert!(!pass(&predicate, &update(same.clone(), same)), "{name} lets all updates pass");
    }
}

#[test]
fn a_strict_predicate_decides_about_deletions_too() {
    assert!(!generation_changed().strict().matters(&dying()));
    assert!(!label_selector(web()).strict().matters(&deleted()));
    assert!(!Rule::new(|_: &Event<Deployment>| false).strict().matters(&deleted()));
    // It stays so in whatever it is part of.
    assert!(!generation_changed().and(label_selector(web()).strict()).matters(&deleted()));
    assert!(!generation_changed().and(label_changed()).strict().matters(&dying()));
    assert!(generation_changed().or(label_selector(web()).strict()).matters(&deleted()));
    assert!(label_selector(web()).strict().not().matters(&deleted()));
}

#[test]
fn updates_pass_by_what_changed() {
    let changes = [
        (json!({"generation": 1}), json!({"generation": 2}), [true, false, false, false]),
        (json!({"generation": 1}), json!({"generation": 1}), [false; 4]),
        (json!({}), json!({}), [true, false, false, false]), // kinds without a generation
        (
            json!({"generation": 1, "resourceVersion": "1"}),
            json!({"generation": 1, "resourceVersion": "2"}),
            [false, true, false, false],
        ),
        (
            json!({"generation": 1, "labels": {"a": "b"}}),
            json!({"generation": 1}),
            [false, false, true, false],
        ),
        (
            json!({"generation": 1}),
            json!({"generation": 1, "annotations": {"a": "b"}}),
            [false, false, false, true],
        ),
    ];
    for (old, new, expected) in changes {
        let event = update(old.clone(), new.clone());
        let found = [
            generation_changed().matters(&event),
            resource_version_changed().matters(&event),
            label_changed().matters(&event),
            annotation_changed().matters(&event),
        ];
        assert_eq!(found, expected, "{old} to {new}");
    }
}

#[test]
fn what_a_predicate_says_nothing_of_passes_and_stays_so_when_negated() {
    let resynced = Event::Resynced { object: item(json!({})) };
    let generic = Event::Generic { object: item(json!({})) };
    for event in [added(), resynced, generic, deleted(), dying()] {
        assert!(generation_changed().matters(&event), "{event:?}");
        assert!(generation_changed().not().matters(&event), "{event:?}");
    }
    let grown = update(json!({"generation": 1}), json!({"generation": 2}));
    assert!(!generation_changed().not().matters(&grown));
    let same = update(json!({"generation": 1}), json!({"generation": 1}));
    assert!(generation_changed().not().matters(&same));
}

#[test]
fn a_selector_follows_objects_in_and_out() {
    let fits = json!({"labels": {"app": "web"}});
    let other = json!({"labels": {"app": "api"}});
    let predicate = label_selector(web());
    assert!(predicate.matters(&update(fits.clone(), other.clone())), "out");
    assert!(predicate.matters(&update(other.clone(), fits.clone())), "in");
    assert!(!predicate.matters(&update(other.clone(), other.clone())));
    assert!(!predicate.matters(&Event::Added { object: item(other.clone()), initial: false }));
    assert!(predicate.not().matters(&Event::Added { object: item(other), initial: false }));
}

#[test]
fn functions_decide_about_their_own_events_only() {
    let none = || funcs::<Deployment>();
    let generic = Event::Generic { object: item(json!({})) };
    assert!(!none().on_create(|_| false).matters(&added()));
    assert!(none().on_create(|_| false).matters(&deleted()));
    assert!(!none().on_delete(|_| false).matters(&deleted()), "it was told to");
    assert!(!none().on_generic(|_| false).matters(&generic));
    let renamed = none().on_update(|old, new| old.metadata.labels != new.metadata.labels);
    assert!(!renamed.matters(&update(json!({}), json!({}))));
    assert!(renamed.matters(&update(json!({}), json!({"labels": {"a": "b"}}))));
}

#[test]
fn predicates_combine() {
    let same = update(json!({"generation": 1}), json!({"generation": 1}));
    let always = |_: &Event<Deployment>| true;
    assert!(or(generation_changed(), always).matters(&same));
    assert!(!and(generation_changed(), always).matters(&same));
    assert!(and(not(generation_changed()), always).matters(&same));
}
