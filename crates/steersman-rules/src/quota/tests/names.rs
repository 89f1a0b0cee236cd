//! Under which names objects count.

use crate::quota::{Evaluator, Path, counted_by, is_counted};

#[test]
fn every_name_leads_to_the_resources_that_count_under_it() {
    let pods = [("", "pods")];
    let claims = [("", "persistentvolumeclaims")];
    let devices = [("resource.k8s.io", "resourceclaims")];
    let table: &[(&str, &[(&str, &str)])] = &[
        ("pods", &pods),
        ("count/pods", &pods),
        ("cpu", &pods),
        ("requests.memory", &pods),
        ("limits.ephemeral-storage", &pods),
        ("hugepages-2Mi", &pods),
        ("requests.hugepages-1Gi", &pods),
        ("requests.nvidia.com/gpu", &pods),
        ("requests.deviceclass.resource.kubernetes.io/gpu", &pods),
        ("services", &[("", "services")]),
        ("services.nodeports", &[("", "services")]),
        ("count/services", &[("", "services")]),
        ("persistentvolumeclaims", &claims),
        ("count/persistentvolumeclaims", &claims),
        ("requests.storage", &claims),
        ("gold.storageclass.storage.k8s.io/requests.storage", &claims),
        ("gold.storageclass.storage.k8s.io/persistentvolumeclaims", &claims),
        ("gpu.deviceclass.resource.k8s.io/devices", &devices),
        ("count/resourceclaims.resource.k8s.io", &devices),
        ("secrets", &[("", "secrets")]),
        ("count/secrets", &[("", "secrets")]),
        ("count/deployments.apps", &[("apps", "deployments")]),
        ("count/boats.sea.example.com", &[("sea.example.com", "boats")]),
        ("count/events", &[]),
        ("count/events.events.k8s.io", &[]),
        ("nvidia.com/gpu", &[]),
        ("limits.nvidia.com/gpu", &[]),
        ("gold.storageclass.storage.k8s.io/pods", &[]),
    ];
    for (name, resources) in table {
        assert_eq!(counted_by(name), *resources, "{name}");
        for (group, plural) in *resources {
            assert!(Evaluator::of(group, plural).unwrap().counts(name), "{name}");
        }
    }
}

#[test]
fn only_writes_that_could_use_more_are_looked_at() {
    let table = [
        (("", "configmaps", "", true), true),
        (("", "configmaps", "", false), false),
        (("", "pods", "", false), true),
        (("", "pods", "status", false), false),
        (("", "pods", "resize", false), true),
        (("", "pods", "binding", true), false),
        (("", "services", "", false), true),
        (("", "services", "status", false), false),
        (("", "persistentvolumeclaims", "", false), true),
        (("", "persistentvolumeclaims", "status", false), true),
        (("resource.k8s.io", "resourceclaims", "", false), true),
        (("", "events", "", true), false),
        (("events.k8s.io", "events", "", true), false),
        (("authorization.k8s.io", "localsubjectaccessreviews", "", true), false),
        (("example.com", "boats", "", true), true),
        (("example.com", "boats", "scale", false), false),
    ];
    for ((group, plural, subresource, is_new), counted) in table {
        let path = Path { group, plural, subresource, is_new };
        assert_eq!(is_counted(path), counted, "{path:?}");
    }
}
