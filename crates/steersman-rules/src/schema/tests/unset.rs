//! Which fields a document has though nothing is set in them.

use serde_json::{Value, json};

use crate::schema::Schema;

fn settled(api_version: &str, kind: &str, mut object: Value) -> Value {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Schema::builtin(group, version, kind).unwrap().settle(&mut object);
    object
}

#[test]
fn fields_without_omitempty_are_always_there() {
    let event = settled("v1", "Event", json!({"metadata": {"name": "a"}}));
    let all = json!({
        "eventTime": null, "firstTimestamp": null, "involvedObject": {}, "lastTimestamp": null,
        "metadata": {"name": "a"}, "reportingComponent": "", "reportingInstance": "", "source": {},
    });
    assert_eq!(event, all);
    let driver = json!({"name": "a.b", "nodeID": "n"});
    let node = settled("storage.k8s.io/v1", "CSINode", json!({"spec": {"drivers": [driver]}}));
    assert_eq!(node["spec"]["drivers"][0]["topologyKeys"], Value::Null);
    assert!(node["spec"]["drivers"][0].as_object().unwrap().contains_key("topologyKeys"));
}

#[test]
fn structs_are_there_with_what_is_always_in_them() {
    let job = settled("batch/v1", "CronJob", json!({"spec": {}}));
    let template = &job["spec"]["jobTemplate"];
    assert_eq!(template["metadata"], json!({}));
    assert_eq!(template["spec"]["template"]["metadata"], json!({}));
    let node = settled("v1", "Node", json!({}));
    assert_eq!(node["status"]["daemonEndpoints"], json!({"kubeletEndpoint": {"Port": 0}}));
    assert_eq!(node["status"]["nodeInfo"]["architecture"], "");
}

#[test]
fn zeros_are_left_out_where_they_mean_nothing() {
    let spec = json!({
        "containers": [{"name": "a", "tty": false, "args": []}], "hostNetwork": false,
        "priority": 0, "nodeName": "", "nodeSelector": {}, "securityContext": {},
        "dnsPolicy": null,
    });
    let pod = settled("v1", "Pod", json!({"metadata": {"labels": {}}, "spec": spec}));
    let kept = json!({
        "containers": [{"name": "a", "resources": {}}], "priority": 0, "securityContext": {},
    });
    assert_eq!(pod, json!({"metadata": {}, "spec": kept, "status": {}}));
}

#[test]
fn what_is_settled_stays_as_it_is() {
    for (api_version, kind) in [("v1", "Node"), ("autoscaling/v2", "HorizontalPodAutoscaler")] {
        let once = settled(api_version, kind, json!({}));
        assert_eq!(settled(api_version, kind, once.clone()), once);
    }
}

#[test]
fn a_custom_resource_keeps_what_it_says() {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut object = json!({"metadata": {"labels": {}}, "spec": {"a": "", "b": null}});
    let sent = object.clone();
    Schema::structural(&schema).settle(&mut object);
    assert_eq!(object, sent);
}
