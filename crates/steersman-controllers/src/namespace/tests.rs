use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::json;

use super::plan;

fn terminating() -> Namespace {
    let namespace = json!({
        "metadata": {"name": "team", "deletionTimestamp": "2030-01-01T12:00:00Z"},
        "spec": {"finalizers": ["kubernetes", "example.com/audit"]},
    });
    serde_json::from_value(namespace).unwrap()
}

#[test]
fn only_this_controllers_finalizer_is_removed() {
    let namespace = terminating();
    assert!(plan::is_held(&namespace));
    let released = plan::released(&namespace);
    assert!(!plan::is_held(&released));
    assert_eq!(released.spec.unwrap().finalizers.unwrap(), ["example.com/audit"]);
}

#[test]
fn the_longer_a_namespace_takes_the_rarer_it_is_looked_at() {
    let start: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
    let after = |seconds| plan::look_again(&terminating(), start + Duration::from_secs(seconds));
    assert_eq!(after(0), Duration::from_millis(50));
    assert_eq!(after(60), Duration::from_secs(6));
    assert_eq!(after(3600), Duration::from_secs(15));
}
