//! What becomes of Endpoints in slices.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::{Value, json};

use super::plan::{Plan, Size, Totals, is_mirrored, plan};

fn endpoints(subsets: &Value) -> Endpoints {
    let endpoints = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "e", "labels": {"a": "b"},
                     "annotations": {"c": "d",
                         "endpoints.kubernetes.io/last-change-trigger-time": "now",
                         "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
        "subsets": subsets,
    });
    serde_json::from_value(endpoints).unwrap()
}

/// The slices after a plan.
fn done(plan: Plan, slices: &[Arc<EndpointSlice>]) -> Vec<Arc<EndpointSlice>> {
    let is_gone = |slice: &Arc<EndpointSlice>| {
        let mut gone = plan.update.iter().chain(plan.delete.iter().map(|it| &**it));
        gone.any(|other| other.metadata.name == slice.metadata.name)
    };
    let mut left: Vec<_> = slices.iter().filter(|slice| !is_gone(slice)).cloned().collect();
    for (n, mut slice) in plan.create.into_iter().enumerate() {
        slice.metadata.name = Some(format!("web-{n}"));
        left.push(Arc::new(slice));
    }
    left.extend(plan.update.into_iter().map(Arc::new));
    left
}

#[test]
fn each_subset_becomes_a_slice_of_each_family() {
    let both = json!([{
        "addresses": [{"ip": "192.0.2.1", "nodeName": "a"}, {"ip": "fd00::1"}],
        "notReadyAddresses": [{"ip": "192.0.2.2", "hostname": "two"}, {"ip": "nonsense"}],
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
    }]);
    let first = plan(&endpoints(&both), &[]);
    assert_eq!((first.create.len(), first.invalid, first.skipped), (2, 1, 1));
    let slice = &first.create[0];
    assert_eq!(
        json!(slice.metadata),
        json!({
            "generateName": "web-", "namespace": "default", "annotations": {"c": "d"},
            "labels": {
                "a": "b", "kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
            },
            "ownerReferences": [{"apiVersion": "v1", "kind": "Endpoints", "name": "web", "uid": "e",
                                 "controller": true, "blockOwnerDeletion": true}],
        })
    );
    assert_eq!(
        json!([slice.address_type, slice.endpoints, slice.ports]),
        json!(["IPv4", [
            {"addresses": ["192.0.2.1"], "conditions": {"ready": true}, "nodeName": "a"},
            {"addresses": ["192.0.2.2"], "conditions": {"ready": false}, "hostname": "two"},
        ], [{"name": "http", "port": 80, "protocol": "TCP"}]])
    );
    assert_eq!(first.totals, Totals { added: 3, ..Totals::default() });
    assert_eq!(first.size, Size { endpoints: 3, slices: 2, desired_slices: 2 });
    let slices = done(first, &[]);
    let mut fewer = both.clone();
    fewer[0]["addresses"] = json!([{"ip": "192.0.2.1", "nodeName": "b"}]);
    let fewer = plan(&endpoints(&fewer), &slices);
    assert_eq!(fewer.totals, Totals { added: 0, updated: 1, removed: 1 });
    assert_eq!(fewer.size, Size { endpoints: 2, slices: 1, desired_slices: 1 });
    let again = plan(&endpoints(&both), &slices);
    assert_eq!(again.totals, Totals::default());
    assert!(again.create.is_empty() && again.update.is_empty() && again.delete.is_empty());
    // Another port: both slices become others, and none is deleted or created.
    let mut other = both.clone();
    other[0]["ports"][0]["port"] = json!(81);
    let moved = plan(&endpoints(&other), &slices);
    assert_eq!((moved.create.len(), moved.update.len(), moved.delete.len()), (0, 2, 0));
    let none = plan(&endpoints(&json!([])), &slices);
    assert_eq!((none.create.len(), none.update.len(), none.delete.len()), (0, 0, 2));
}

#[test]
fn a_thousand_addresses_of_a_subset_are_mirrored() {
    let addresses: Vec<Value> =
        (0..1100).map(|n| json!({"ip": format!("10.0.{}.{}", n / 200, n % 200)})).collect();
    let plan = plan(&endpoints(&json!([{"addresses": addresses}])), &[]);
    assert_eq!(plan.create[0].endpoints.as_ref().unwrap().len(), 1000);
    assert_eq!((plan.invalid, plan.skipped), (0, 100));
}

#[test]
fn what_a_selector_finds_or_nobody_wants_is_not_mirrored() {
    let service = |spec: Value| serde_json::from_value::<Service>(json!({"spec": spec})).unwrap();
    let plain = endpoints(&json!([]));
    assert!(is_mirrored(&plain, Some(&service(json!({})))));
    assert!(!is_mirrored(&plain, Some(&service(json!({"selector": {"app": "web"}})))));
    assert!(!is_mirrored(&plain, None));
    let mut skipped = plain.clone();
    let skip = ("endpointslice.kubernetes.io/skip-mirror".to_owned(), "true".to_owned());
    skipped.metadata.labels = Some([skip].into());
    assert!(!is_mirrored(&skipped, Some(&service(json!({})))));
    let mut lease = plain;
    let leader = ("control-plane.alpha.kubernetes.io/leader".to_owned(), "{}".to_owned());
    lease.metadata.annotations = Some([leader].into());
    assert!(!is_mirrored(&lease, Some(&service(json!({})))));
}
