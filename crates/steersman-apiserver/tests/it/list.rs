//! GET of many: the table of resourceVersions, pages and selectors.

use bytes::Bytes;
use http::Request;
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use steersman_store::Revision;
use tower::ServiceExt as _;

use crate::api::{Api, CONFIG_MAPS, config_map, name, names, pod, version};

async fn with_three() -> Api {
    let api = Api::start().await;
    for (name, app) in [("c", "x"), ("a", "x"), ("b", "y")] {
        let mut object = config_map(name, &json!({}));
        object["metadata"]["labels"] = json!({"app": app});
        api.post(CONFIG_MAPS, &object).await.ok();
    }
    api
}

async fn list(api: &Api, query: &str) -> Value {
    api.get(&format!("{CONFIG_MAPS}?{query}")).await.ok()
}

#[tokio::test(start_paused = true)]
async fn a_list_is_ordered_by_name_and_has_the_revision_of_the_store() {
    let api = with_three().await;
    let everything = list(&api, "").await;
    assert_eq!(everything["kind"], "ConfigMapList");
    assert_eq!(everything["apiVersion"], "v1");
    assert_eq!(names(&everything), ["a", "b", "c"]);
    api.delete(&format!("{CONFIG_MAPS}/b")).await.ok();
    let later = list(&api, "").await;
    assert_eq!(version(&later), version(&everything) + 1);
    let newest = later["items"].as_array().unwrap().iter().map(version).max().unwrap();
    assert!(version(&later) > newest);
}

#[tokio::test(start_paused = true)]
async fn items_are_the_stored_objects_with_their_own_versions_and_without_their_kind() {
    let api = with_three().await;
    let all = list(&api, "").await;
    for item in all["items"].as_array().unwrap() {
        let mut object = api.get(&format!("{CONFIG_MAPS}/{}", name(item))).await.ok();
        for field in ["apiVersion", "kind"] {
            object.as_object_mut().unwrap().remove(field).unwrap();
        }
        assert_eq!(*item, object);
    }
}

#[tokio::test(start_paused = true)]
async fn all_namespaces_are_listed_where_none_is_named() {
    let api = with_three().await;
    api.post("/api/v1/namespaces/kube-system/configmaps", &config_map("z", &json!({}))).await.ok();
    let all = api.get("/api/v1/configmaps").await.ok();
    assert_eq!(names(&all), ["a", "b", "c", "z"]);
}

#[tokio::test(start_paused = true)]
async fn the_table_of_resource_versions_holds() {
    let api = with_three().await;
    let at_three = version(&list(&api, "").await);
    api.config_map("d", &json!({})).await;
    let count = async |query: &str| names(&list(&api, query).await).len();
    assert_eq!(count("").await, 4);
    assert_eq!(count("resourceVersion=0").await, 4);
    for any in ["resourceVersion=0", "resourceVersion=0&resourceVersionMatch=NotOlderThan"] {
        let all = list(&api, &format!("{any}&limit=2")).await;
        assert_eq!((names(&all).len(), &all["metadata"]["continue"]), (4, &Value::Null), "{any}");
    }
    // Who goes on with a list has its state already.
    let first = list(&api, "limit=2").await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    assert_eq!(count(&format!("resourceVersion=0&limit=1&continue={token}")).await, 1);
    assert_eq!(count(&format!("resourceVersion={at_three}")).await, 4);
    assert_eq!(count(&format!("resourceVersion={at_three}&limit=10")).await, 3);
    let exact = format!("resourceVersion={at_three}&resourceVersionMatch=Exact");
    assert_eq!(count(&exact).await, 3);
    assert_eq!(version(&list(&api, &exact).await), at_three);
    let newer = format!("resourceVersion={at_three}&resourceVersionMatch=NotOlderThan&limit=10");
    assert_eq!(count(&newer).await, 4);
    assert_eq!(count(&newer.replace("limit=10", "limit=2")).await, 2);
    assert_eq!(count(&format!("{exact}&limit=2")).await, 2);
}

#[tokio::test(start_paused = true)]
async fn combinations_without_meaning_are_invalid() {
    let api = with_three().await;
    for (query, message) in [
        (
            "resourceVersionMatch=Exact",
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        ("resourceVersion=0&resourceVersionMatch=Exact", "is forbidden for resourceVersion \"0\""),
        ("resourceVersion=1&resourceVersionMatch=Sometimes", "Unsupported value: \"Sometimes\""),
        (
            "resourceVersion=1&resourceVersionMatch=Exact&continue=x",
            "is forbidden when continue is provided",
        ),
        ("sendInitialEvents=true", "sendInitialEvents is forbidden for list"),
        (
            "resourceVersion=1&resourceVersionMatch=Never&sendInitialEvents=true",
            "supported values: \"Exact\", \"NotOlderThan\", \"\", sendInitialEvents: Forbidden: ",
        ),
    ] {
        let status = api.get(&format!("{CONFIG_MAPS}?{query}")).await.refused(422);
        let text = status["message"].as_str().unwrap();
        assert!(text.starts_with("ListOptions.meta.k8s.io \"\" is invalid: "), "{text}");
        assert!(text.contains(message), "{query}: {text}");
    }
    for query in ["resourceVersion=abc", "limit=many", "continue=!", "labelSelector=a%3D%3D%3D"] {
        api.get(&format!("{CONFIG_MAPS}?{query}")).await.refused(400);
    }
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_does_not_come_is_a_timeout() {
    let api = with_three().await;
    let status = api.get(&format!("{CONFIG_MAPS}?resourceVersion=1000")).await.refused(504);
    assert_eq!(status["reason"], "Timeout");
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert_eq!(status["details"]["retryAfterSeconds"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_comes_in_time_is_waited_for() {
    let api = with_three().await;
    let wanted = version(&list(&api, "").await) + 1;
    let path = format!("{CONFIG_MAPS}?resourceVersion={wanted}");
    let (listed, _) = tokio::join!(api.get(&path), async {
        crate::api::seconds_pass(1).await;
        api.config_map("late", &json!({})).await
    });
    assert_eq!(names(&listed.ok()), ["a", "b", "c", "late"]);
}

#[tokio::test(start_paused = true)]
async fn a_compacted_revision_is_expired() {
    let api = with_three().await;
    let old = version(&list(&api, "").await);
    api.config_map("d", &json!({})).await;
    api.store.compact(Revision(old + 1)).await.unwrap();
    let query = format!("resourceVersion={old}&resourceVersionMatch=Exact");
    let status = api.get(&format!("{CONFIG_MAPS}?{query}")).await.refused(410);
    assert_eq!(status["reason"], "Expired");
    assert_eq!(status["message"], "The resourceVersion for the provided list is too old.");
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_state_and_say_how_much_is_left() {
    let api = with_three().await;
    let first = list(&api, "limit=2").await;
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    api.config_map("bb", &json!({})).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = list(&api, &format!("limit=2&continue={token}")).await;
    assert_eq!(names(&second), ["c"]);
    assert_eq!(version(&second), version(&first));
    assert!(second["metadata"].get("continue").is_none());
    let status = api
        .get(&format!("{CONFIG_MAPS}?limit=2&continue={token}&resourceVersion=3"))
        .await
        .refused(400);
    assert_eq!(status["message"], "specifying resource version is not allowed when using continue");
}

#[tokio::test(start_paused = true)]
async fn an_expired_page_offers_an_inconsistent_continuation() {
    let api = with_three().await;
    let first = list(&api, "limit=1").await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    api.config_map("bb", &json!({})).await;
    api.store.compact(Revision(version(&first) + 1)).await.unwrap();
    let status = api.get(&format!("{CONFIG_MAPS}?limit=1&continue={token}")).await.refused(410);
    assert_eq!(status["reason"], "Expired");
    let fresh = status["metadata"]["continue"].as_str().unwrap();
    let rest = list(&api, &format!("continue={fresh}")).await;
    assert_eq!(names(&rest), ["b", "bb", "c"]);
}

#[tokio::test(start_paused = true)]
async fn selectors_choose_and_pages_with_selectors_do_not_count_the_rest() {
    let api = with_three().await;
    assert_eq!(names(&list(&api, "labelSelector=app%3Dx").await), ["a", "c"]);
    assert_eq!(names(&list(&api, "labelSelector=app+notin+(x)").await), ["b"]);
    assert_eq!(names(&list(&api, "fieldSelector=metadata.name%3Db").await), ["b"]);
    assert_eq!(names(&list(&api, "fieldSelector=metadata.name!%3Db").await), ["a", "c"]);
    let page = list(&api, "labelSelector=app%3Dx&limit=1").await;
    assert_eq!(names(&page), ["a"]);
    assert!(page["metadata"].get("remainingItemCount").is_none());
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = list(&api, &format!("labelSelector=app%3Dx&limit=1&continue={token}")).await;
    assert_eq!(names(&rest), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn fields_of_a_kind_can_be_selected_and_others_are_not_supported() {
    let api = Api::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let mut bound = pod("bound");
    bound["spec"]["nodeName"] = "n1".into();
    api.post(pods, &bound).await.ok();
    api.post(pods, &pod("free")).await.ok();
    let select = async |selector: &str| {
        let list = api.get(&format!("{pods}?fieldSelector={selector}")).await.ok();
        names(&list).join(",")
    };
    assert_eq!(select("spec.nodeName%3Dn1").await, "bound");
    assert_eq!(select("spec.nodeName%3D").await, "free");
    assert_eq!(select("status.phase%3DPending").await, "bound,free");
    assert_eq!(select("metadata.namespace%3Dother").await, "");
    let status = api.get(&format!("{pods}?fieldSelector=spec.x%3Dy")).await.refused(400);
    assert_eq!(status["message"], "field label not supported: spec.x");
    let status = api.get(&format!("{CONFIG_MAPS}?fieldSelector=data%3Dy")).await.refused(400);
    assert_eq!(
        status["message"],
        "\"data\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );
    let jobs = "/apis/batch/v1/namespaces/default/jobs?fieldSelector=x%3Dy";
    let status = api.get(jobs).await.refused(400);
    assert_eq!(status["message"], "field label \"x\" not supported for Job");
}

#[tokio::test(start_paused = true)]
async fn a_list_comes_as_table_as_metadata_and_as_yaml() {
    let api = with_three().await;
    let table = api.get_as(CONFIG_MAPS, "application/json;as=Table;v=v1;g=meta.k8s.io").await.ok();
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["rows"].as_array().unwrap().len(), 3);
    assert_eq!(table["rows"][0]["cells"][0], "a");
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");

    let accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let partial = api.get_as(CONFIG_MAPS, accept).await.ok();
    assert_eq!(partial["kind"], "PartialObjectMetadataList");
    assert_eq!(names(&partial), ["a", "b", "c"]);
    assert!(partial["items"][0].get("data").is_none());

    let yaml = api.get_as(&format!("{CONFIG_MAPS}/a"), "application/yaml").await;
    assert_eq!(yaml.headers["content-type"], "application/yaml");
    assert!(String::from_utf8_lossy(&yaml.bytes).contains("kind: ConfigMap"));
}

#[tokio::test(start_paused = true)]
async fn every_page_counts_the_rest_of_the_first_pages_state() {
    let api = with_three().await;
    for name in ["d", "e", "f", "g"] {
        api.config_map(name, &json!({})).await;
    }
    let mut query = "limit=2".to_owned();
    let mut left = Vec::new();
    loop {
        let page = list(&api, &query).await;
        left.push(page["metadata"]["remainingItemCount"].as_u64());
        // What happens between two pages changes neither.
        api.delete(&format!("{CONFIG_MAPS}/{}", left.len() * 2)).await;
        api.config_map(&format!("late-{}", left.len()), &json!({})).await;
        let Some(token) = page["metadata"]["continue"].as_str() else { break };
        query = format!("limit=2&continue={token}");
    }
    assert_eq!(left, [Some(5), Some(3), Some(1), None]);
}

#[tokio::test(start_paused = true)]
async fn a_long_list_is_written_while_it_is_read() {
    let api = Api::start().await;
    let payload = json!({"payload": "x".repeat(20_000)});
    for number in 0..20 {
        api.post(CONFIG_MAPS, &config_map(&format!("c{number:02}"), &payload)).await.ok();
    }
    let request = Request::get(CONFIG_MAPS).body(Full::<Bytes>::default()).unwrap();
    let mut body = api.server.clone().oneshot(request).await.unwrap().into_body();
    assert!(body.size_hint().exact().is_none(), "it is not there yet");
    let mut whole = Vec::new();
    let mut pieces = 0;
    while let Some(frame) = body.frame().await {
        let piece = frame.unwrap().into_data().unwrap();
        assert!(piece.len() < 128 * 1024, "{} bytes at once", piece.len());
        whole.extend_from_slice(&piece);
        pieces += 1;
    }
    assert!(pieces > 3, "{pieces} pieces");
    let list: Value = serde_json::from_slice(&whole).unwrap();
    assert_eq!(names(&list).len(), 20);
    assert_eq!(list["kind"], "ConfigMapList");
}

#[tokio::test(start_paused = true)]
async fn metadata_is_asked_for_as_that_of_one_object_or_of_a_list() {
    let api = with_three().await;
    let accept = |kind: &str| format!("application/json;as={kind};g=meta.k8s.io;v=v1");
    let one = format!("{CONFIG_MAPS}/a");
    for (path, kind, message) in [
        (
            CONFIG_MAPS,
            "PartialObjectMetadata",
            "you requested PartialObjectMetadata, but the requested object is a list \
             (*core.ConfigMapList)",
        ),
        (
            &one,
            "PartialObjectMetadataList",
            "you requested PartialObjectMetadataList, but the requested object is not a list \
             (*core.ConfigMap)",
        ),
    ] {
        let status = api.get_as(path, &accept(kind)).await.refused(406);
        assert_eq!(
            (&status["reason"], &status["message"]),
            (&"NotAcceptable".into(), &message.into())
        );
    }
    let version = "resourceVersion=abc";
    let status = api.get(&format!("{CONFIG_MAPS}?{version}")).await.refused(400);
    assert_eq!(
        status["message"],
        "invalid resource version: resourceVersion: Invalid value: \"abc\": \
         strconv.ParseUint: parsing \"abc\": invalid syntax"
    );
    api.get(&format!("{one}?{version}")).await.refused(500);
    // One object is not watched by the query.
    assert_eq!(api.get(&format!("{one}?watch=1")).await.ok()["kind"], "ConfigMap");
}
