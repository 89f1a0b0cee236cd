//! What every cluster has, and keeps.

use serde_json::json;

use crate::api::{Api, seconds_pass};

#[tokio::test(start_paused = true)]
async fn priority_classes_and_the_range_of_addresses_exist_from_the_start() {
    let api = Api::start().await;
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = api.get(&format!("{classes}/system-node-critical")).await.ok();
    assert_eq!(class["value"], 2_000_001_000);
    let class = api.get(&format!("{classes}/system-cluster-critical")).await.ok();
    assert_eq!(class["value"], 2_000_000_000);
    let kept = api.delete(&format!("{classes}/system-cluster-critical")).await.refused(403);
    let why = "priorityclasses.scheduling.k8s.io \"system-cluster-critical\" is forbidden: this is a \
               system priority class and cannot be deleted";
    assert_eq!(kept["message"], why);
    let range = api.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes").await.ok();
    assert_eq!(range["spec"]["cidrs"], json!(["10.96.0.0/12"]));
    assert_eq!(range["status"]["conditions"][0]["type"], "Ready");
    api.get("/apis/networking.k8s.io/v1/ipaddresses/10.96.0.1").await.ok();
}

#[tokio::test(start_paused = true)]
async fn the_service_of_the_api_comes_back_with_its_endpoints() {
    let api = Api::start().await;
    api.server.advertise("127.0.0.1:6443".parse().unwrap());
    let server = api.server.clone();
    tokio::spawn(async move { server.run_bootstrap().await });
    seconds_pass(1).await;
    let service = "/api/v1/namespaces/default/services/kubernetes";
    let endpoints = "/api/v1/namespaces/default/endpoints/kubernetes";
    let slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    assert_eq!(api.get(endpoints).await.ok()["subsets"][0]["addresses"][0]["ip"], "127.0.0.1");
    let found = api.get(slice).await.ok();
    assert_eq!(found["metadata"]["labels"]["kubernetes.io/service-name"], "kubernetes");
    assert_eq!(found["ports"][0]["port"], 6443);

    let before = api.get(service).await.ok();
    for path in [service, slice] {
        api.delete(path).await.ok();
    }
    api.get(endpoints).await.refused(404);
    seconds_pass(11).await;
    let after = api.get(service).await.ok();
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["spec"]["clusterIP"], "10.96.0.1");
    for path in [endpoints, slice] {
        api.get(path).await.ok();
    }
}

#[tokio::test(start_paused = true)]
async fn in_the_steady_state_nothing_is_written() {
    let api = Api::start().await;
    let server = api.server.clone();
    tokio::spawn(async move { server.run_bootstrap().await });
    seconds_pass(1).await;
    let revision = |list: serde_json::Value| list["metadata"]["resourceVersion"].clone();
    let before = revision(api.get("/api/v1/namespaces").await.ok());
    seconds_pass(600).await;
    assert_eq!(revision(api.get("/api/v1/namespaces").await.ok()), before);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_listens_renews_a_lease_and_removes_those_of_servers_that_are_gone() {
    let api = Api::start().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    let gone = json!({
        "metadata": {
            "name": "apiserver-gone", "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"},
        },
        "spec": {
            "holderIdentity": "gone", "leaseDurationSeconds": 3600,
            "renewTime": "2024-12-31T22:00:00.000000Z",
        },
    });
    api.post(leases, &gone).await.ok();
    api.server.advertise("127.0.0.1:6443".parse().unwrap());
    let server = api.server.clone();
    tokio::spawn(async move { server.run_bootstrap().await });
    seconds_pass(1).await;
    let selected =
        format!("{leases}?labelSelector=apiserver.kubernetes.io/identity%3Dkube-apiserver");
    let found = api.get(&selected).await.ok();
    let [lease] = found["items"].as_array().unwrap().as_slice() else { panic!("{found}") };
    let name = lease["metadata"]["name"].as_str().unwrap();
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap();
    assert!(name.starts_with("apiserver-") && holder.starts_with(&format!("{name}_")), "{lease}");
    assert!(lease["metadata"]["labels"]["kubernetes.io/hostname"].is_string());
    seconds_pass(20).await;
    let renewed = api.get(&format!("{leases}/{name}")).await.ok();
    assert_eq!(renewed["spec"]["holderIdentity"], holder);
    assert_ne!(renewed["spec"]["renewTime"], lease["spec"]["renewTime"]);
}
