//! DELETE with its options, of one object and of collections.

use serde_json::{Value, json};
use steersman_rules::resource::Verb;

use super::FORMS;
use crate::corpus::kinds::{Kind, Place};
use crate::step::{Body, Language, Role, Scenario, Step};

/// Options that leave the object where it is, because they are wrong or do not fit.
fn refused() -> Vec<(&'static str, Value)> {
    let options = |fields: Value| {
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if let (Some(options), Some(fields)) = (options.as_object_mut(), fields.as_object()) {
            options.extend(fields.clone());
        }
        options
    };
    vec![
        ("other-uid", options(json!({"preconditions": {"uid": "other"}}))),
        ("other-rv", options(json!({"preconditions": {"resourceVersion": "1"}}))),
        ("odd-policy", options(json!({"propagationPolicy": "Odd"}))),
        (
            "both-policies",
            options(json!({"propagationPolicy": "Orphan", "orphanDependents": true})),
        ),
        ("dry-run-odd", options(json!({"dryRun": ["Odd"]}))),
        ("dry-run", options(json!({"dryRun": ["All"]}))),
        ("dry-run-orphan", options(json!({"dryRun": ["All"], "propagationPolicy": "Orphan"}))),
        (
            "dry-run-foreground",
            options(json!({"dryRun": ["All"], "propagationPolicy": "Foreground"})),
        ),
        ("grace-is-text", options(json!({"gracePeriodSeconds": "x"}))),
        ("other-kind", json!({"apiVersion": "v1", "kind": "Other", "dryRun": ["All"]})),
        (
            "other-version",
            json!({"apiVersion": "x/v1", "kind": "DeleteOptions", "dryRun": ["All"]}),
        ),
        ("no-type", json!({"dryRun": ["All"]})),
        ("unsafe", options(json!({"ignoreStoreReadErrorWithClusterBreakingPotential": true}))),
        ("list", json!([])),
        ("text", json!("x")),
    ]
}

pub(super) fn steps(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let make = |tag: &str, change: Value| {
        Step::post(format!("make-{tag}"), &place.collection, kind.changed(place, tag, &change))
    };
    scenario.add(make("x", json!({})).role(Role::Needed).keep("object"));
    let path = kind.path(place, "x");
    for (id, options) in refused() {
        scenario.add(Step::new("DELETE", id, &path).body(options));
    }
    let queries = [
        ("query-dry-run", "dryRun=All"),
        ("query-grace-odd", "dryRun=All&gracePeriodSeconds=x"),
        ("query-policy", "dryRun=All&propagationPolicy=Background"),
        ("query-policy-odd", "dryRun=All&propagationPolicy=Odd"),
        ("query-orphan-odd", "dryRun=All&orphanDependents=x"),
        ("query-dry-run-odd", "dryRun=Odd"),
        ("query-grace-negative", "dryRun=All&gracePeriodSeconds=-1"),
    ];
    for (id, query) in queries {
        scenario.add(Step::delete(id, &path).query(query));
    }
    scenario.add(Step::new("DELETE", "cut", &path).body("{").dry());
    let plain = Step::new("DELETE", "text-plain", &path).body("{}").content_type("text/plain");
    scenario.add(plain.dry());
    for (id, form) in FORMS {
        scenario.add(Step::delete(format!("as-{id}"), &path).dry().accept(form));
    }
    scenario.add(Step::get("still-there", &path));
    let own = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {
        "uid": "${object:/metadata/uid}", "resourceVersion": "${object:/metadata/resourceVersion}"}});
    scenario.add(Step::new("DELETE", "own", &path).body(own));
    scenario.add(Step::get("own-gone", &path));
    scenario.add(Step::delete("again", &path));
    scenario.add(
        Step::new("DELETE", "again-uid", &path).body(json!({"preconditions": {"uid": "other"}})),
    );
    ways(kind, place, scenario);
    finalized(kind, place, scenario);
    dry_run_in_query(kind, place, scenario);
    if kind.can(Verb::DeleteCollection) {
        collection(kind, place, scenario);
    }
}

/// What the policies and grace periods do.
fn ways(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let ways = [
        ("background", json!({"propagationPolicy": "Background"})),
        ("foreground", json!({"propagationPolicy": "Foreground"})),
        ("orphan", json!({"propagationPolicy": "Orphan"})),
        ("orphan-dependents", json!({"orphanDependents": true})),
        ("no-orphans", json!({"orphanDependents": false})),
        ("grace-zero", json!({"gracePeriodSeconds": 0})),
        ("grace-five", json!({"gracePeriodSeconds": 5})),
        ("grace-negative", json!({"gracePeriodSeconds": -1})),
    ];
    for (tag, options) in ways {
        let path = kind.path(place, tag);
        let object = kind.object(place, tag);
        scenario.add(Step::post(format!("{tag}-make"), &place.collection, object));
        scenario.add(Step::new("DELETE", tag, &path).body(options.clone()));
        scenario.add(Step::get(format!("{tag}-after"), &path));
        scenario.add(Step::new("DELETE", format!("{tag}-again"), &path).body(options));
    }
}

/// What waits for someone.
fn finalized(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    let path = kind.path(place, "held");
    let object = kind.changed(place, "held", &held);
    scenario.add(Step::post("held-make", &place.collection, object).role(Role::Needed));
    scenario.add(Step::delete("held", &path));
    scenario.add(Step::get("held-after", &path).keep("held"));
    scenario.add(Step::delete("held-again", &path));
    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    scenario.add(Step::put("held-more", &path, Body::Kept("held", more)));
    let label = json!({"metadata": {"labels": {"held": "yes"}}});
    scenario.add(Step::patch("held-label", &path, Language::Merge, label));
    let object = kind.object(place, "held");
    scenario.add(Step::post("held-create-again", &place.collection, object));
    let free = json!({"metadata": {"finalizers": null}});
    scenario.add(Step::patch("held-free", &path, Language::Merge, free));
    scenario.add(Step::get("held-gone", &path));
}

/// A dry run that only the query asks for, although there are options in the body.
fn dry_run_in_query(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let path = kind.path(place, "asked");
    scenario.add(Step::post("asked-make", &place.collection, kind.object(place, "asked")));
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
    scenario.add(Step::new("DELETE", "asked", &path).body(options).dry().role(Role::Setup));
    scenario.add(Step::get("asked-after", &path));
    scenario.add(Step::delete("asked-free", &path).role(Role::Setup));
}

fn collection(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    for tag in ["one", "two"] {
        let id = format!("collection-make-{tag}");
        scenario.add(Step::post(id, &place.collection, kind.object(place, tag)));
    }
    let list = place.list();
    for (id, mut options) in refused() {
        // Who sends options is not heard in the query.
        if let Some(options) = options.as_object_mut() {
            options.entry("dryRun").or_insert_with(|| json!(["All"]));
        }
        scenario.add(Step::new("DELETE", format!("collection-{id}"), &list).body(options));
    }
    let queries = [
        ("labels-odd", "dryRun=All&fieldSelector=abc"),
        ("fields", "dryRun=All&fieldSelector=metadata.name%3Dnobody"),
        ("limit", "dryRun=All&limit=1"),
        ("version", "dryRun=All&resourceVersion=0"),
        ("timeout-odd", "dryRun=All&timeout=x"),
    ];
    for (id, query) in queries {
        scenario.add(Step::delete(format!("collection-{id}"), &list).query(query));
    }
    for (id, form) in FORMS {
        scenario.add(Step::delete(format!("collection-as-{id}"), &list).dry().accept(form));
    }
    scenario.add(Step::get("collection-before", &list));
    scenario.add(Step::delete("collection", &list));
    scenario.add(Step::get("collection-after", &list));
}
