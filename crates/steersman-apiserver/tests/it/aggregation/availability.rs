//! Whether the servers that APIServices name can be reached.

use http::Response;
use serde_json::{Value, json};

use super::{API_SERVICES, ORIGIN, TIDES, available, serve_answer, tide, tides, with_tides};
use crate::api::Api;

const SERVICES: &str = "/api/v1/namespaces/shore/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/shore/endpointslices";

fn service(port: u16) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "tides"},
        "spec": {"ports": [{"name": "api", "port": port}]},
    })
}

fn slice(port_name: &str, ready: bool) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "tides-1", "labels": {"kubernetes.io/service-name": "tides"}},
        "addressType": "IPv4", "ports": [{"name": port_name, "port": 443}],
        "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": ready}}],
    })
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_of_a_service_is_told_in_order() {
    let api = Api::start().await;
    api.post("/api/v1/namespaces", &json!({"metadata": {"name": "shore"}})).await.ok();
    let created = api.post(API_SERVICES, &tides()).await.ok();
    assert_eq!(created["status"], json!({}));
    let told = available(&api, "v1.sea.test", "ServiceNotFound").await;
    assert_eq!(told["message"], r#"service/tides in "shore" is not present"#);
    assert_eq!(told["status"], "False");

    api.post(SERVICES, &service(8443)).await.ok();
    let told = available(&api, "v1.sea.test", "ServicePortError").await;
    assert_eq!(told["message"], r#"service/tides in "shore" is not listening on port 443"#);

    api.delete(&format!("{SERVICES}/tides")).await.ok();
    api.post(SERVICES, &service(443)).await.ok();
    let told = available(&api, "v1.sea.test", "EndpointsNotFound").await;
    assert_eq!(told["message"], r#"cannot find endpointslices for service/tides in "shore""#);

    api.post(SLICES, &slice("api", false)).await.ok();
    let told = available(&api, "v1.sea.test", "MissingEndpoints").await;
    assert_eq!(
        told["message"],
        r#"endpointslices for service/tides in "shore" have no addresses with port name "api""#
    );
    let answer = api.get(TIDES).await;
    assert_eq!((answer.code, &answer.bytes[..]), (503, &b"service unavailable\n"[..]));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_with_an_error_is_not_available() {
    let api = Api::start().await;
    serve_answer(&api, |_| {
        let mut response = Response::default();
        *response.status_mut() = http::StatusCode::FORBIDDEN;
        response
    });
    api.post(API_SERVICES, &tides()).await.ok();
    let told = available(&api, "v1.sea.test", "FailedDiscoveryCheck").await;
    let url = "https://tides.shore.svc:443/apis/sea.test/v1";
    assert_eq!(
        told["message"],
        format!("failing or missing response from {url}: bad status from {url}: 403")
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_and_comes_back_is_followed() {
    let (front, behind) = with_tides().await;
    front.post(TIDES, &tide("low", 1)).await.ok();
    front.server.withdraw_extension(ORIGIN);
    let told = available(&front, "v1.sea.test", "ServiceNotFound").await;
    assert_eq!(told["status"], "False");
    assert_eq!(front.get(TIDES).await.code, 503);
    let metrics = String::from_utf8(front.get("/metrics").await.bytes.to_vec()).unwrap();
    for line in [
        "aggregator_unavailable_apiservice{name=\"v1.sea.test\"} 1",
        "aggregator_unavailable_apiservice{name=\"v1.apps\"} 0",
        "aggregator_unavailable_apiservice_total{name=\"v1.sea.test\",reason=\"ServiceNotFound\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}");
    }
    // Everything else goes on.
    front.get("/api/v1/namespaces").await.ok();
    front.get("/apis").await.ok();

    front.server.serve_extension(ORIGIN, behind.server.clone());
    let told = available(&front, "v1.sea.test", "Passed").await;
    assert_eq!((&told["status"], &told["message"]), (&json!("True"), &json!("all checks passed")));
    assert_eq!(front.get(TIDES).await.ok()["items"][0]["spec"]["height"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_gone_leads_nowhere() {
    let (front, _behind) = with_tides().await;
    front.get(TIDES).await.ok();
    front.delete(&format!("{API_SERVICES}/v1.sea.test")).await.ok();
    front.get(TIDES).await.no_page();
    front.get("/apis/sea.test").await.no_page();
}
