//! Which address a Service gets, and when its load balancer has to be looked at.

use std::collections::HashSet;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Node, Service};
use serde_json::{Value, json};

use super::hosts::{differ, hosts};
use super::plan::{FINALIZER, Step, needs_update, plan};
use crate::cidr::Cidr;

fn next(metadata: &Value, spec: &Value, has: Option<&str>, taken: &[&str]) -> Step {
    let ingress = has.map(|ip| json!([{"ip": ip}]));
    let status = json!({"loadBalancer": {"ingress": ingress}});
    let service = json!({"metadata": metadata, "spec": spec, "status": status});
    let service: Service = serde_json::from_value(service).unwrap();
    let pool: Cidr = "10.200.0.0/29".parse().unwrap();
    let taken: HashSet<IpAddr> = taken.iter().map(|ip| ip.parse().unwrap()).collect();
    plan(&service, &pool, &taken)
}

#[test]
fn a_load_balancer_has_the_lowest_free_address_and_keeps_it() {
    let ensure = |ip: &str| Step::Ensure(ip.parse().unwrap());
    let fail = |why: &str| Step::Fail(format!("failed to ensure load balancer: {why}"));
    let balancer = json!({"type": "LoadBalancer"});
    let asks = |ip: &str| json!({"type": "LoadBalancer", "loadBalancerIP": ip});
    let (new, old) = (json!({}), json!({"finalizers": [FINALIZER]}));
    let leaving = json!({"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"});
    let all = ["10.200.0.1", "10.200.0.2", "10.200.0.3", "10.200.0.4", "10.200.0.5", "10.200.0.6"];
    for (metadata, spec, has, taken, step) in [
        (&new, balancer.clone(), None, &[][..], ensure("10.200.0.1")),
        (&new, balancer.clone(), None, &["10.200.0.1"], ensure("10.200.0.2")),
        (&new, balancer.clone(), None, &all, fail("the pool of addresses is full")),
        (&old, balancer.clone(), Some("10.200.0.3"), &[], Step::Settled),
        (&new, balancer.clone(), Some("10.200.0.3"), &[], ensure("10.200.0.3")),
        (&old, balancer.clone(), Some("10.200.0.3"), &["10.200.0.3"], ensure("10.200.0.1")),
        (&old, balancer.clone(), Some("10.9.9.9"), &[], ensure("10.200.0.1")),
        (&new, asks("10.200.0.4"), None, &[], ensure("10.200.0.4")),
        (&old, asks("10.200.0.4"), Some("10.200.0.4"), &[], Step::Settled),
        (&new, asks("10.200.0.4"), None, &["10.200.0.4"], fail("10.200.0.4 is already allocated")),
        (&new, asks("10.9.9.9"), None, &[], fail("10.9.9.9 is not in the pool of addresses")),
        (&leaving, balancer.clone(), Some("10.200.0.3"), &[], Step::Delete),
        (&old, json!({"type": "ClusterIP"}), Some("10.200.0.3"), &[], Step::Delete),
        (&new, json!({"type": "ClusterIP"}), None, &[], Step::Settled),
        (
            &new,
            json!({"type": "LoadBalancer", "loadBalancerClass": "x/y"}),
            None,
            &[],
            Step::Settled,
        ),
    ] {
        assert_eq!(next(metadata, &spec, has, taken), step, "{metadata} {spec} {has:?} {taken:?}");
    }
}

#[test]
fn only_what_a_load_balancer_depends_on_matters_to_it() {
    let service = |change: Value| -> Service {
        let mut service = json!({
            "metadata": {"uid": "u", "annotations": {"a": "b"}},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30001}]},
        });
        for (key, value) in change.as_object().into_iter().flatten() {
            for (name, value) in value.as_object().into_iter().flatten() {
                service[key][name] = value.clone();
            }
        }
        serde_json::from_value(service).unwrap()
    };
    let plain = service(json!({}));
    for (change, matters) in [
        (json!({}), false),
        (json!({"metadata": {"labels": {"x": "y"}, "finalizers": [FINALIZER]}}), false),
        (json!({"spec": {"selector": {"app": "web"}}}), false),
        (json!({"status": {"loadBalancer": {"ingress": [{"ip": "10.200.0.1"}]}}}), false),
        (json!({"metadata": {"annotations": {"a": "c"}}}), true),
        (json!({"metadata": {"uid": "other"}}), true),
        (json!({"spec": {"ports": [{"port": 81, "nodePort": 30001}]}}), true),
        (json!({"spec": {"loadBalancerIP": "10.200.0.1"}}), true),
        (json!({"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}}), true),
        (json!({"spec": {"externalIPs": ["192.0.2.1"]}}), true),
        (json!({"spec": {"externalTrafficPolicy": "Local"}}), true),
        (json!({"spec": {"sessionAffinity": "ClientIP"}}), true),
        (json!({"spec": {"healthCheckNodePort": 30002}}), true),
        (json!({"spec": {"ipFamilies": ["IPv4", "IPv6"]}}), true),
        (json!({"spec": {"type": "ClusterIP"}}), true),
    ] {
        assert_eq!(needs_update(&plain, &service(change.clone())), matters, "{change}");
    }
    let inside = |more: Value| {
        let mut change = json!({"spec": {"type": "ClusterIP"}});
        change["metadata"] = more;
        service(change)
    };
    let held = json!({"finalizers": [FINALIZER]});
    assert!(needs_update(&inside(held.clone()), &inside(held)), "it is still to go");
    assert!(!needs_update(&inside(json!({})), &inside(json!({"annotations": {}}))));
}

#[test]
fn nodes_that_are_kept_out_or_leave_are_not_behind_load_balancers() {
    let node = |name: &str, change: Value| -> Node {
        let mut node = json!({"metadata": {"name": name}, "spec": {"providerID": name}});
        for (key, value) in change.as_object().into_iter().flatten() {
            for (name, value) in value.as_object().into_iter().flatten() {
                node[key][name] = value.clone();
            }
        }
        serde_json::from_value(node).unwrap()
    };
    let label = "node.kubernetes.io/exclude-from-external-load-balancers";
    let excluded = |value: &str| json!({"metadata": {"labels": {label: value}}});
    let taint = json!({"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"});
    let nodes = [
        node("a", json!({})),
        node("b", excluded("")),
        node("c", excluded("true")),
        node("d", excluded("false")),
        node("e", json!({"spec": {"taints": [taint.clone()]}})),
        node("f", json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}})),
    ];
    let found = hosts(&nodes.clone().map(std::sync::Arc::new));
    assert_eq!(found.into_keys().collect::<Vec<_>>(), ["a", "d"]);
    let plain = node("a", json!({}));
    assert!(differ(&plain, &node("a", excluded("true"))));
    assert!(differ(&plain, &node("a", json!({"spec": {"providerID": "other"}}))));
    assert!(!differ(&plain, &node("a", json!({"spec": {"taints": [taint]}}))));
}
