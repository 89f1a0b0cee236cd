use std::collections::BTreeSet;

use steersman_rules::kinds as builtin;

use super::*;

fn ids() -> Vec<String> {
    let phases = phases("zqtest");
    let steps = phases.into_iter().flatten().flat_map(|scenario| scenario.steps);
    steps.map(|step| step.id).collect()
}

#[test]
fn every_row_of_the_table_of_resources_is_in_the_corpus() {
    let ids = ids();
    for resource in builtin::all() {
        let mut start = resource.qualified();
        if resource.version != "v1" {
            start = format!("{start}.{}", resource.version);
        }
        let start = format!("{start}/");
        assert!(ids.iter().any(|id| id.starts_with(&start)), "{start} has no request");
    }
}

#[test]
fn every_kind_has_an_object_to_send() {
    for kind in kinds::all() {
        let answered_only = !kind.is_stored();
        assert!(answered_only || kind.example.is_object(), "{} has no example", kind.id);
    }
}

#[test]
fn every_id_is_there_once_and_there_are_thousands() {
    let ids = ids();
    let different: BTreeSet<&String> = ids.iter().collect();
    let twice = |id: &&String| ids.iter().filter(|other| other == id).count() > 1;
    assert_eq!(different.len(), ids.len(), "{:?}", different.iter().find(|id| twice(id)));
    assert!(ids.len() >= 5000, "{}", ids.len());
}

#[test]
fn a_namespace_of_a_scenario_is_no_longer_than_names_may_be() {
    for scenario in phases("zqtest").into_iter().flatten() {
        let namespace = scenario.tidy.namespace.unwrap_or_default();
        assert!(namespace.len() <= 63 && !namespace.ends_with('-'), "{namespace}");
    }
}
