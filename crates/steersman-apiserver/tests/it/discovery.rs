//! Discovery, version and health.

use http::{Request, header};
use http_body_util::Full;
use serde_json::Value;

use crate::api::Api;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

#[tokio::test(start_paused = true)]
async fn old_clients_walk_from_group_to_resource() {
    let api = Api::start().await;
    assert_eq!(api.get("/api").await.ok()["versions"], serde_json::json!(["v1"]));
    let groups = api.get("/apis").await.ok();
    assert_eq!(groups["kind"], "APIGroupList");
    let find = |name: &str| {
        let all = groups["groups"].as_array().unwrap();
        all.iter().find(|group| group["name"] == name).unwrap().clone()
    };
    assert_eq!(find("apps")["preferredVersion"]["groupVersion"], "apps/v1");
    assert_eq!(find("autoscaling")["preferredVersion"]["version"], "v2");
    let core = api.get("/api/v1").await.ok();
    let resources = core["resources"].as_array().unwrap();
    let by_name = |name: &str| resources.iter().find(|r| r["name"] == name).unwrap();
    assert_eq!(by_name("pods")["shortNames"][0], "po");
    assert_eq!(by_name("pods/status")["kind"], "Pod");
    assert_eq!(by_name("replicationcontrollers/scale")["group"], "autoscaling");
    assert_eq!(by_name("nodes")["namespaced"], false);
    api.get("/apis/nothing.example.com/v1").await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn new_clients_ask_once_and_come_back_with_the_etag() {
    let api = Api::start().await;
    let answer = api.get_as("/apis", AGGREGATED).await;
    assert_eq!(
        answer.headers[header::CONTENT_TYPE],
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    let list = answer.ok();
    assert_eq!(list["kind"], "APIGroupDiscoveryList");
    let groups: Vec<&Value> = list["items"].as_array().unwrap().iter().collect();
    let apps = groups.iter().find(|group| group["metadata"]["name"] == "apps").unwrap();
    let deployments = apps["versions"][0]["resources"].as_array().unwrap();
    let deployments = deployments.iter().find(|r| r["resource"] == "deployments").unwrap();
    assert_eq!(deployments["responseKind"]["kind"], "Deployment");
    assert_eq!(deployments["scope"], "Namespaced");
    assert!(
        deployments["subresources"].as_array().unwrap().iter().any(|s| s["subresource"] == "scale")
    );

    let request = Request::builder()
        .uri("/apis")
        .header(header::ACCEPT, AGGREGATED)
        .header(header::IF_NONE_MATCH, &answer.headers[header::ETAG]);
    let unchanged = api.send(request.body(Full::default()).unwrap()).await;
    assert_eq!(unchanged.code, 304);
    assert!(unchanged.bytes.is_empty());

    let core = api.get_as("/api", AGGREGATED).await.ok();
    assert_eq!(core["items"][0]["versions"][0]["version"], "v1");
}

#[tokio::test(start_paused = true)]
async fn version_and_health_are_told() {
    let api = Api::start().await;
    let version = api.get("/version").await.ok();
    assert_eq!((&version["major"], &version["minor"]), (&"1".into(), &"36".into()));
    for path in ["/healthz", "/livez", "/readyz", "/readyz/ping"] {
        assert_eq!(api.get(path).await.bytes, "ok");
    }
    let verbose = api.get("/readyz?verbose").await;
    assert_eq!(
        verbose.bytes,
        "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]shutdown ok\nreadyz check passed\n"
    );
    let paths = api.get("/").await.ok();
    assert!(paths["paths"].as_array().unwrap().contains(&"/apis/apps/v1".into()));
}
