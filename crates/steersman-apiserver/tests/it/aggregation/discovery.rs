//! What is told of servers elsewhere: discovery in both forms, and OpenAPI.

use serde_json::{Value, json};

use super::{API_SERVICES, ORIGIN, available, tides, with_tides};
use crate::api::Api;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

async fn aggregated(api: &Api) -> Value {
    let all = api.get_as("/apis", AGGREGATED).await.ok();
    let items = all["items"].as_array().unwrap();
    items.iter().find(|group| group["metadata"]["name"] == "sea.test").cloned().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn both_forms_of_discovery_tell_what_a_server_elsewhere_has() {
    let (front, _behind) = with_tides().await;
    let version = &aggregated(&front).await["versions"][0];
    assert_eq!((&version["version"], &version["freshness"]), (&json!("v1"), &json!("Current")));
    assert_eq!(version["resources"][0]["resource"], "tides");
    assert_eq!(version["resources"][0]["shortNames"], json!(["td"]));
    let group = front.get("/apis/sea.test").await.ok();
    assert_eq!(group["preferredVersion"]["groupVersion"], "sea.test/v1");
    let resources = front.get("/apis/sea.test/v1").await.ok();
    assert_eq!(resources["resources"][0]["kind"], "Tide");
}

/// By its priority a group stands among the others.
#[tokio::test(start_paused = true)]
async fn a_group_stands_where_its_priority_puts_it() {
    let (front, _behind) = with_tides().await;
    let order = async || {
        let all = front.get("/apis").await.ok();
        let groups = all["groups"].as_array().unwrap().clone();
        groups.iter().position(|group| group["name"] == "sea.test").unwrap()
    };
    let last = front.get("/apis").await.ok()["groups"].as_array().unwrap().len() - 1;
    assert_eq!(order().await, last);
    let path = format!("{API_SERVICES}/v1.sea.test");
    front.merge(&path, &json!({"spec": {"groupPriorityMinimum": 17_799}})).await.ok();
    // Behind apiregistration.k8s.io and apps.
    assert_eq!(order().await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_dead_server_is_told_of_as_stale_and_delays_nobody() {
    let (front, _behind) = with_tides().await;
    // What is kept for those who ask again must not outlive it.
    assert_eq!(aggregated(&front).await["versions"][0]["freshness"], "Current");
    let never = tower::service_fn(|_: http::Request<http_body_util::Full<bytes::Bytes>>| {
        std::future::pending::<
            Result<http::Response<http_body_util::Full<bytes::Bytes>>, std::convert::Infallible>,
        >()
    });
    front.server.serve_extension(ORIGIN, never);
    available(&front, "v1.sea.test", "FailedDiscoveryCheck").await;
    let before = tokio::time::Instant::now();
    let version = &aggregated(&front).await["versions"][0];
    assert_eq!(*version, json!({"version": "v1", "freshness": "Stale"}));
    front.get("/apis/apps/v1").await.ok();
    front.get("/openapi/v3").await.ok();
    assert_eq!(front.get("/apis/sea.test/v1").await.code, 503);
    assert_eq!(before.elapsed(), std::time::Duration::ZERO);
    // It is still among the groups, as in Kubernetes.
    front.get("/apis/sea.test").await.ok();
}

#[tokio::test(start_paused = true)]
async fn openapi_has_the_document_of_a_server_elsewhere() {
    let (front, behind) = with_tides().await;
    let index = front.get("/openapi/v3").await.ok();
    let url = index["paths"]["apis/sea.test/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let document = front.get(&url).await.ok();
    assert_eq!(document, behind.get("/openapi/v3/apis/sea.test/v1").await.ok());
    assert!(document["components"]["schemas"]["test.sea.v1.Tide"].is_object());
    let whole = front.get("/openapi/v2").await.ok();
    assert_eq!(whole["definitions"], behind.get("/openapi/v2").await.ok()["definitions"]);
    assert!(whole["paths"]["/apis/sea.test/v1/namespaces/{namespace}/tides"].is_object());
    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let written = front.get_as("/openapi/v2", protobuf).await;
    let name = b"test.sea.v1.Tide";
    assert!(written.bytes.windows(name.len()).any(|window| window == name));
}

#[tokio::test(start_paused = true)]
async fn what_leads_elsewhere_wins_over_a_definition_of_the_same_version() {
    let (front, behind) = with_tides().await;
    let definition = super::tide_definition();
    front.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.ok();
    front.post(super::TIDES, &super::tide("low", 1)).await.ok();
    behind.get(&format!("{}/low", super::TIDES)).await.ok();
    assert_eq!(aggregated(&front).await["versions"].as_array().unwrap().len(), 1);
    // Without it, the definition serves.
    front.delete(&format!("{API_SERVICES}/v1.sea.test")).await.ok();
    front.get(&format!("{}/low", super::TIDES)).await.refused(404);
    let service = front.get(&format!("{API_SERVICES}/v1.sea.test")).await.ok();
    assert_eq!(service["spec"]["service"], Value::Null);
    assert_ne!(service["spec"], tides()["spec"]);
}
