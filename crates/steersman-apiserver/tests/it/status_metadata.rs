//! What of metadata is written with a status: all of it by most kinds, as they always did.

use serde_json::{Value, json};

use crate::api::Api;
use crate::kinds::examples;

/// The kinds whose status is written alone.
const ALONE: [&str; 7] = [
    "APIService",
    "FlowSchema",
    "PriorityLevelConfiguration",
    "ResourceClaim",
    "ServiceCIDR",
    "ValidatingAdmissionPolicy",
    "VolumeAttachment",
];

/// The fields of metadata that the status of a kind does not write.
fn left_out(kind: &str) -> &'static [&'static str] {
    match kind {
        "Pod" => &["ownerReferences"],
        "Deployment" => &["labels"],
        kind if ALONE.contains(&kind) => &FIELDS,
        _ => &[],
    }
}

const FIELDS: [&str; 4] = ["annotations", "finalizers", "labels", "ownerReferences"];

fn metadata() -> Value {
    json!({
        "annotations": {"note": "new"}, "labels": {"new": "yes"},
        "finalizers": ["example.com/hold"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}],
    })
}

/// The paths below an object through which its metadata can be written.
fn parts(kind: &str) -> &'static [&'static str] {
    match kind {
        "CertificateSigningRequest" => &["status", "approval"],
        _ => &["status"],
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_with_the_metadata_that_its_kind_takes() {
    let api = Api::start().await;
    let mut seen = 0;
    for example in examples() {
        let kind = example.object["kind"].as_str().unwrap();
        let created = api.post(&example.path, &example.object).await.ok();
        let path = format!("{}/{}", example.path, created["metadata"]["name"].as_str().unwrap());
        for part in parts(kind) {
            let path = format!("{path}/{part}");
            if api.get(&path).await.code != 200 {
                continue;
            }
            seen += 1;
            for by in ["merge", "put"] {
                api.merge(&path, &json!({"metadata": {
                    "annotations": null, "labels": null, "finalizers": null, "ownerReferences": null,
                }}))
                .await
                .ok();
                let before = api.get(&path).await.ok();
                let after = match by {
                    "merge" => api.merge(&path, &json!({"metadata": metadata()})).await.ok(),
                    _ => {
                        let mut wanted = before.clone();
                        for (field, value) in metadata().as_object().unwrap() {
                            wanted["metadata"][field] = value.clone();
                        }
                        api.put(&path, &wanted).await.ok()
                    }
                };
                for field in FIELDS {
                    let mut expected = match left_out(kind).contains(&field) {
                        true => before["metadata"][field].clone(),
                        false => metadata()[field].clone(),
                    };
                    if kind == "DaemonSet" && field == "annotations" {
                        // In Kubernetes it is a field of the spec.
                        expected["deprecated.daemonset.template.generation"] = "1".into();
                    }
                    if kind == "Namespace" && field == "labels" {
                        // A default, whatever is written.
                        expected["kubernetes.io/metadata.name"] =
                            created["metadata"]["name"].clone();
                    }
                    assert_eq!(after["metadata"][field], expected, "{path} {field} by {by}");
                }
                assert_eq!(after["spec"], before["spec"], "{path}");
            }
        }
    }
    assert!(seen > 20, "only {seen} kinds have a status");
}

#[tokio::test(start_paused = true)]
async fn mistakes_in_the_metadata_of_a_status_are_refused() {
    let api = Api::start().await;
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    api.post(services, &service).await.ok();
    let patch = json!({"metadata": {"labels": {"a b": "c"}}});
    let status = api.merge(&format!("{services}/s/status"), &patch).await.refused(422);
    assert_eq!(status["details"]["causes"][0]["field"], "metadata.labels");
    let patch = json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}});
    let status = api.merge(&format!("{services}/s/status"), &patch).await.refused(422);
    assert_eq!(
        status["message"],
        "Service \"s\" is invalid: metadata.deletionTimestamp: Invalid value: \
         \"2030-01-01T00:00:00Z\": field is immutable"
    );
}

#[tokio::test(start_paused = true)]
async fn the_last_finalizer_can_go_with_a_status() {
    let api = Api::start().await;
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = json!({
        "metadata": {"name": "c", "finalizers": ["example.com/hold"]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    api.post(claims, &claim).await.ok();
    let path = format!("{claims}/c");
    api.delete(&path).await.ok();
    let patch = json!({"metadata": {"finalizers": null}, "status": {"phase": "Lost"}});
    api.merge(&format!("{path}/status"), &patch).await.ok();
    api.get(&path).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn an_applied_status_owns_the_metadata_that_is_written_with_it() {
    let api = Api::start().await;
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, 
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    api.post(services, &service).await.ok();
    let applied = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "labels": {"a": "b"}},
        "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.9"}]}},
    });
    let path = format!("{services}/s/status?fieldManager=agent");
    let after = api.patch(&path, "application/apply-patch+yaml", &applied).await.ok();
    assert_eq!(after["metadata"]["labels"], json!({"a": "b"}));
    let entries = after["metadata"]["managedFields"].as_array().unwrap();
    let own = entries.iter().find(|entry| entry["manager"] == "agent").unwrap();
    assert_eq!(own["subresource"], "status");
    assert!(own["fieldsV1"]["f:metadata"]["f:labels"]["f:a"].is_object(), "{own}");
}
