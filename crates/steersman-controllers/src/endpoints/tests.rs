//! What becomes of Pods in Endpoints.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use serde_json::{Value, json};

use super::plan::plan;

fn service(spec: &Value) -> Service {
    let mut service = json!({
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"selector": {"app": "web"}, "ipFamilies": ["IPv4"], "clusterIP": "10.96.0.9",
                 "ports": [{"port": 80, "targetPort": 8080, "protocol": "TCP"}]},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        service["spec"][key] = value.clone();
    }
    serde_json::from_value(service).unwrap()
}

fn pod(name: &str, ip: &str, ready: bool) -> Arc<Pod> {
    let status = if ready { "True" } else { "False" };
    let pod = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"nodeName": "a", "containers": [
            {"name": "c", "ports": [{"name": "web", "containerPort": 8080}]}]},
        "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
                   "conditions": [{"type": "Ready", "status": status}]},
    });
    Arc::new(serde_json::from_value(pod).unwrap())
}

/// Subsets in short: addresses, those that are not ready, and ports.
fn shown(endpoints: &Endpoints) -> Vec<String> {
    let subsets = endpoints.subsets.iter().flatten().map(|subset| {
        let ips = |all: &Option<Vec<_>>| {
            let ip = |it: &k8s_openapi::api::core::v1::EndpointAddress| it.ip.clone();
            all.iter().flatten().map(ip).collect::<Vec<_>>().join(",")
        };
        let ports: Vec<String> =
            subset.ports.iter().flatten().map(|port| port.port.to_string()).collect();
        format!(
            "{}|{}|{}",
            ips(&subset.addresses),
            ips(&subset.not_ready_addresses),
            ports.join(",")
        )
    });
    subsets.collect()
}

#[test]
fn addresses_stand_together_that_offer_the_same_ports() {
    let pods =
        [pod("b", "10.244.0.2", true), pod("a", "10.244.0.1", true), pod("c", "10.244.0.3", false)];
    let two = json!([{"name": "a", "port": 80, "targetPort": "web", "protocol": "TCP"},
                     {"name": "b", "port": 81, "targetPort": 9090, "protocol": "TCP"}]);
    for (spec, expected) in [
        (json!({}), "10.244.0.1,10.244.0.2|10.244.0.3|8080"),
        (json!({"publishNotReadyAddresses": true}), "10.244.0.1,10.244.0.2,10.244.0.3||8080"),
        (json!({"clusterIP": "None", "ports": []}), "10.244.0.1,10.244.0.2|10.244.0.3|"),
    ] {
        let endpoints = plan(&service(&spec), &pods, None, None).unwrap();
        assert_eq!(shown(&endpoints), [expected], "{spec}");
    }
    let endpoints = plan(&service(&json!({"ports": two})), &pods, None, None).unwrap();
    let ports = endpoints.subsets.as_ref().unwrap()[0].ports.as_ref().unwrap();
    assert_eq!((endpoints.subsets.as_ref().unwrap().len(), ports.len()), (1, 2));
}

#[test]
fn what_is_told_already_is_not_written_again() {
    let pods = [pod("a", "10.244.0.1", true)];
    let time = Timestamp::from_second(7).unwrap();
    let mut web = service(&json!({"clusterIP": "None"}));
    let endpoints = plan(&web, &pods, None, Some(time)).unwrap();
    assert_eq!(
        json!(endpoints.metadata),
        json!({
            "name": "web", "namespace": "default",
            "annotations": {
                "endpoints.kubernetes.io/last-change-trigger-time": "1970-01-01T00:00:07Z"},
            "labels": {"app": "web", "service.kubernetes.io/headless": "",
                       "endpoints.kubernetes.io/managed-by": "endpoint-controller"},
        })
    );
    assert_eq!(plan(&web, &pods, Some(&endpoints), Some(time)), None);
    web.metadata.labels = None;
    let revised = plan(&web, &pods, Some(&endpoints), None).unwrap();
    assert_eq!(revised.metadata.annotations, Some([].into()), "nobody knows when that happened");
}

#[test]
fn of_more_than_a_thousand_addresses_some_are_left_out_and_that_is_said() {
    let ip = |n: usize| format!("10.244.{}.{}", n / 200, n % 200);
    let mut pods: Vec<_> = (0..900).map(|n| pod(&n.to_string(), &ip(n), true)).collect();
    let count = |pods: &[Arc<Pod>]| {
        let endpoints = plan(&service(&json!({})), pods, None, None).unwrap();
        let subset = &endpoints.subsets.as_ref().unwrap()[0];
        let annotations = endpoints.metadata.annotations.clone().unwrap();
        let over = annotations.get("endpoints.kubernetes.io/over-capacity").cloned();
        assert_eq!(plan(&service(&json!({})), pods, Some(&endpoints), None), None);
        (
            subset.addresses.iter().flatten().count(),
            subset.not_ready_addresses.iter().flatten().count(),
            over,
        )
    };
    assert_eq!(count(&pods), (900, 0, None));
    pods.extend((900..1200).map(|n| pod(&n.to_string(), &ip(n), false)));
    assert_eq!(count(&pods), (900, 100, Some("truncated".into())));
    pods.extend((1200..1500).map(|n| pod(&n.to_string(), &ip(n), true)));
    assert_eq!(count(&pods), (1000, 0, Some("truncated".into())));
}

#[test]
fn it_does_not_matter_whether_ports_are_looked_up_in_each_pod() {
    let ports = |target: Value| {
        let ports = json!([{"name": "b", "port": 80, "targetPort": target, "protocol": "TCP"},
                           {"name": "a", "port": 81, "targetPort": target, "protocol": "TCP"}]);
        service(&json!({ "ports": ports }))
    };
    for (count, ready_of_ten) in [(0, 10), (7, 5), (1000, 10), (1200, 2), (1200, 9), (2500, 5)] {
        let pods: Vec<Arc<Pod>> = (0..count)
            .map(|n| {
                // Some share the address of their node.
                let ip = format!("10.244.{}.{}", n % 7, n * 13 % 250);
                pod(&format!("web-{n}"), &ip, n * 7 % 10 < ready_of_ten)
            })
            .collect();
        let [common, named] = [json!(8080), json!("web")]
            .map(|target| plan(&ports(target), &pods, None, None).unwrap());
        assert_eq!(common.subsets, named.subsets, "{count} {ready_of_ten}");
        assert_eq!(common.metadata.annotations, named.metadata.annotations);
        let told =
            shown(&common).iter().map(|subset| subset.matches('.').count() / 3).sum::<usize>();
        assert_eq!(told, count.min(1000));
    }
}
