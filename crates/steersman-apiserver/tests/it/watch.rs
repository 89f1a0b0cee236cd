//! Watch.

use serde_json::json;
use steersman_store::Revision;

use crate::api::{Api, CONFIG_MAPS, config_map, seconds_pass, version};

fn brief(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

#[tokio::test(start_paused = true)]
async fn without_a_version_a_watch_begins_with_the_state() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    for query in ["watch=1", "watch=true&resourceVersion=0"] {
        let mut events = api.watch(&format!("{CONFIG_MAPS}?{query}")).await;
        assert_eq!(events.brief().await, brief("ADDED", "a"));
        assert!(events.is_silent().await);
    }
}

#[tokio::test(start_paused = true)]
async fn with_a_version_a_watch_shows_every_change_after_it_in_order() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({"k": "1"})).await;
    let mut events =
        api.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", version(&created))).await;
    let changed = api.merge(&format!("{CONFIG_MAPS}/a"), &json!({"data": {"k": "2"}})).await.ok();
    api.delete(&format!("{CONFIG_MAPS}/a")).await.ok();
    let event = events.next().await.unwrap();
    assert_eq!(event["type"], "MODIFIED");
    assert_eq!(event["object"], changed);
    let event = events.next().await.unwrap();
    assert_eq!(event["type"], "DELETED");
    assert_eq!(event["object"]["data"]["k"], "2");
    assert_eq!(version(&event["object"]), version(&changed) + 1);
    assert!(events.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn one_object_can_be_watched_in_two_ways() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    api.config_map("ab", &json!({})).await;
    for path in [
        format!("{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Da"),
        "/api/v1/watch/namespaces/default/configmaps/a".to_owned(),
    ] {
        let mut events = api.watch(&path).await;
        assert_eq!(events.brief().await, brief("ADDED", "a"));
        assert!(events.is_silent().await);
    }
}

#[tokio::test(start_paused = true)]
async fn objects_come_and_go_with_their_labels() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}/a");
    let label = |value: &str| json!({"metadata": {"labels": {"app": value}}});
    let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1&labelSelector=app%3Dx")).await;
    api.config_map("a", &json!({})).await;
    api.merge(&path, &label("x")).await.ok();
    assert_eq!(events.brief().await, brief("ADDED", "a"));
    api.merge(&path, &json!({"data": {"k": "v"}})).await.ok();
    assert_eq!(events.brief().await, brief("MODIFIED", "a"));
    let gone = api.merge(&path, &label("y")).await.ok();
    let event = events.next().await.unwrap();
    assert_eq!(event["type"], "DELETED");
    assert_eq!(event["object"]["metadata"]["labels"]["app"], "x");
    assert_eq!(version(&event["object"]), version(&gone));
    api.merge(&path, &json!({"data": {"k": "w"}})).await.ok();
    api.delete(&path).await.ok();
    assert!(events.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn a_compacted_version_is_one_error_event_in_a_good_answer() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({})).await;
    api.config_map("b", &json!({})).await;
    api.store.compact(Revision(version(&created) + 1)).await.unwrap();
    let mut events = api
        .watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", version(&created) - 1))
        .await;
    let event = events.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!(event["object"]["code"], 410);
    assert_eq!(event["object"]["reason"], "Expired");
    assert!(event["object"]["message"].as_str().unwrap().starts_with("too old resource version: "));
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_version_of_the_future_is_from_another_life_and_expired() {
    let api = Api::start().await;
    let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=1000")).await;
    let event = events.next().await.unwrap();
    assert_eq!((event["type"].as_str(), &event["object"]["code"]), (Some("ERROR"), &json!(410)));
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_and_before_the_end() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({})).await;
    let query = "watch=1&allowWatchBookmarks=true&timeoutSeconds=90";
    let mut events =
        api.watch(&format!("{CONFIG_MAPS}?{query}&resourceVersion={}", version(&created))).await;
    let start = tokio::time::Instant::now();
    let other = api.post("/api/v1/namespaces/default/pods", &crate::api::pod("p")).await.ok();
    let event = events.next().await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 60);
    assert_eq!(event["type"], "BOOKMARK");
    assert_eq!(event["object"]["kind"], "ConfigMap");
    assert_eq!(version(&event["object"]), version(&other));
    assert!(event["object"].get("data").is_none());
    assert_eq!(events.next().await.unwrap()["type"], "BOOKMARK");
    assert_eq!(start.elapsed().as_secs(), 90);
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn where_nothing_lies_in_between_bookmarks_come_a_minute_after_changes() {
    let Api { server, store } = Api::start().await;
    let api = Api { server: server.direct(), store };
    let created = api.config_map("a", &json!({})).await;
    let query = "watch=1&allowWatchBookmarks=true&timeoutSeconds=86400";
    let path = format!("{CONFIG_MAPS}?{query}&resourceVersion={}", version(&created));
    let began = tokio::time::Instant::now();
    let mut events = api.watch(&path).await;
    seconds_pass(36_000).await;
    assert!(events.is_silent().await, "nothing has changed");
    let start = tokio::time::Instant::now();
    let other = api.post("/api/v1/namespaces/default/pods", &crate::api::pod("p")).await.ok();
    let event = events.next().await.unwrap();
    assert_eq!((&event["type"], start.elapsed().as_secs()), (&json!("BOOKMARK"), 60));
    assert_eq!(version(&event["object"]), version(&other));
    assert!(events.next().await.is_none(), "at the end there is nothing new to tell");
    assert_eq!(began.elapsed().as_secs(), 86_400);
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_bookmarks_has_none_and_ends_at_its_timeout() {
    let api = Api::start().await;
    let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=90")).await;
    assert!(events.next().await.is_none());
    let start = tokio::time::Instant::now();
    let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    assert!(events.next().await.is_none());
    assert!((1800..3600).contains(&start.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_an_annotated_bookmark() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let last = api.config_map("b", &json!({})).await;
    let query =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = api.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    assert_eq!(events.brief().await, brief("ADDED", "a"));
    assert_eq!(events.brief().await, brief("ADDED", "b"));
    let event = events.next().await.unwrap();
    assert_eq!(event["type"], "BOOKMARK");
    assert_eq!(version(&event["object"]), version(&last));
    assert_eq!(event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(event["object"]["metadata"].get("creationTimestamp"), None);
    api.config_map("c", &json!({})).await;
    assert_eq!(events.brief().await, brief("ADDED", "c"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_anywhere_with_bookmarks_is_one_of_initial_events() {
    let api = Api::start().await;
    let last = api.config_map("a", &json!({})).await;
    for revision in ["", "&resourceVersion=0"] {
        let query = format!("allowWatchBookmarks=true{revision}");
        let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1&{query}")).await;
        assert_eq!(events.brief().await, brief("ADDED", "a"));
        let event = events.next().await.unwrap();
        assert_eq!(event["type"], "BOOKMARK", "{query}");
        assert_eq!(version(&event["object"]), version(&last));
        assert_eq!(event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
        // Whoever asks by the old path does not say in its options that it watches.
        let path = format!("/api/v1/watch/namespaces/default/configmaps?{query}");
        let mut events = api.watch(&path).await;
        assert_eq!(events.brief().await, brief("ADDED", "a"));
        assert!(events.is_silent().await, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_that_does_not_come_in_time_is_an_event_and_no_answer() {
    let api = Api::start().await;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut events = api.watch(&format!("{CONFIG_MAPS}?{query}&resourceVersion=100000")).await;
    let event = events.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(504)));
    let cause = &event["object"]["details"]["causes"][0];
    assert_eq!(cause["reason"], "ResourceVersionTooLarge", "{event}");
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_initial_events_is_told_in_a_row_of_a_table() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let query =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for (include, shown) in [
        ("", "PartialObjectMetadata"),
        ("&includeObject=None", "PartialObjectMetadata"),
        ("&includeObject=Object", "ConfigMap"),
    ] {
        let path = format!("{CONFIG_MAPS}?{query}{include}");
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let mut events = api.watch_as(&path, table).await;
        assert_eq!(events.next().await.unwrap()["type"], "ADDED");
        let event = events.next().await.unwrap();
        assert_eq!(event["type"], "BOOKMARK");
        let rows = event["object"]["rows"].as_array().unwrap();
        let object = &rows[0]["object"];
        assert_eq!((rows.len(), &object["kind"]), (1, &json!(shown)), "{include}");
        assert_eq!(object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
        assert_eq!(version(object), version(&event["object"]));
    }
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_without_a_bookmark_where_none_is_wanted() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut events = api.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    assert_eq!(events.brief().await, brief("ADDED", "a"));
    api.config_map("b", &json!({})).await;
    assert_eq!(events.brief().await, brief("ADDED", "b"));
}

#[tokio::test(start_paused = true)]
async fn initial_events_can_be_declined() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let query = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let mut events = api.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    api.config_map("b", &json!({})).await;
    assert_eq!(events.brief().await, brief("ADDED", "b"));
}

#[tokio::test(start_paused = true)]
async fn options_without_meaning_are_invalid() {
    let api = Api::start().await;
    for (query, message) in [
        (
            "sendInitialEvents=true",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        ("sendInitialEvents=true&resourceVersionMatch=Exact", "sendInitialEvents requires"),
        (
            "resourceVersionMatch=NotOlderThan",
            "is forbidden for watch unless sendInitialEvents is provided",
        ),
        (
            "sendInitialEvents=true&resourceVersionMatch=Exact&continue=x",
            "supported values: \"NotOlderThan\", resourceVersionMatch: Forbidden: \
             resourceVersionMatch is forbidden when continue is provided]",
        ),
        ("continue=x", "resourceVersionMatch is forbidden when continue is provided"),
        ("resourceVersion=0&continue=x", "resourceVersionMatch is forbidden when continue is"),
    ] {
        let status = api.get(&format!("{CONFIG_MAPS}?watch=1&{query}")).await.refused(422);
        assert!(status["message"].as_str().unwrap().contains(message), "{status}");
    }
    let status = api.get(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=x")).await.refused(500);
    assert_eq!(
        status["message"],
        "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_version_passes_over_where_a_list_went_on() {
    let api = Api::start().await;
    let first = api.config_map("a", &json!({})).await;
    let from = version(&first);
    api.config_map("b", &json!({})).await;
    let query = format!("watch=1&resourceVersion={from}&continue=x");
    let mut events = api.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    assert_eq!(events.brief().await, brief("ADDED", "b"));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_watches_cleanly() {
    let api = Api::start().await;
    let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    let server = api.server.clone();
    tokio::spawn(async move {
        seconds_pass(5).await;
        server.shutdown();
    });
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_large_state_comes_in_several_chunks_and_completely() {
    let api = Api::start().await;
    let text = "x".repeat(2000);
    for index in 0..200 {
        let object = config_map(&format!("c{index:03}"), &json!({"text": text}));
        api.post(CONFIG_MAPS, &object).await.ok();
    }
    let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    for index in 0..200 {
        assert_eq!(events.brief().await, brief("ADDED", &format!("c{index:03}")));
    }
}

#[tokio::test(start_paused = true)]
async fn events_come_as_tables_and_as_metadata() {
    let api = Api::start().await;
    api.config_map("a", &json!({"k": "v"})).await;
    let path = format!("{CONFIG_MAPS}?watch=1");
    let mut events = api.watch_as(&path, "application/json;as=Table;v=v1;g=meta.k8s.io").await;
    let event = events.next().await.unwrap();
    assert_eq!(event["object"]["kind"], "Table");
    assert_eq!(event["object"]["rows"][0]["cells"][0], "a");
    let accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let mut events = api.watch_as(&path, accept).await;
    let event = events.next().await.unwrap();
    assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
    assert!(event["object"].get("data").is_none());
}

#[tokio::test(start_paused = true)]
async fn of_the_tables_of_a_watch_only_the_first_says_what_its_columns_are() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    api.config_map("b", &json!({})).await;
    let accept = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let mut events = api.watch_as(&format!("{CONFIG_MAPS}?watch=1"), accept).await;
    assert!(events.next().await.unwrap()["object"]["columnDefinitions"].is_array());
    assert!(events.next().await.unwrap()["object"]["columnDefinitions"].is_null());
}
