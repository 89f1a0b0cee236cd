//! Ranges: order, prefixes, revisions, pages.

use super::*;

pub(crate) async fn a_range_is_ordered_by_key_and_ends_with_its_prefix(store: StoreUnderTest) {
    for key in ["/pods/b", "/pods/a", "/pod", "/podsecurity/a", "/pods/c/x", "/secrets/a"] {
        put(&store, key, "1").await;
    }
    assert_eq!(list(&store, "/pods/", None).await, ["/pods/a=1", "/pods/b=1", "/pods/c/x=1"]);
    assert_eq!(list(&store, "/pods/a", None).await, ["/pods/a=1"]);
    assert_eq!(list(&store, "/services/", None).await, Vec::<String>::new());
    assert_eq!(list(&store, "", None).await.len(), 6);
}

pub(crate) async fn a_range_reads_the_state_at_a_revision(store: StoreUnderTest) {
    let before = latest(&store).await;
    let first = put(&store, "/a", "1").await;
    let second = put(&store, "/b", "1").await;
    let third = put(&store, "/a", "2").await;
    let fourth = delete(&store, "/b").await;
    let fifth = put(&store, "/b", "3").await;

    let states: [(Revision, &[&str]); 6] = [
        (before, &[]),
        (first, &["/a=1"]),
        (second, &["/a=1", "/b=1"]),
        (third, &["/a=2", "/b=1"]),
        (fourth, &["/a=2"]),
        (fifth, &["/a=2", "/b=3"]),
    ];
    for (at, state) in states {
        assert_eq!(list(&store, "/", Some(at)).await, state, "at {at}");
    }
    assert_eq!(list(&store, "/", None).await, ["/a=2", "/b=3"]);
}

pub(crate) async fn one_key_is_read_as_it_was_or_as_far_as_was_heard(store: StoreUnderTest) {
    let known = async |key: &str, at| {
        let entry = store.known(key, at).await.unwrap();
        entry.map(|entry| String::from_utf8(entry.value.to_vec()).unwrap())
    };
    let before = latest(&store).await;
    let first = put(&store, "/a", "1").await;
    put(&store, "/ab", "longer").await;
    let second = put(&store, "/a", "2").await;
    let gone = delete(&store, "/a").await;

    for (at, value) in [(before, None), (first, Some("1")), (second, Some("2")), (gone, None)] {
        assert_eq!(known("/a", Some(at)).await.as_deref(), value, "at {at}");
    }
    latest(&store).await;
    assert_eq!(known("/a", None).await, None, "not what only begins like it");
    assert_eq!(known("/ab", None).await.as_deref(), Some("longer"));
    store.compact(second).await.unwrap();
    let compacted = store.known("/a", Some(first)).await;
    assert!(matches!(compacted, Err(StoreError::Compacted { .. })), "{compacted:?}");
}

pub(crate) async fn pages_of_one_revision_add_up_to_the_whole(store: StoreUnderTest) {
    for number in 0..10 {
        put(&store, &format!("/a/{number}"), "1").await;
    }
    put(&store, "/b/0", "1").await;
    let whole = list(&store, "/a/", None).await;

    let mut paged = Vec::new();
    let mut request =
        RangeRequest { prefix: "/a/".into(), limit: 4, count: true, ..RangeRequest::default() };
    for (page, remaining) in [(4, 6), (4, 2), (2, 0)] {
        let response = store.range(request.clone()).await.unwrap();
        assert_eq!((response.entries.len(), response.remaining), (page, Some(remaining)));
        assert_eq!(response.more, remaining > 0);
        paged.extend(response.entries.iter().map(|entry| format!("{}=1", entry.key)));
        let last = response.entries.last().unwrap();
        request.start = Some(format!("{}\0", last.key));
        request.at = Some(response.revision);
        // What happens between two pages is not in them.
        put(&store, &format!("/a/{page}-new"), "1").await;
        delete(&store, &format!("/a/{}", 9 - page)).await;
        put(&store, &format!("/a/{}", 9 - page), "1").await;
    }
    assert_eq!(paged, whole);
}

pub(crate) async fn a_start_before_the_prefix_does_not_widen_it(store: StoreUnderTest) {
    for key in ["/a/1", "/b/1", "/b/2", "/c/1"] {
        put(&store, key, "1").await;
    }
    let from = async |start: &str| {
        let request = RangeRequest {
            prefix: "/b/".into(),
            start: Some(start.into()),
            ..RangeRequest::default()
        };
        let entries = store.range(request).await.unwrap().entries;
        entries.iter().map(|entry| entry.key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(from("/a/").await, ["/b/1", "/b/2"]);
    assert_eq!(from("/b/2").await, ["/b/2"]);
    assert_eq!(from("/c/").await, Vec::<String>::new());
}

pub(crate) async fn keys_come_without_values_if_nothing_else_is_wanted(store: StoreUnderTest) {
    for key in ["/a/1", "/a/2"] {
        put(&store, key, "value").await;
    }
    let whole = RangeRequest { prefix: "/a/".into(), ..RangeRequest::default() };
    let keys = RangeRequest { keys_only: true, ..whole.clone() };
    let mut expected = store.range(whole).await.unwrap().entries;
    assert!(expected.len() == 2 && expected.iter().all(|entry| &*entry.value == b"value"));
    expected.iter_mut().for_each(|entry| entry.value = Bytes::new());
    assert_eq!(store.range(keys).await.unwrap().entries, expected);
}

pub(crate) async fn the_future_cannot_be_read_watched_or_compacted(store: StoreUnderTest) {
    let written = put(&store, "/a", "1").await;
    let far = if store.alone { 1 } else { 1_000_000 };
    let asked = Revision(written.0 + far);
    let assert_future = |error: StoreError| match error {
        StoreError::Future { requested, current } => {
            assert_eq!(requested, asked);
            assert!(current == written || (current > written && !store.alone));
        }
        other => panic!("{other}"),
    };
    let range = RangeRequest { at: Some(asked), ..RangeRequest::default() };
    assert_future(store.range(range).await.unwrap_err());
    let watch = WatchRequest { prefix: String::new(), after: asked };
    assert_future(store.watch(watch).await.err().unwrap());
    assert_future(store.compact(asked).await.unwrap_err());
}

pub(crate) async fn a_stale_range_shows_at_least_what_was_heard(store: StoreUnderTest) {
    let stale = async || {
        let request = RangeRequest { prefix: "/".into(), stale: true, ..RangeRequest::default() };
        store.range(request).await.unwrap()
    };
    let mut watch = watch(&store, "/", latest(&store).await).await;
    let mut before = stale().await;
    for number in 0..20 {
        let written = put(&store, &format!("/{number:02}"), "1").await;
        assert_eq!(read(&mut watch, 1).await[0].revision, written);
        let now = stale().await;
        assert_eq!(now.entries.len(), before.entries.len() + 1);
        assert!(now.revision >= written && now.revision > before.revision);
        before = now;
    }
}

pub(crate) async fn keys_are_ordered_by_their_bytes_whatever_they_spell(store: StoreUnderTest) {
    let keys = ["/ä/1", "/ä/2", "/ä/é", "/ä/日本", "/ä/🚢", "/ä/\u{10ffff}", "/äa", "/€", "/ 'x\""];
    for key in keys.iter().rev() {
        put(&store, key, key).await;
    }
    let mut ordered = keys.to_vec();
    ordered.sort_by_key(|key| key.as_bytes());
    let told = |keys: &[&str]| keys.iter().map(|key| format!("{key}={key}")).collect::<Vec<_>>();
    assert_eq!(list(&store, "", None).await, told(&ordered));
    assert_eq!(list(&store, "/ä/", None).await, told(&keys[..6]));
    for key in keys {
        assert_eq!(list(&store, key, None).await[0], format!("{key}={key}"));
        assert_eq!(value(&store, key).await.as_deref(), Some(key));
    }
    let request =
        RangeRequest { start: Some("/ä/日".into()), limit: 2, ..RangeRequest::default() };
    let page = store.range(request).await.unwrap();
    let found: Vec<&str> = page.entries.iter().map(|entry| &*entry.key).collect();
    assert_eq!(found, ["/ä/日本", "/ä/🚢"]);
}
