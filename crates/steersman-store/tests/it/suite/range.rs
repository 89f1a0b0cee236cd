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

pub(crate) async fn the_future_cannot_be_read_watched_or_compacted(store: StoreUnderTest) {
    let current = put(&store, "/a", "1").await;
    let requested = Revision(current.0 + 1);
    let future = StoreError::Future { requested, current };

    let range = RangeRequest { at: Some(requested), ..RangeRequest::default() };
    assert_eq!(store.range(range).await.unwrap_err(), future);
    let watch = WatchRequest { prefix: String::new(), after: requested };
    assert_eq!(store.watch(watch).await.err().unwrap(), future);
    assert_eq!(store.compact(requested).await.unwrap_err(), future);
}
