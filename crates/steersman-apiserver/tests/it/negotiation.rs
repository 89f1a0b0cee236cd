//! In which form answers come: tables, metadata alone, and which paths have neither.

use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::api::{Answer, Api, CONFIG_MAPS, pod};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

async fn ask(api: &Api, method: Method, path: &str, accept: &str, body: &Value) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, accept);
    api.send(request.body(Full::new(body.to_string().into())).unwrap()).await
}

async fn create(api: &Api, path: &str, accept: &str, body: &Value) -> Answer {
    ask(api, Method::POST, path, accept, body).await
}

const REVIEWS: [&str; 6] = [
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
];

#[tokio::test(start_paused = true)]
async fn what_is_only_created_has_no_table() {
    let api = Api::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    api.post(pods, &pod("p")).await.ok();
    let mut paths = REVIEWS.map(str::to_owned).to_vec();
    paths.extend(["binding", "eviction"].map(|sub| format!("{pods}/p/{sub}")));
    paths.push("/api/v1/namespaces/default/bindings".to_owned());
    paths.push("/api/v1/namespaces/default/serviceaccounts/default/token".to_owned());
    for path in paths {
        let status = create(&api, &path, TABLE, &json!({})).await.refused(406);
        assert_eq!(status["reason"], "NotAcceptable");
        assert_eq!(
            status["message"],
            "only the following media types are accepted: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf",
            "{path}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn some_parts_of_objects_have_no_table_and_most_have() {
    let api = Api::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    api.post(pods, &pod("p")).await.ok();
    for (part, code) in [("status", 200), ("resize", 406), ("ephemeralcontainers", 406)] {
        let path = format!("{pods}/p/{part}");
        assert_eq!(api.get_as(&path, TABLE).await.code, code, "{part}");
        // kubectl also takes the object.
        let either = format!("{TABLE},application/json");
        assert_eq!(api.get_as(&path, &either).await.code, 200, "{part}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_review_has_metadata() {
    let api = Api::start().await;
    let review = json!({"metadata": {"name": "mine"}, "spec": {"token": "t"}});
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let answer = create(&api, path, METADATA, &review).await.ok();
    assert_eq!(answer["kind"], "PartialObjectMetadata");
    assert_eq!(answer["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(answer["metadata"]["name"], "mine");
    assert!(answer.get("status").is_none());
}

#[tokio::test(start_paused = true)]
async fn tables_and_metadata_are_also_told_at_v1beta1() {
    const BETA: &str = "meta.k8s.io/v1beta1";
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let form = |kind: &str| format!("application/json;as={kind};v=v1beta1;g=meta.k8s.io");
    let table = api.get_as(CONFIG_MAPS, &form("Table")).await.ok();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!(BETA)));
    assert_eq!(table["rows"][0]["object"]["apiVersion"], BETA);
    let list = api.get_as(CONFIG_MAPS, &form("PartialObjectMetadataList")).await.ok();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["apiVersion"], BETA);
    assert_eq!(list["items"][0]["apiVersion"], BETA);
    let one = api.get_as(&format!("{CONFIG_MAPS}/a"), &form("PartialObjectMetadata")).await.ok();
    assert_eq!((&one["kind"], &one["apiVersion"]), (&json!("PartialObjectMetadata"), &json!(BETA)));
    for kind in ["Table", "PartialObjectMetadata"] {
        let path = format!("{CONFIG_MAPS}?watch=1");
        // In the other version as well, for what is written once is shared.
        for (accept, expected) in
            [(form(kind), BETA), (form(kind).replace("v1beta1", "v1"), "meta.k8s.io/v1")]
        {
            let mut events = api.watch_as(&path, &accept).await;
            let object = events.next().await.unwrap()["object"].take();
            assert_eq!((&object["kind"], &object["apiVersion"]), (&json!(kind), &json!(expected)));
        }
    }
    let odd = form("Table").replace("v1beta1", "v1alpha1");
    api.get_as(CONFIG_MAPS, &odd).await.refused(406);
}

#[tokio::test(start_paused = true)]
async fn people_get_json_indented() {
    let api = Api::start().await;
    api.config_map("a", &json!({"k": "v"})).await;
    for index in 0..3 {
        api.config_map(&format!("large{index}"), &json!({"k": "v".repeat(60_000)})).await;
    }
    let paths = [
        &format!("{CONFIG_MAPS}/a"),
        CONFIG_MAPS,
        &format!("{CONFIG_MAPS}/absent"),
        "/api",
        "/apis",
        "/apis/apps/v1",
    ];
    for path in paths {
        let compact = api.get(path).await;
        let pretty = api.get(&format!("{path}?pretty=1")).await;
        assert!(!compact.bytes.contains(&b'\n'), "{path}");
        assert!(pretty.bytes.starts_with(b"{\n  \""), "{path}");
        assert_eq!(pretty.json(), compact.json());
    }
    let version = api.get("/version").await;
    assert!(version.bytes.starts_with(b"{\n  \""), "always for people");
    let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1&pretty=1")).await;
    assert_eq!(events.brief().await.1, "a", "one line an event");
}

#[tokio::test(start_paused = true)]
async fn a_status_has_its_fields_in_the_order_of_kubernetes() {
    let api = Api::start().await;
    let status = api.get(&format!("{CONFIG_MAPS}/a")).await;
    assert_eq!(
        status.bytes,
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"configmaps \"a\" not found","reason":"NotFound","details":{"name":"a","kind":"configmaps"},"code":404}"#
    );
}
