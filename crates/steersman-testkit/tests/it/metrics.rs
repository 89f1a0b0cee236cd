//! What Pods and nodes use, as whoever reads `metrics.k8s.io` sees it.

use http::Request;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use steersman::{Result, clock};
use steersman_cluster::User;
use steersman_testkit::Cluster;

const METRICS: &str = "/apis/metrics.k8s.io/v1beta1";
const JSON: &str = "application/json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

fn pod(name: &str, annotations: &Value) -> Pod {
    let container = |name: &str| json!({"name": name, "image": "nginx"});
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"app": name}, "annotations": annotations},
        "spec": {"containers": [container("main"), container("side")]},
    }))
    .unwrap()
}

async fn get(client: &kube::Client, path: &str, accept: &str) -> kube::Result<Value> {
    let request = Request::get(path).header("accept", accept).body(Vec::new()).unwrap();
    client.request(request).await
}

/// What the containers of a Pod use, by the names of Pods.
fn usage(list: &Value) -> Vec<(String, Value)> {
    let items = list["items"].as_array().unwrap().iter();
    let of = |item: &Value| {
        let containers = item["containers"].as_array().unwrap().iter();
        let usage = containers.map(|container| container["usage"].clone());
        (item["metadata"]["name"].as_str().unwrap().to_owned(), usage.collect())
    };
    items.map(of).collect()
}

#[steersman::test(nodes = 1)]
async fn what_pods_use_is_told_while_they_run(cluster: Cluster) -> Result<()> {
    let client = cluster.client().kube();
    let uses = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory});
    let annotations = json!({"steersman.dev/cpu": "1500m", "steersman.dev/side.memory": "128Mi"});
    cluster.client().create(&pod("annotated", &annotations)).await?;
    cluster.client().create(&pod("plain", &json!({}))).await?;
    let mut elsewhere = pod("waiting", &json!({}));
    elsewhere.spec.as_mut().unwrap().node_name = Some("none".into());
    cluster.client().create(&elsewhere).await?;
    for name in ["annotated", "plain"] {
        let runs = |pod: &Pod| pod.status.as_ref().unwrap().phase.as_deref() == Some("Running");
        cluster.eventually(name, runs).await?;
    }
    cluster.pods().named("plain").container("main").uses("250m", "64Mi");
    let pods = format!("{METRICS}/namespaces/default/pods");
    let list = get(client, &pods, JSON).await?;
    assert_eq!(
        usage(&list),
        [
            ("annotated".to_owned(), json!([uses("1500m", "8Mi"), uses("1500m", "128Mi")])),
            ("plain".to_owned(), json!([uses("250m", "64Mi"), uses("1m", "8Mi")])),
        ]
    );
    assert_eq!(list["kind"], "PodMetricsList");
    let first = &list["items"][0];
    assert_eq!((&first["timestamp"], &first["window"]), (&json!(clock::now_time()), &json!("15s")));
    let selected = get(client, &format!("{METRICS}/pods?labelSelector=app%3Dplain"), JSON).await?;
    assert_eq!(usage(&selected)[0].0, "plain");

    let table = get(client, &format!("{pods}/plain"), TABLE).await?;
    let columns: Vec<_> = table["columnDefinitions"].as_array().unwrap().iter().collect();
    let columns: Vec<_> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
    assert_eq!(columns, ["Name", "cpu", "memory", "Window"]);
    assert_eq!(table["rows"][0]["cells"], json!(["plain", "251m", "72Mi", "15s"]));
    let node = get(client, &format!("{METRICS}/nodes/node-0"), JSON).await?;
    assert_eq!(node["usage"], uses("3301m", "720Mi"));

    for (name, message) in [
        ("waiting", "podmetrics.metrics.k8s.io \"default/waiting\" not found"),
        ("none", "pods \"none\" not found"),
    ] {
        let refused = get(client, &format!("{pods}/{name}"), JSON).await.unwrap_err();
        let kube::Error::Api(status) = refused else { panic!("{refused}") };
        assert_eq!((status.code, &*status.message), (404, message));
    }
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn the_metrics_api_is_one_like_others(cluster: Cluster) -> Result<()> {
    let client = cluster.client().kube();
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let service = get(client, &format!("{services}/v1beta1.metrics.k8s.io"), JSON).await?;
    assert_eq!(service["status"]["conditions"][0]["reason"], "Passed");
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let groups = get(client, "/apis", aggregated).await?;
    let groups = groups["items"].as_array().unwrap();
    let told = groups.iter().find(|group| group["metadata"]["name"] == "metrics.k8s.io").unwrap();
    let told = told["versions"][0]["resources"].as_array().unwrap();
    let here = get(client, METRICS, JSON).await?;
    for (told, here) in told.iter().zip(here["resources"].as_array().unwrap()) {
        assert_eq!(told["resource"], here["name"]);
        assert_eq!(told["responseKind"]["kind"], here["kind"]);
        assert_eq!(told["singularResource"], here["singularName"]);
        assert_eq!(told["verbs"], here["verbs"]);
        assert_eq!(told["scope"] == "Namespaced", here["namespaced"] == true);
    }
    let document = get(client, &format!("/openapi/v3{METRICS}"), JSON).await?;
    let schema = &document["components"]["schemas"]["io.k8s.metrics.v1beta1.NodeMetrics"];
    assert_eq!(schema["description"], "NodeMetrics sets resource usage metrics of a node.");

    let jane = cluster.inner().client_as(User::known("jane", &[]));
    let refused = get(&jane, &format!("{METRICS}/nodes"), JSON).await.unwrap_err().to_string();
    assert!(refused.contains("cannot list resource \"nodes\" in API group"), "{refused}");
    // Who else serves it is asked instead.
    let other = json!({"spec": {"service": {"name": "metrics-server"}}});
    let request = Request::patch(format!("{services}/v1beta1.metrics.k8s.io"))
        .header("content-type", "application/merge-patch+json")
        .body(other.to_string().into_bytes());
    client.request::<Value>(request?).await?;
    let gone = get(client, &format!("{METRICS}/nodes"), JSON).await.unwrap_err();
    assert!(matches!(&gone, kube::Error::Api(status) if status.code == 503), "{gone}");
    Ok(())
}
