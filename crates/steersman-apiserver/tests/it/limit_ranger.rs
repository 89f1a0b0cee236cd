//! The plug-in `LimitRanger` as clients meet it. What is given and refused is in the tables beside it.

use serde_json::{Value, json};
use steersman_store::{Expected, WriteRequest};

use crate::api::{Api, pod};

const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";

async fn with(limits: Value) -> Api {
    let api = Api::start().await;
    limit(&api, "default", "l", limits).await;
    api
}

async fn limit(api: &Api, namespace: &str, name: &str, limits: Value) {
    let mut range = json!({"metadata": {"name": name}});
    range["spec"]["limits"] = limits;
    api.post(&format!("/api/v1/namespaces/{namespace}/limitranges"), &range).await.ok();
}

fn sized(name: &str, resources: Value) -> Value {
    let mut object = pod(name);
    object["spec"]["containers"][0]["resources"] = resources;
    object
}

fn claim(name: &str, storage: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "resources": {"requests": {"storage": storage}},
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_says_nothing_gets_the_defaults() {
    let api = with(json!([{
        "type": "Container", "default": {"cpu": "500m"}, "max": {"memory": "1Gi"},
    }]))
    .await;
    let created = api.post(PODS, &pod("x")).await.ok();
    assert_eq!(
        created["spec"]["containers"][0]["resources"],
        json!({
            "limits": {"cpu": "500m", "memory": "1Gi"},
            "requests": {"cpu": "500m", "memory": "1Gi"},
        })
    );
    assert_eq!(
        created["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu, memory request for container web; cpu, memory limit for \
         container web"
    );
    assert_eq!(created["status"]["qosClass"], "Guaranteed");
    let dry = api.post(&format!("{PODS}?dryRun=All"), &pod("y")).await.ok();
    assert_eq!(dry["spec"], created["spec"]);
    let elsewhere = api.post("/api/v1/namespaces/kube-public/pods", &pod("x")).await.ok();
    assert_eq!(elsewhere["spec"]["containers"][0]["resources"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_pod_beyond_the_limits_is_refused() {
    let api = with(json!([
        {"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1"}},
        {"type": "Pod", "max": {"memory": "1Gi"}},
    ]))
    .await;
    let refused = sized("x", json!({"limits": {"cpu": "2"}, "requests": {"cpu": "50m"}}));
    let refused = api.post(PODS, &refused).await.refused(403);
    assert_eq!(
        refused["message"],
        "pods \"x\" is forbidden: [minimum cpu usage per Container is 100m, but request is 50m, \
         maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Pod is \
         1Gi.  No limit is specified]"
    );
    assert_eq!(refused["details"], json!({"name": "x", "kind": "pods"}));
    let mut generated = sized("", json!({"limits": {"memory": "2Gi"}}));
    generated["metadata"] = json!({"generateName": "web-"});
    let refused = api.post(PODS, &generated).await.refused(403);
    let message = refused["message"].as_str().unwrap();
    assert!(message.starts_with("pods \"web-"), "{message}");
    let end = "is forbidden: maximum memory usage per Pod is 1Gi, but limit is 2Gi";
    assert!(message.ends_with(end), "{message}");
    let sound = sized("x", json!({"limits": {"cpu": "1", "memory": "1Gi"}}));
    api.post(PODS, &sound).await.ok();
}

#[tokio::test(start_paused = true)]
async fn amounts_that_are_too_large_to_be_added_are_not_small() {
    let api = with(json!([{"type": "Pod", "max": {"memory": "1Gi"}}])).await;
    let mut huge =
        sized("x", json!({"limits": {"memory": "100000000000000000000000000000000000000"}}));
    let mut other = huge["spec"]["containers"][0].clone();
    other["name"] = "other".into();
    other["resources"] = json!({"limits": {"memory": "1"}});
    huge["spec"]["containers"].as_array_mut().unwrap().push(other);
    let refused = api.post(PODS, &huge).await.refused(403);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("maximum memory usage per Pod is 1Gi, but limit is"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn only_a_resize_of_a_pod_is_looked_at() {
    let api = Api::start().await;
    let limits = json!({"cpu": "2", "memory": "1Gi"});
    api.post(PODS, &sized("x", json!({"limits": limits, "requests": {"cpu": "1"}}))).await.ok();
    limit(&api, "default", "l", json!([{"type": "Container", "max": {"cpu": "1"}}])).await;
    let path = format!("{PODS}/x");
    api.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    let resized = |cpu: &str| {
        let limits = json!({"cpu": cpu, "memory": "1Gi"});
        let resources = json!({"limits": limits, "requests": {"cpu": "1", "memory": "1Gi"}});
        json!({"spec": {"containers": [{"name": "web", "resources": resources}]}})
    };
    let strategic = "application/strategic-merge-patch+json";
    let refused = api.patch(&format!("{path}/resize"), strategic, &resized("1500m")).await;
    assert_eq!(
        refused.refused(403)["message"],
        "pods \"x\" is forbidden: maximum cpu usage per Container is 1, but limit is 1500m"
    );
    api.delete(&path).await.ok();
}

#[tokio::test(start_paused = true)]
async fn claims_are_limited_when_they_are_made_and_when_they_change() {
    let api = with(json!([{
        "type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"},
    }]))
    .await;
    let refused = api.post(CLAIMS, &claim("x", "6Gi")).await.refused(403);
    assert_eq!(
        refused["message"],
        "persistentvolumeclaims \"x\" is forbidden: maximum storage usage per \
         PersistentVolumeClaim is 5Gi, but request is 6Gi"
    );
    api.post(CLAIMS, &claim("x", "2Gi")).await.ok();
    limit(
        &api,
        "default",
        "m",
        json!([{"type": "PersistentVolumeClaim", "min": {"storage": "3Gi"}}]),
    )
    .await;
    let path = format!("{CLAIMS}/x");
    let labels = json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["test/stay"]}});
    assert_eq!(
        api.merge(&path, &labels).await.refused(403)["message"],
        "persistentvolumeclaims \"x\" is forbidden: minimum storage usage per \
         PersistentVolumeClaim is 3Gi, but request is 2Gi"
    );
    api.delete("/api/v1/namespaces/default/limitranges/m").await.ok();
    api.merge(&path, &labels).await.ok();
    limit(
        &api,
        "default",
        "m",
        json!([{"type": "PersistentVolumeClaim", "min": {"storage": "3Gi"}}]),
    )
    .await;
    api.delete(&path).await.ok();
    // What is being deleted must be able to go.
    api.merge(&path, &json!({"metadata": {"finalizers": null}})).await.ok();
    api.get(&path).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn a_limit_range_that_cannot_be_read_limits_everything() {
    let api = Api::start().await;
    let key = "/registry/limitranges/default/broken";
    let write = WriteRequest::put(key, "{", Expected::Absent);
    api.store.write(write).await.unwrap();
    let status = api.post(PODS, &pod("x")).await.refused(500);
    assert_eq!(status["reason"], "InternalError");
    api.post("/api/v1/namespaces/kube-public/pods", &pod("x")).await.ok();
}
