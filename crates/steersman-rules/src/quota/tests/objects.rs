//! What everything but Pods uses.

use serde_json::{Value, json};

use super::usage;
use crate::quota::Evaluator;

fn service(spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["ports"] = json!([{"port": 1, "nodePort": 30000}, {"port": 2}, {"port": 3}]);
    json!({"metadata": {"name": "s"}, "spec": spec})
}

#[test]
fn services_use_node_ports_and_load_balancers_by_their_type() {
    let table = [
        (json!({"type": "ClusterIP"}), 0, 0),
        (json!({"type": "ExternalName"}), 0, 0),
        (json!({"type": "NodePort"}), 0, 3),
        (json!({"type": "LoadBalancer"}), 1, 3),
        (json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": true}), 1, 3),
        (json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false}), 1, 1),
    ];
    for (spec, balancers, ports) in table {
        let expected = json!({
            "count/services": "1", "services": "1",
            "services.loadbalancers": balancers.to_string(),
            "services.nodeports": ports.to_string(),
        });
        assert_eq!(usage(&Evaluator::Services, &service(&spec)), expected, "{spec}");
    }
}

fn claim(size: &str) -> Value {
    json!({"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": size}}}})
}

#[test]
fn claims_use_storage_altogether_and_by_class() {
    let plain = |size: &str| {
        json!({
            "count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1",
            "requests.storage": size,
        })
    };
    let of_gold = |size: &str| {
        let mut used = plain(size);
        used["gold.storageclass.storage.k8s.io/persistentvolumeclaims"] = json!("1");
        used["gold.storageclass.storage.k8s.io/requests.storage"] = json!(size);
        used
    };
    let with = |size: &str, path: &str, value: Value| {
        let mut claim = claim(size);
        crate::metadata::set_at(&mut claim, path, value);
        claim
    };
    let allocated = |size: &str| json!({"allocatedResources": {"storage": size}});
    let class = json!({"volume.beta.kubernetes.io/storage-class": "gold"});
    let table = [
        (claim("10Gi"), plain("10Gi")),
        (claim("1500m"), plain("2")),
        (with("1Gi", "spec.storageClassName", json!("gold")), of_gold("1Gi")),
        (with("1Gi", "spec.storageClassName", json!("")), plain("1Gi")),
        (with("1Gi", "metadata.annotations", class), of_gold("1Gi")),
        (with("1Gi", "status", allocated("2Gi")), plain("2Gi")),
        (with("3Gi", "status", allocated("2Gi")), plain("3Gi")),
    ];
    for (claim, expected) in table {
        assert_eq!(usage(&Evaluator::VolumeClaims, &claim), expected, "{claim}");
    }
    let sizeless = json!({"metadata": {"name": "c"}, "spec": {}});
    let expected = json!({"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1"});
    assert_eq!(usage(&Evaluator::VolumeClaims, &sizeless), expected);
}

#[test]
fn claims_of_devices_use_as_many_as_they_may_get() {
    let exact = |class: &str, count: u64| json!({"deviceClassName": class, "allocationMode": "ExactCount", "count": count});
    let all = json!({"deviceClassName": "gpu", "allocationMode": "All"});
    let exactly = |request: Value| json!({"name": "r", "exactly": request});
    let first = |requests: Vec<Value>| json!({"name": "r", "firstAvailable": requests});
    let table = [
        (vec![], vec![]),
        (vec![exactly(exact("gpu", 2)), exactly(exact("gpu", 3))], vec![("gpu", "5")]),
        (vec![exactly(all.clone())], vec![("gpu", "32")]),
        (vec![exact("gpu", 4)], vec![("gpu", "4")]),
        (
            vec![first(vec![exact("gpu", 1), exact("gpu", 3), exact("nic", 2)])],
            vec![("gpu", "3"), ("nic", "2")],
        ),
        (vec![first(vec![exact("gpu", 1)]), exactly(exact("gpu", 1))], vec![("gpu", "2")]),
    ];
    for (requests, devices) in table {
        let claim = json!({"spec": {"devices": {"requests": requests}}});
        let mut expected = json!({"count/resourceclaims.resource.k8s.io": "1"});
        for (class, count) in devices {
            expected[format!("{class}.deviceclass.resource.k8s.io/devices")] = json!(count);
            let implicit = format!("requests.deviceclass.resource.kubernetes.io/{class}");
            expected[implicit] = json!(count);
        }
        assert_eq!(usage(&Evaluator::ResourceClaims, &claim), expected, "{claim}");
    }
}

#[test]
fn anything_else_is_counted_one_by_one() {
    let table = [
        ("", "configmaps", json!({"count/configmaps": "1", "configmaps": "1"})),
        ("", "resourcequotas", json!({"count/resourcequotas": "1", "resourcequotas": "1"})),
        ("", "serviceaccounts", json!({"count/serviceaccounts": "1"})),
        ("apps", "deployments", json!({"count/deployments.apps": "1"})),
        ("example.com", "secrets", json!({"count/secrets.example.com": "1"})),
    ];
    for (group, plural, expected) in table {
        let evaluator = Evaluator::of(group, plural).unwrap();
        assert_eq!(usage(&evaluator, &json!({})), expected);
    }
    assert_eq!(Evaluator::of("", "events"), None);
}
