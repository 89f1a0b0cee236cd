//! Which address a Service gets.

use std::collections::HashSet;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use super::plan::{FINALIZER, Step, plan};
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
