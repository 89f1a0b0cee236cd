//! What metrics propose, read from a server that answers given paths.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use k8s_openapi::api::autoscaling::v2::MetricSpec;
use k8s_openapi::api::core::v1::Pod;
use kube::client::Body;
use serde_json::{Value, json};
use steersman::{Client, clock};

use crate::horizontal_pod_autoscaler::metrics_api::MetricsApi;
use crate::horizontal_pod_autoscaler::proposal::{Proposal, Proposer, Unable};
use crate::horizontal_pod_autoscaler::replicas::{Situation, Tolerances};
use crate::horizontal_pod_autoscaler::settings::AutoscalerSettings;
use crate::horizontal_pod_autoscaler::target::Kinds;

/// Answers of a server by path and parameters; everything else is not found.
type Answers = Vec<(&'static str, Value)>;

fn client(answers: Answers) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let asked = request.uri().path_and_query().map(|asked| asked.as_str().to_owned());
        let known = answers.iter().find(|(path, _)| asked.as_deref() == Some(*path));
        let (code, body) = match known {
            Some((_, answer)) => (200, answer.to_string()),
            None => (404, "404 page not found\n".to_owned()),
        };
        async move {
            let mut response = Response::new(Body::from(body.into_bytes()));
            *response.status_mut() = code.try_into().unwrap();
            Ok::<_, Infallible>(response)
        }
    });
    Client::new(kube::Client::new(service, "default"), "test")
}

/// What a metric proposes for two Pods that run.
async fn proposed(answers: Answers, metric: Value) -> Result<Proposal, Unable> {
    let pod = |name: &str| -> Arc<Pod> {
        let ready = json!({"type": "Ready", "status": "True"});
        let pod = json!({
            "metadata": {"name": name},
            "spec": {"containers": [
                {"name": "main", "resources": {"requests": {"memory": "64Mi"}}}, {"name": "side"},
            ]},
            "status": {"phase": "Running", "conditions": [ready]},
        });
        Arc::new(serde_json::from_value(pod).unwrap())
    };
    let client = client(answers);
    let pods = [pod("a"), pod("b")];
    let proposer = Proposer {
        api: MetricsApi { client: &client, kinds: &Kinds::default(), namespace: "shop" },
        selector: "app=web".to_owned(),
        situation: Situation {
            spec_replicas: 2,
            status_replicas: 2,
            pods: &pods,
            tolerances: Tolerances::of(None, 0.1),
            settings: AutoscalerSettings::default(),
            now: clock::now(),
        },
    };
    let spec: MetricSpec = serde_json::from_value(metric).unwrap();
    proposer.propose(&spec).await
}

/// That the API for metrics of objects is served in this version.
fn group(version: &str) -> Value {
    let version =
        json!({"groupVersion": format!("custom.metrics.k8s.io/{version}"), "version": version});
    json!({"name": "custom.metrics.k8s.io", "versions": [version], "preferredVersion": version})
}

fn values(items: &[(&str, &str)]) -> Value {
    let item = |(name, value): &(&str, &str)| {
        let timestamp = "2026-01-01T00:00:00Z";
        json!({"describedObject": {"kind": "Pod", "name": name}, "timestamp": timestamp,
               "value": value, "windowSeconds": 60})
    };
    json!({"items": items.iter().map(item).collect::<Vec<_>>()})
}

const GROUP: &str = "/apis/custom.metrics.k8s.io";

#[tokio::test]
async fn a_metric_of_pods_is_read_in_either_version() {
    let metric = json!({"name": "requests", "selector": {"matchLabels": {"verb": "GET"}}});
    let target = json!({"type": "AverageValue", "averageValue": "10"});
    let metric = json!({"type": "Pods", "pods": {"metric": metric, "target": target}});
    for (version, path) in [
        (
            "v1beta1",
            "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/pods/*/requests\
             ?labelSelector=app%3Dweb&metricLabelSelector=verb%3DGET",
        ),
        (
            "v1beta2",
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/requests\
             ?labelSelector=app%3Dweb&metricLabelSelector=verb%3DGET",
        ),
    ] {
        let answers =
            vec![(GROUP, group(version)), (path, values(&[("a", "20"), ("b", "25500m")]))];
        let proposal = proposed(answers, metric.clone()).await.unwrap();
        assert_eq!((proposal.replicas, &*proposal.metric), (5, "pods metric requests"));
        let current = &json!(proposal.status)["pods"]["current"];
        assert_eq!(current, &json!({"averageValue": "22750m"}));
    }
}

#[tokio::test]
async fn a_metric_of_an_object_is_compared_to_a_value_or_to_one_for_each_pod() {
    let path =
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/ingresses.networking.k8s.io/main/hits";
    let resource = json!({"name": "ingresses", "singularName": "", "namespaced": true, "kind": "Ingress", "verbs": []});
    let version = json!({"groupVersion": "networking.k8s.io/v1", "version": "v1"});
    let answers = || {
        vec![
            (GROUP, group("v1beta2")),
            ("/apis", json!({"groups": [{"name": "networking.k8s.io", "versions": [version]}]})),
            (
                "/apis/networking.k8s.io/v1",
                json!({"groupVersion": "networking.k8s.io/v1", "resources": [resource]}),
            ),
            (path, values(&[("main", "300")])),
        ]
    };
    let object = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"});
    let metric = |target: Value| {
        let source = json!({
            "describedObject": object, "metric": {"name": "hits"}, "target": target,
        });
        json!({"type": "Object", "object": source})
    };
    let value = metric(json!({"type": "Value", "value": "100"}));
    let proposal = proposed(answers(), value).await.unwrap();
    assert_eq!((proposal.replicas, &*proposal.metric), (6, "Ingress metric hits"));
    assert_eq!(json!(proposal.status)["object"]["current"], json!({"value": "300"}));
    let average = metric(json!({"type": "AverageValue", "averageValue": "100"}));
    let proposal = proposed(answers(), average.clone()).await.unwrap();
    assert_eq!((proposal.replicas, &*proposal.metric), (3, "external metric hits(nil)"));
    assert_eq!(json!(proposal.status)["object"]["current"], json!({"averageValue": "150"}));
    let unable = proposed(answers()[..3].to_vec(), average).await.unwrap_err();
    let why = "unable to get metric hits: Ingress on shop main/unable to fetch metrics from custom \
               metrics API: the server could not find the requested resource (get \
               ingresses.networking.k8s.io.custom.metrics.k8s.io main)";
    assert_eq!((unable.reason, &*unable.cause), ("FailedGetObjectMetric", why));
    let error =
        format!("failed to get object metric value: failed to get hits object metric: {why}");
    assert_eq!(unable.error, error);
}

#[tokio::test]
async fn a_metric_of_the_namespace_itself_has_a_path_of_its_own() {
    let path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/metrics/orders";
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "name": "other"});
    let source = json!({"describedObject": object, "metric": {"name": "orders"},
                        "target": {"type": "Value", "value": "10"}});
    let metric = json!({"type": "Object", "object": source});
    let answers = vec![(GROUP, group("v1beta2")), (path, values(&[("shop", "20")]))];
    assert_eq!(proposed(answers, metric.clone()).await.unwrap().replicas, 4);
    let unable = proposed(Vec::new(), metric).await.unwrap_err();
    let none = "no custom metrics API (custom.metrics.k8s.io) registered";
    assert!(unable.cause.ends_with(none), "{}", unable.cause);
}

#[tokio::test]
async fn one_container_of_each_pod_can_be_measured() {
    let path = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%3Dweb";
    let pod = |name: &str, memory: &str| {
        let containers = json!([
            {"name": "side", "usage": {"memory": "1Gi"}}, {"name": "main", "usage": {"memory": memory}},
        ]);
        json!({"metadata": {"name": name}, "timestamp": "2026-01-01T00:00:00Z", "window": "30s",
               "containers": containers})
    };
    let answers = || vec![(path, json!({"items": [pod("a", "48Mi"), pod("b", "48Mi")]}))];
    let metric = |container: &str| {
        let target = json!({"type": "Utilization", "averageUtilization": 50});
        let source = json!({"name": "memory", "container": container, "target": target});
        json!({"type": "ContainerResource", "containerResource": source})
    };
    let proposal = proposed(answers(), metric("main")).await.unwrap();
    let name = "memory container resource utilization (percentage of request)";
    assert_eq!((proposal.replicas, &*proposal.metric), (3, name));
    let current = &json!(proposal.status)["containerResource"]["current"];
    assert_eq!(current, &json!({"averageUtilization": 75, "averageValue": "48Mi"}));
    let unable = proposed(answers(), metric("side")).await.unwrap_err();
    let why =
        "failed to get memory utilization: missing request for memory in container side of Pod a";
    assert_eq!((unable.reason, &*unable.cause), ("FailedGetContainerResourceMetric", why));
    assert_eq!(unable.error, format!("failed to get side container metric value: {why}"));
}

#[tokio::test]
async fn values_from_outside_add_up() {
    let path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue";
    let metric = |target: Value| {
        let source = json!({"metric": {"name": "queue"}, "target": target});
        json!({"type": "External", "external": source})
    };
    let value = metric(json!({"type": "Value", "value": "10"}));
    let answers = vec![(path, values(&[("x", "10"), ("y", "15")]))];
    let proposal = proposed(answers, value.clone()).await.unwrap();
    assert_eq!((proposal.replicas, &*proposal.metric), (5, "external metric queue(nil)"));
    assert_eq!(json!(proposal.status)["external"]["current"], json!({"value": "25"}));
    let unable = proposed(Vec::new(), value).await.unwrap_err();
    let why = "unable to get external metric shop/queue/nil: unable to fetch metrics from external \
               metrics API: the server could not find the requested resource (get \
               queue.external.metrics.k8s.io)";
    assert_eq!((unable.reason, &*unable.cause), ("FailedGetExternalMetric", why));
    let error = format!(
        "failed to get queue external metric value: failed to get external metric queue: {why}"
    );
    assert_eq!(unable.error, error);
}
