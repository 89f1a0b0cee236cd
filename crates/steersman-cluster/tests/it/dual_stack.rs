//! A cluster whose Services, nodes and Pods have addresses of both families.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};
use steersman_cluster::Cluster;
use tokio::time::{interval, timeout};

use crate::{PATIENCE, running_pods};

fn web() -> Value {
    json!({
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    })
}

/// The addresses of each slice of a Service by family, once there are so many slices with endpoints.
async fn slices(cluster: &Cluster, count: usize) -> Vec<(String, Vec<String>)> {
    let slices: Api<EndpointSlice> = Api::default_namespaced(cluster.client());
    let mut tick = interval(Duration::from_millis(20));
    let of_web = ListParams::default().labels("kubernetes.io/service-name=web");
    let found = async {
        loop {
            let listed = slices.list(&of_web).await.unwrap().items;
            let mut found: Vec<(String, Vec<String>)> = listed
                .into_iter()
                .map(|slice| {
                    let endpoints = slice.endpoints.into_iter().flatten();
                    let addresses = endpoints.flat_map(|endpoint| endpoint.addresses).collect();
                    (slice.address_type, addresses)
                })
                .filter(|(_, addresses): &(String, Vec<String>)| !addresses.is_empty())
                .collect();
            if found.len() == count {
                found.sort();
                return found;
            }
            tick.tick().await;
        }
    };
    timeout(PATIENCE, found).await.expect("there are slices")
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_found_by_both_its_addresses() {
    let ranges = "10.96.0.0/16,fd00:10:96::/112".parse().unwrap();
    let cluster = Cluster::builder().nodes(1).service_ranges(ranges).start().await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let pod: Pod = serde_json::from_value(web()).unwrap();
    let services: Api<Service> = Api::default_namespaced(cluster.client());
    let service = json!({
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ipFamilyPolicy": "RequireDualStack",
                 "ports": [{"port": 80}]},
    });
    let service = serde_json::from_value(service).unwrap();
    services.create(&PostParams::default(), &service).await.unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    running_pods(&cluster, 1).await;

    let status = pods.get("web").await.unwrap().status.unwrap();
    let ips: Vec<String> = status.pod_ips.unwrap().into_iter().map(|it| it.ip).collect();
    assert_eq!(ips, ["10.244.0.1", "fd00:10:244::af4:1"]);
    assert_eq!(status.pod_ip, Some(ips[0].clone()));
    assert_eq!(status.host_ips.unwrap().len(), 2);
    let expected =
        [("IPv4".to_owned(), vec![ips[0].clone()]), ("IPv6".to_owned(), vec![ips[1].clone()])];
    assert_eq!(slices(&cluster, 2).await, expected);
    let nodes: Api<Node> = Api::all(cluster.client());
    let spec = nodes.get("node-0").await.unwrap().spec.unwrap();
    assert_eq!(spec.pod_cidrs.unwrap(), ["10.244.0.0/24", "fd00:10:244::af4:0/120"]);
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_may_have_ipv6_alone() {
    let ranges = "fd00:10:96::/112".parse().unwrap();
    let cluster = Cluster::builder().nodes(1).service_ranges(ranges).start().await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let pod: Pod = serde_json::from_value(web()).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    running_pods(&cluster, 1).await;
    let status = pods.get("web").await.unwrap().status.unwrap();
    assert_eq!(status.pod_ip.as_deref(), Some("fd00:10:244::af4:1"));
    let services: Api<Service> = Api::default_namespaced(cluster.client());
    let kubernetes = services.get("kubernetes").await.unwrap().spec.unwrap();
    assert_eq!(kubernetes.cluster_ip.as_deref(), Some("fd00:10:96::1"));
    assert_eq!(kubernetes.ip_families.unwrap(), ["IPv6"]);
    cluster.stop().await;
}
