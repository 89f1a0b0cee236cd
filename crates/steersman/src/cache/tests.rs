use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::*;

fn pod(name: &str, version: u64) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.namespace = Some("default".into());
    pod.metadata.name = Some(name.into());
    pod.metadata.uid = Some(format!("uid-{name}"));
    pod.metadata.resource_version = Some(version.to_string());
    pod
}

fn owned(mut pod: Pod, owner: &str) -> Pod {
    let reference = OwnerReference { uid: owner.into(), ..OwnerReference::default() };
    pod.metadata.owner_references = Some(vec![reference]);
    pod
}

fn names(pods: &[Arc<Pod>]) -> Vec<&str> {
    pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect()
}

#[test]
fn replacing_reports_what_was_added_updated_and_deleted_unseen() {
    let (mut writer, cache) = channel();
    writer.replace(vec![pod("a", 1), pod("b", 2), pod("c", 3)], Some(3));
    let changes = writer.replace(vec![pod("a", 1), pod("b", 4), pod("d", 5)], Some(5));
    let described: Vec<String> = changes
        .iter()
        .map(|change| match change {
            Event::Added { object, .. } => format!("+{}", object.metadata.name.as_deref().unwrap()),
            Event::Updated { new, .. } => format!("~{}", new.metadata.name.as_deref().unwrap()),
            Event::Deleted { object, final_state_unknown } => {
                assert!(final_state_unknown);
                format!("-{}", object.metadata.name.as_deref().unwrap())
            }
        })
        .collect();
    assert_eq!(described, ["-c", "~b", "+d"]);
    assert_eq!(names(&cache.list()), ["a", "b", "d"]);
    assert_eq!(cache.progress().version, 5);
}

#[test]
fn an_object_in_the_version_already_there_changes_nothing() {
    let (mut writer, _cache) = channel();
    assert_eq!(writer.apply(pod("a", 1)).len(), 1);
    assert!(writer.apply(pod("a", 1)).is_empty());
    assert_eq!(writer.apply(pod("a", 2)).len(), 1);
}

#[test]
fn owned_objects_are_found_by_the_uid_of_their_owner() {
    let (mut writer, cache) = channel();
    writer.replace(vec![owned(pod("a", 1), "x"), owned(pod("b", 2), "y")], Some(2));
    assert_eq!(names(&cache.by_owner("x")), ["a"]);
    writer.apply(owned(pod("a", 3), "y"));
    assert!(cache.by_owner("x").is_empty());
    assert_eq!(names(&cache.by_owner("y")), ["a", "b"]);
    writer.delete(&owned(pod("b", 4), "y"));
    assert_eq!(names(&cache.by_owner("y")), ["a"]);
}

#[test]
fn an_index_can_be_added_at_any_time() {
    let (mut writer, cache) = channel();
    writer.apply(pod("a", 1));
    cache.add_index("first-letter", |pod: &Pod| {
        vec![pod.metadata.name.as_deref().unwrap_or_default()[..1].to_owned()]
    });
    writer.apply(pod("ab", 2));
    assert_eq!(names(&cache.by_index("first-letter", "a")), ["a", "ab"]);
    assert!(cache.by_index("no-such-index", "a").is_empty());
}

#[test]
fn a_namespace_is_listed_without_its_neighbours() {
    let (mut writer, cache) = channel();
    let elsewhere = |namespace: &str, version| {
        let mut pod = pod("p", version);
        pod.metadata.namespace = Some(namespace.into());
        pod
    };
    let pods = vec![elsewhere("a", 1), elsewhere("b", 2), elsewhere("ba", 3), pod("q", 4)];
    writer.replace(pods, Some(4));
    assert_eq!(cache.list_namespace("b").len(), 1);
    assert_eq!(names(&cache.list_namespace("default")), ["q"]);
    assert!(cache.list_namespace("zzz").is_empty());
}

#[test]
fn an_object_that_took_the_name_of_another_is_a_deletion_and_an_addition() {
    let (mut writer, _cache) = channel();
    writer.apply(pod("a", 1));
    let mut other = pod("a", 9);
    other.metadata.uid = Some("another".into());
    let changes = writer.replace(vec![other], Some(9));
    assert!(matches!(
        changes.as_slice(),
        [Event::Deleted { final_state_unknown: true, .. }, Event::Added { initial: false, .. }]
    ));
}

#[test]
fn an_index_function_that_panics_or_reads_the_cache_harms_nobody() {
    let (mut writer, cache) = channel();
    let reading = cache.clone();
    cache.add_index("bad", move |pod: &Pod| {
        reading.len();
        assert_ne!(pod.metadata.name.as_deref(), Some("b"), "on purpose");
        vec!["x".to_owned()]
    });
    for (version, name) in [(1, "a"), (2, "b"), (3, "c")] {
        writer.apply(pod(name, version));
    }
    assert_eq!(names(&cache.list()), ["a", "b", "c"]);
    assert_eq!(names(&cache.by_index("bad", "x")), ["a", "c"]);
    writer.delete(&pod("a", 4));
    assert_eq!(names(&cache.by_index("bad", "x")), ["c"]);
}

#[test]
fn the_cache_tells_whether_it_shows_a_write() {
    let (mut writer, cache) = channel();
    writer.replace(vec![pod("a", 1)], Some(1));
    let key = ObjectKey::namespaced("default", "a");
    let deleted = OwnWrite::Deleted { key, uid: Some("uid-a".into()) };
    assert!(!cache.shows(&OwnWrite::Version(7)) && !cache.shows(&deleted));
    writer.apply(pod("b", 7));
    assert!(cache.shows(&OwnWrite::Version(7)) && !cache.shows(&deleted));
    writer.delete(&pod("a", 8));
    assert!(cache.shows(&deleted));
}

#[test]
fn a_list_of_an_earlier_version_takes_the_cache_back() {
    let (mut writer, cache) = channel();
    writer.replace(vec![pod("a", 50)], Some(50));
    writer.replace(vec![pod("a", 3)], Some(3));
    assert_eq!(cache.progress().version, 3);
}
