//! Tides, as users of a cluster meet them: without a socket, and over HTTPS.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking, in shared functions too")]

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    ApiResource, DynamicObject, GroupVersionKind, ListParams, WatchEvent, WatchParams,
};
use kube::{Api, Client};
use serde_json::Value;
use steersman_apiserver::Clock;
use steersman_apiserver::pki::Pki;
use steersman_apiserver::user::User;
use steersman_cluster::Cluster;
use tides::server;
use tides::tide::Tide;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A moment of 2025, right after high water at Brest.
fn clock() -> Clock {
    Arc::new(|| jiff::Timestamp::from_second(39_000 * 44_714 + 1).unwrap())
}

/// Asks for a path, and gives what is answered.
async fn get(client: &Client, path: &str, accept: &str) -> Value {
    let request = Request::get(path).header("accept", accept).body(Vec::new()).unwrap();
    client.request(request).await.unwrap()
}

/// Waits until the APIService says that tides are there.
async fn available(client: &Client) {
    let kind = GroupVersionKind::gvk("apiregistration.k8s.io", "v1", "APIService");
    let services: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let one = WatchParams::default().fields("metadata.name=v1.sea.steersman.dev");
    let mut events = services.watch(&one, "0").await.unwrap().boxed();
    let mut told = Value::Null;
    let there = async {
        while told["status"] != "True" {
            if let WatchEvent::Added(service) | WatchEvent::Modified(service) =
                events.next().await.unwrap().unwrap()
            {
                told = service.data["status"]["conditions"][0].clone();
            }
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), there).await;
    assert!(waited.is_ok(), "tides never come: {told}");
}

/// Waits until the cluster says how those behind it know it, soon after it listens.
async fn known(client: &Client) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let one = WatchParams::default().fields("metadata.name=extension-apiserver-authentication");
    let mut events = maps.watch(&one, "0").await.unwrap().boxed();
    // At first there may be nothing, which a bookmark says.
    let there =
        async { while let WatchEvent::Bookmark(_) = events.next().await.unwrap().unwrap() {} };
    let waited = tokio::time::timeout(Duration::from_secs(60), there).await;
    waited.expect("the cluster says nothing");
}

/// What every way of serving tides must show.
async fn shows_tides(client: &Client) {
    let tides: Api<Tide> = Api::all(client.clone());
    let list = tides.list(&ListParams::default()).await.unwrap();
    let names: Vec<_> =
        list.items.iter().filter_map(|tide| tide.metadata.name.as_deref()).collect();
    assert_eq!(names, ["brest", "dover", "cuxhaven"]);
    assert_eq!(tides.get("brest").await.unwrap().spec.centimetres, 210);
    assert!(tides.get_opt("mars").await.unwrap().is_none());
    let brest = WatchParams::default().fields("metadata.name=brest");
    let mut events = tides.watch(&brest, "0").await.unwrap().boxed();
    match events.next().await.unwrap().unwrap() {
        WatchEvent::Added(tide) => assert_eq!(tide.spec.centimetres, 210),
        event => panic!("{event:?}"),
    }
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = get(client, "/apis/sea.steersman.dev/v1/tides/brest", table).await;
    assert_eq!(table["rows"][0]["cells"], serde_json::json!(["brest", 210, "Falling"]));
    let document = get(client, "/openapi/v3/apis/sea.steersman.dev/v1", "application/json").await;
    let tide = &document["components"]["schemas"]["dev.steersman.sea.v1.Tide"];
    let height = &tide["properties"]["spec"]["properties"]["centimetres"]["description"];
    assert_eq!(height, "How many centimetres the water stands above its mean.");
}

#[tokio::test]
async fn tides_are_served_without_a_socket() {
    let cluster = Cluster::builder().start().await.unwrap();
    let tides = server::in_process(cluster.api().clone(), clock()).await.unwrap();
    cluster.api().serve_extension("https://tides.default.svc", tides);
    let client = cluster.client();
    let request = Request::post("/apis/apiregistration.k8s.io/v1/apiservices")
        .header("content-type", "application/json");
    let object = server::api_service("default", "tides", 443, None).to_string().into_bytes();
    client.request::<Value>(request.body(object).unwrap()).await.unwrap();
    available(&client).await;
    shows_tides(&client).await;

    let nobody = cluster.client_as(User::known("nobody", &[]));
    let refused = Api::<Tide>::all(nobody).get("brest").await.unwrap_err().to_string();
    assert!(refused.contains("cannot get resource \"tides\""), "{refused}");
}

#[tokio::test]
async fn tides_are_served_over_https() {
    let cluster = Cluster::builder().listen(([127, 0, 0, 1], 0).into()).start().await.unwrap();
    let client = cluster.client();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let pki = Pki::new(&["tides.default.svc".to_owned()]).unwrap();
    server::register(&client, port, &pki.ca).await.unwrap();
    let shutdown = CancellationToken::new();
    known(&client).await;
    let serving = server::serve(client.clone(), clock(), (listener, pki), shutdown.clone());
    let serving = tokio::spawn(serving);
    available(&client).await;
    shows_tides(&client).await;
    shutdown.cancel();
    serving.await.unwrap().unwrap();
}
