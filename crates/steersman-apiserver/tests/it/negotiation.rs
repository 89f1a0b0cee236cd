//! In which form answers come: tables, metadata alone, and which paths have neither.

use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::api::{Answer, Api, pod};

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
