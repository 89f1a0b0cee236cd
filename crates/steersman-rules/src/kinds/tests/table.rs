use std::collections::HashSet;

use serde_json::json;

use crate::kinds::all;
use crate::resource::{Resource, Verb, selectable};
use crate::schema::Schema;

fn find(group: &str, version: &str, plural: &str) -> Resource {
    let known = all();
    let found =
        known.into_iter().find(|r| r.group == group && r.version == version && r.plural == plural);
    found.unwrap_or_else(|| panic!("{plural}.{version}.{group} is not in the table"))
}

#[test]
fn no_name_is_taken_twice_within_a_group_and_version() {
    let mut seen = HashSet::new();
    for resource in all() {
        let home = resource.api_version();
        let mut names = vec![resource.plural.clone(), resource.kind.clone()];
        names.extend(resource.short_names.iter().cloned());
        for name in names {
            assert!(seen.insert((home.clone(), name.clone())), "{name} twice in {home}");
        }
    }
}

#[test]
fn only_events_share_their_storage_across_groups() {
    let mut owners = std::collections::HashMap::new();
    for resource in all() {
        let prefix = resource.storage_prefix.to_string();
        let previous = owners.insert(prefix.clone(), resource.group.clone());
        if previous.is_some_and(|group| group != resource.group) {
            assert_eq!(prefix, "events");
        }
    }
}

#[test]
fn storage_folders_are_those_of_kubernetes() {
    for (group, version, plural, prefix) in [
        ("", "v1", "pods", "pods"),
        ("", "v1", "nodes", "minions"),
        ("", "v1", "services", "services/specs"),
        ("", "v1", "endpoints", "services/endpoints"),
        ("", "v1", "replicationcontrollers", "controllers"),
        ("networking.k8s.io", "v1", "ingresses", "ingress"),
        ("apps", "v1", "deployments", "deployments"),
        ("events.k8s.io", "v1", "events", "events"),
        (
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
            "apiextensions.k8s.io/customresourcedefinitions",
        ),
    ] {
        assert_eq!(find(group, version, plural).storage_prefix, prefix);
    }
}

#[test]
fn subresources_speak_the_kinds_of_kubernetes() {
    let pods = find("", "v1", "pods");
    let names: Vec<_> = pods.subresources.iter().map(|s| s.name.to_string()).collect();
    let expected =
        "attach binding ephemeralcontainers eviction exec log portforward proxy resize status";
    assert_eq!(names.join(" "), expected);
    let eviction = pods.subresource("eviction").unwrap();
    assert_eq!(eviction.group_version, Some(("policy".into(), "v1".into())));
    assert_eq!(pods.subresource("status").unwrap().kind, "Pod");

    let scale = find("apps", "v1", "deployments").subresource("scale").cloned().unwrap();
    assert_eq!(scale.kind, "Scale");
    assert_eq!(scale.group_version, Some(("autoscaling".into(), "v1".into())));
    assert_eq!(scale.scale.unwrap().selector.as_deref(), Some("spec.selector"));
    assert!(find("apps", "v1", "daemonsets").subresource("scale").is_none());
}

#[test]
fn known_facts_hold() {
    let namespaces = find("", "v1", "namespaces");
    assert!(!namespaces.namespaced);
    assert!(!namespaces.verbs.contains(&Verb::DeleteCollection));
    assert!(namespaces.subresource("finalize").is_some());

    let leases = find("coordination.k8s.io", "v1", "leases");
    assert!(leases.create_on_update && !leases.unconditional_update && !leases.has_generation);

    let deployments = find("apps", "v1", "deployments");
    assert_eq!(deployments.singular, "deployment");
    assert_eq!(deployments.list_kind, "DeploymentList");
    assert_eq!(deployments.short_names, ["deploy"]);
    assert_eq!(deployments.categories, ["all"]);
    assert!(deployments.has_generation && deployments.unconditional_update);

    assert_eq!(find("authorization.k8s.io", "v1", "subjectaccessreviews").verbs, [Verb::Create]);
    assert!(find("", "v1", "pods").has_generation);
    assert!(!find("", "v1", "services").has_generation);
}

/// Kinds that are answered by code or were never given a schema of their own.
const UNTYPED: &[&str] = &[];

#[test]
fn every_kind_has_a_schema_or_is_deliberately_untyped() {
    for kind in all() {
        let known = Schema::builtin(&kind.group, &kind.version, &kind.kind).is_some();
        assert_eq!(known, !UNTYPED.contains(&kind.kind.as_ref()), "{} {}", kind.group, kind.kind);
    }
}

#[test]
fn a_field_selector_reads_zero_where_a_switch_or_number_is_absent() {
    let object = json!({"spec": {"nodeName": "n1"}, "status": {"succeeded": 2}});
    for (field, expected) in [
        ("spec.nodeName", "n1"),
        ("spec.hostNetwork", "false"),
        ("spec.unschedulable", "false"),
        ("status.replicas", "0"),
        ("status.successful", "2"),
        ("status.phase", ""),
    ] {
        assert_eq!(selectable::value(&object, field), expected, "{field}");
    }
}
