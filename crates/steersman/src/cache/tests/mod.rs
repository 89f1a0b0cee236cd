mod memory;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::*;
use crate::codec::Codec;

fn pod(name: &str, version: u64) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.namespace = Some("default".into());
    pod.metadata.name = Some(name.into());
    pod.metadata.uid = Some(format!("uid-{name}"));
    pod.metadata.resource_version = Some(version.to_string());
    pod
}

fn held(pod: Pod) -> Item<Untyped> {
    Item::typed(pod).cast()
}

fn item(name: &str, version: u64) -> Item<Untyped> {
    held(pod(name, version))
}

/// Makes the cache hold exactly these Pods.
fn replace(writer: &mut Writer, pods: Vec<Pod>, version: u64) -> Vec<Event<Untyped>> {
    let objects = pods.into_iter().map(held).collect();
    writer.replace(Replacement { objects, skipped: Vec::new(), version: Some(version) })
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
    let (mut writer, cache) = channel::<Pod>();
    replace(&mut writer, vec![pod("a", 1), pod("b", 2), pod("c", 3)], 3);
    let changes = replace(&mut writer, vec![pod("a", 1), pod("b", 4), pod("d", 5)], 5);
    let described: Vec<String> = changes.iter().map(|change| format!("{change:?}")).collect();
    assert_eq!(described, ["Vanished(default/c)", "Updated(default/b)", "Added(default/d)"]);
    assert_eq!(names(&cache.list()), ["a", "b", "d"]);
    assert_eq!(cache.progress().version, 5);
}

#[test]
fn an_object_in_the_version_already_there_changes_nothing() {
    let (mut writer, _cache) = channel::<Pod>();
    assert_eq!(writer.apply(vec![item("a", 1)]).len(), 1);
    assert!(writer.apply(vec![item("a", 1)]).is_empty());
    assert_eq!(writer.apply(vec![item("a", 2)]).len(), 1);
}

#[test]
fn owned_objects_are_found_by_the_uid_of_their_owner() {
    let (mut writer, cache) = channel::<Pod>();
    replace(&mut writer, vec![owned(pod("a", 1), "x"), owned(pod("b", 2), "y")], 2);
    assert_eq!(names(&cache.by_owner("x")), ["a"]);
    writer.apply(vec![held(owned(pod("a", 3), "y"))]);
    assert!(cache.by_owner("x").is_empty());
    assert_eq!(names(&cache.by_owner("y")), ["a", "b"]);
    writer.delete(&held(owned(pod("b", 4), "y")));
    assert_eq!(names(&cache.by_owner("y")), ["a"]);
}

#[test]
fn an_index_can_be_added_at_any_time() {
    let (mut writer, cache) = channel::<Pod>();
    writer.apply(vec![item("a", 1)]);
    let index = cache.add_index("first-letter", |pod: &Pod| {
        vec![pod.metadata.name.as_deref().unwrap_or_default()[..1].to_owned()]
    });
    writer.apply(vec![item("ab", 2)]);
    assert_eq!(names(&cache.by_index("first-letter", "a")), ["a", "ab"]);
    assert_eq!(names(&index.get("a")), ["a", "ab"], "a text finds what is indexed by String");
    assert!(cache.by_index("no-such-index", "a").is_empty());
}

#[test]
fn a_namespace_is_listed_without_its_neighbours() {
    let (mut writer, cache) = channel::<Pod>();
    let elsewhere = |namespace: &str, version| {
        let mut pod = pod("p", version);
        pod.metadata.namespace = Some(namespace.into());
        pod
    };
    let pods = vec![elsewhere("a", 1), elsewhere("b", 2), elsewhere("ba", 3), pod("q", 4)];
    replace(&mut writer, pods, 4);
    assert_eq!(cache.list_namespace("b").len(), 1);
    assert_eq!(names(&cache.list_namespace("default")), ["q"]);
    assert!(cache.list_namespace("zzz").is_empty());
}

#[test]
fn an_object_that_took_the_name_of_another_is_a_deletion_and_an_addition() {
    let (mut writer, _cache) = channel::<Pod>();
    writer.apply(vec![item("a", 1)]);
    let mut other = pod("a", 9);
    other.metadata.uid = Some("another".into());
    let changes = replace(&mut writer, vec![other], 9);
    assert!(matches!(
        changes.as_slice(),
        [Event::Deleted { final_state_unknown: true, .. }, Event::Added { initial: false, .. }]
    ));
}

#[test]
fn an_index_function_that_panics_or_reads_the_cache_harms_nobody() {
    let (mut writer, cache) = channel::<Pod>();
    let reading = cache.clone();
    cache.add_index("bad", move |pod: &Pod| {
        reading.len();
        assert_ne!(pod.metadata.name.as_deref(), Some("b"), "on purpose");
        vec!["x".to_owned()]
    });
    for (version, name) in [(1, "a"), (2, "b"), (3, "c")] {
        writer.apply(vec![item(name, version)]);
    }
    assert_eq!(names(&cache.list()), ["a", "b", "c"]);
    assert_eq!(names(&cache.by_index("bad", "x")), ["a", "c"]);
    writer.delete(&item("a", 4));
    assert_eq!(names(&cache.by_index("bad", "x")), ["c"]);
}

#[test]
fn the_cache_tells_whether_it_shows_a_write() {
    let (mut writer, cache) = channel::<Untyped>();
    replace(&mut writer, vec![pod("a", 1)], 1);
    let key = ObjectKey::namespaced("default", "a");
    let deleted = OwnWrite::Deleted { key: key.clone(), uid: Some("uid-a".into()) };
    let written = OwnWrite::Version { key, version: 7 };
    assert!(!cache.shows(&written) && !cache.shows(&deleted));
    writer.apply(vec![item("b", 7)]);
    assert!(!cache.shows(&written), "the cache has come so far, but the object is old");
    writer.apply(vec![item("a", 7)]);
    assert!(cache.shows(&written) && !cache.shows(&deleted));
    writer.delete(&item("a", 8));
    assert!(cache.shows(&deleted));
}

/// What `replace` does for a namespace that is watched by itself.
/// What a cache holds that has forgotten of which type.
fn typed(cache: &Cache<Untyped>) -> Vec<Arc<Pod>> {
    cache.clone().cast().list()
}

fn replace_within(writer: &mut Writer, namespace: &str, name: &str, version: u64) -> usize {
    let mut pod = pod(name, version);
    pod.metadata.namespace = Some(namespace.into());
    writer.within(Some(&namespace.into()));
    replace(writer, vec![pod], version).len()
}

#[test]
fn namespaces_that_are_watched_one_by_one_have_states_and_versions_of_their_own() {
    let namespaces = ["a".into(), "b".into()].into();
    let (mut writer, cache) = restricted(Restriction { namespaces, ..Restriction::default() });
    assert_eq!(replace_within(&mut writer, "a", "x", 9), 1);
    assert_eq!((cache.progress().synced, cache.progress().version), (false, 0), "b is to come");
    assert_eq!(replace_within(&mut writer, "b", "y", 5), 1);
    assert_eq!((cache.progress().synced, cache.progress().version), (true, 5), "b is behind");
    assert_eq!(names(&typed(&cache)), ["x", "y"], "the list of b says nothing of a");
    let within = |namespace: &str, version| {
        let key = ObjectKey::namespaced(namespace, "gone");
        OwnWrite::Within { namespace: namespace.into(), key, version }
    };
    assert!(cache.shows(&within("a", 9)) && !cache.shows(&within("b", 9)));
    writer.bookmark(Some(12));
    assert!(cache.shows(&within("b", 9)) && !cache.shows(&within("a", 10)));
    assert_eq!(cache.progress().version, 9);
    assert_eq!(replace_within(&mut writer, "b", "z", 20), 2, "y is gone, z is new");
    assert_eq!(names(&typed(&cache)), ["x", "z"]);
}

#[test]
fn what_is_written_outside_of_a_restriction_is_not_waited_for() {
    let namespaces = ["default".into()].into();
    let labels = Some("app=web".to_owned());
    let (_writer, cache) = restricted(Restriction { namespaces, labels, fields: None });
    let own_write = |cache: &Cache<Untyped>, pod: &Pod| cache.own_write(&pod.metadata, &|| None);
    let mut pod = pod("a", 7);
    let unlabelled = own_write(&cache, &pod).unwrap();
    assert!(cache.shows(&unlabelled), "it lacks the label, and is not here");
    pod.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    assert!(matches!(own_write(&cache, &pod), Some(OwnWrite::Within { version: 7, .. })));
    pod.metadata.namespace = Some("other".into());
    assert!(own_write(&cache, &pod).is_none());
    let (_writer, all) = channel::<Pod>();
    assert!(matches!(own_write(&all.cast(), &pod), Some(OwnWrite::Version { version: 7, .. })));
}

#[test]
fn what_leaves_a_restriction_by_a_write_is_waited_for_until_it_is_gone() {
    let fields = Some("spec.nodeName=n1".to_owned());
    let (mut writer, cache) = restricted(Restriction { fields, ..Restriction::default() });
    replace(&mut writer, vec![pod("a", 5), pod("b", 6)], 6);
    let moved = serde_json::json!({"spec": {"nodeName": "n2"}});
    let left = cache.own_write(&pod("a", 7).metadata, &|| Some(moved.clone())).unwrap();
    assert!(!cache.shows(&left));
    writer.apply(vec![item("b", 8)]);
    assert!(!cache.shows(&left), "another's version says nothing of it");
    writer.delete(&item("a", 7));
    assert!(cache.shows(&left));
    let unknown = cache.own_write(&pod("a", 9).metadata, &|| None).unwrap();
    assert!(matches!(unknown, OwnWrite::Version { version: 9, .. }), "it may be here");
}

#[test]
fn a_list_of_an_earlier_version_takes_the_cache_back() {
    let (mut writer, cache) = channel::<Pod>();
    replace(&mut writer, vec![pod("a", 50)], 50);
    replace(&mut writer, vec![pod("a", 3)], 3);
    assert_eq!(cache.progress().version, 3);
}

#[test]
fn an_object_that_exists_but_could_not_be_decoded_stays_as_it_was_known() {
    let (mut writer, cache) = channel::<Pod>();
    replace(&mut writer, vec![pod("a", 1), pod("b", 2)], 2);
    let skipped = vec![ObjectKey::namespaced("default", "a")];
    let list = Replacement { objects: vec![item("b", 2)], skipped, version: Some(9) };
    assert!(writer.replace(list).is_empty());
    assert_eq!(names(&cache.list()), ["a", "b"]);
}

fn labelled(name: &str, labels: &[(&str, &str)]) -> Item<Untyped> {
    let mut pod = pod(name, 1);
    let own = |(name, value): &(&str, &str)| (String::from(*name), String::from(*value));
    pod.metadata.labels = Some(labels.iter().map(own).collect());
    held(pod)
}

#[test]
fn objects_are_found_by_labels_whatever_the_requirements() {
    use kube::core::Expression::{DoesNotExist, Equal, Exists, In, NotEqual, NotIn};
    let (mut writer, cache) = channel::<Pod>();
    writer.apply(vec![
        labelled("a", &[("app", "web"), ("tier", "front")]),
        labelled("b", &[("app", "web")]),
        labelled("c", &[("app", "db")]),
        labelled("d", &[]),
    ]);
    let find = |expressions: Vec<kube::core::Expression>| {
        let found = cache.by_labels(None, &expressions.into_iter().collect());
        names(&found).join("")
    };
    let app = String::from("app");
    let tier = String::from("tier");
    let web = String::from("web");
    let db = String::from("db");
    assert_eq!(find(vec![Equal(app.clone(), web.clone())]), "ab");
    assert_eq!(find(vec![Equal(app.clone(), web.clone()), DoesNotExist(tier.clone())]), "b");
    assert_eq!(find(vec![In(app.clone(), [web.clone(), db].into())]), "abc");
    assert_eq!(find(vec![NotIn(app.clone(), [web.clone()].into())]), "cd");
    assert_eq!(find(vec![NotEqual(app.clone(), web.clone())]), "cd");
    assert_eq!(find(vec![Exists(app.clone())]), "abc");
    assert_eq!(find(vec![]), "abcd");
    assert!(cache.by_labels(Some("elsewhere"), &Equal(app.clone(), web.clone()).into()).is_empty());
    // What changes later is found as well.
    writer.delete(&item("a", 2));
    writer.apply(vec![labelled("e", &[("app", "web")])]);
    assert_eq!(find(vec![Equal(app, web)]), "be");
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let (mut writer, cache) = channel::<Pod>();
    replace(&mut writer, vec![pod("a", 1), pod("b", 2)], 2);
    let before = cache.snapshot();
    writer.delete(&item("a", 3));
    writer.apply(vec![item("c", 4)]);
    let names: Vec<String> = before.iter().map(|item| item.key().to_string()).collect();
    assert_eq!(names, ["default/a", "default/b"]);
    assert_eq!(cache.len(), 2);
}

#[test]
fn an_index_is_typed_and_knows_its_values() {
    let (mut writer, cache) = channel::<Pod>();
    let by_length = cache
        .add_index("length", |pod: &Pod| pod.metadata.name.as_ref().map(|name| name.len() as u64));
    writer.apply(vec![item("a", 1), item("bb", 2), item("cc", 3)]);
    assert_eq!(names(&by_length.get(&2)), ["bb", "cc"]);
    let mut values = by_length.values();
    values.sort();
    assert_eq!(values, ["1".into(), "2".into()]);
}

#[test]
fn an_index_added_while_the_writer_writes_misses_nothing() {
    let (mut writer, cache) = channel::<Pod>();
    replace(&mut writer, (0..2000).map(|n| pod(&format!("p{n}"), n)).collect(), 2000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..20 {
                let changed = (0..500).map(|n| item(&format!("p{n}"), round * 5000 + n)).collect();
                writer.apply(changed);
            }
        });
        for name in ["one", "two", "three"] {
            cache.add_index(name, |_: &Pod| Some("all".to_owned()));
            assert_eq!(cache.indexed(name, "all").len(), 2000);
        }
    });
    let current = cache.snapshot();
    for name in ["one", "two", "three"] {
        let indexed = cache.indexed(name, "all");
        let same = |(a, b): (Item<Pod>, Item<Pod>)| a.cast().is(&b.cast());
        assert!(current.iter().zip(indexed.iter()).all(same), "{name} is stale");
    }
}

#[test]
fn a_deletion_is_told_with_the_final_state() {
    let (mut writer, _cache) = channel::<Pod>();
    writer.apply(vec![item("a", 1)]);
    let Some(Event::Deleted { object, final_state_unknown }) = writer.delete(&item("a", 5)) else {
        panic!("it was there");
    };
    assert_eq!((object.resource_version(), final_state_unknown), (Some("5"), false));
}

#[test]
fn an_unreadable_object_gives_way_to_a_better_copy_of_the_same_version() {
    let (mut writer, cache) = channel::<Pod>();
    let mut decoder = Decoder::new(Codec::of::<Pod>(), Form::COMPACT);
    let json = serde_json::to_string(&pod("a", 1)).unwrap();
    let bad = json.replacen('{', r#"{"spec":{"containers":"none"},"#, 1);
    writer.apply(vec![decoder.decode(&bad).unwrap()]);
    assert!(cache.list().is_empty());
    writer.apply(vec![decoder.decode(&json).unwrap()]);
    assert_eq!(names(&cache.list()), ["a"]);
}

#[test]
fn an_index_function_may_list_by_labels() {
    let (mut writer, cache) = channel::<Pod>();
    writer.apply(vec![labelled("a", &[("app", "web")])]);
    let web = [("app", "web")].into_iter().collect::<Selector>();
    assert_eq!(cache.by_labels(None, &web).len(), 1);
    let reading = cache.clone();
    let neighbours = cache
        .add_index("neighbours", move |_: &Pod| Some(reading.by_labels(None, &web).len() as u64));
    assert_eq!(names(&neighbours.get(&1)), ["a"]);
}

#[test]
fn only_the_recently_used_stay_decoded() {
    let mut decoder = Decoder::new(Codec::of::<Pod>(), Form::Compact { recent: 2 });
    let items: Vec<Item<Pod>> = (0..5)
        .map(|n| serde_json::to_string(&pod(&format!("p{n}"), n)).unwrap())
        .map(|json| decoder.decode(&json).unwrap().cast())
        .collect();
    let first = items[0].object().unwrap();
    assert!(Arc::ptr_eq(&first, &items[0].object().unwrap()), "a hot object is decoded once");
    for item in &items[1..] {
        item.object().unwrap();
    }
    assert!(!Arc::ptr_eq(&first, &items[0].object().unwrap()), "a cold one is decoded again");
    let held = Arc::strong_count(&items[4].object().unwrap());
    assert_eq!(held, 2, "the cache keeps the last one");
}

#[test]
fn what_belongs_to_an_owner_stays_decoded_if_all_of_it_can() {
    for (recent, stays) in [(300, true), (299, false)] {
        let (mut writer, cache) = channel::<Pod>();
        let mut decoder = Decoder::new(Codec::of::<Pod>(), Form::Compact { recent });
        for n in 0..300 {
            let json = serde_json::to_string(&owned(pod(&format!("p{n}"), n + 1), "o")).unwrap();
            writer.apply(vec![decoder.decode(&json).unwrap()]);
        }
        let first = cache.by_owner("o");
        let again = cache.by_owner("o");
        assert_eq!(first.len(), 300);
        assert_eq!(first.iter().zip(&again).all(|(a, b)| Arc::ptr_eq(a, b)), stays);
    }
}

#[test]
fn what_nobody_uses_any_more_is_let_go() {
    let mut decoder = Decoder::new(Codec::of::<Pod>(), Form::Compact { recent: 8 });
    let warmth = decoder.warmth().unwrap();
    let json = |n: u64| serde_json::to_string(&pod(&format!("p{n}"), n)).unwrap();
    let items: Vec<Item<Pod>> = (0..3).map(|n| decoder.decode(&json(n)).unwrap().cast()).collect();
    let decoded: Vec<Arc<Pod>> = items.iter().map(|item| item.object().unwrap()).collect();
    warmth.cool(2);
    assert_eq!(warmth.len(), 3, "each was used since the last time");
    items[1].object().unwrap();
    warmth.cool(3);
    assert_eq!(warmth.len(), 2, "one was looked at for the first time, one was used");
    assert!(Arc::ptr_eq(&decoded[1], &items[1].object().unwrap()));
    assert!(!Arc::ptr_eq(&decoded[0], &items[0].object().unwrap()));
}

/// Both forms must show the same cache, whatever happens.
mod forms {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_compact_cache_shows_what_a_typed_one_shows(
            writes in proptest::collection::vec((0..6_u64, 0..3_u64, any::<bool>()), 1..60)
        ) {
            let (mut typed, typed_cache) = channel::<Pod>();
            let (mut compact, compact_cache) = channel::<Pod>();
            let mut decoder = Decoder::new(Codec::of::<Pod>(), Form::Compact { recent: 1 });
            for cache in [&typed_cache, &compact_cache] {
                cache.add_index("owner-name", |pod: &Pod| pod.metadata.uid.clone());
            }
            for (version, (name, owner, deleted)) in (1_u64..).zip(writes) {
                let object = owned(pod(&format!("p{name}"), version), &format!("o{owner}"));
                let item = decoder.decode(&serde_json::to_string(&object).unwrap()).unwrap();
                let (a, b) = if deleted {
                    let object = held(object);
                    (typed.delete(&object).into_iter().collect(), compact.delete(&item).into_iter().collect())
                } else {
                    (typed.apply(vec![held(object)]), compact.apply(vec![item]))
                };
                let (a, b): (Vec<Event<Untyped>>, Vec<Event<Untyped>>) = (a, b);
                prop_assert_eq!(format!("{a:?}"), format!("{b:?}"));
                prop_assert_eq!(typed_cache.list(), compact_cache.list());
                let owner = format!("o{owner}");
                prop_assert_eq!(typed_cache.by_owner(&owner), compact_cache.by_owner(&owner));
                let uid = format!("uid-p{name}");
                let index = "owner-name";
                prop_assert_eq!(
                    typed_cache.by_index(index, &uid), compact_cache.by_index(index, &uid));
            }
        }
    }
}
