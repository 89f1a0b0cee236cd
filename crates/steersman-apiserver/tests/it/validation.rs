//! Mistakes and oddities of pods and workloads, as a client meets them.

use http::header;
use serde_json::{Value, json};

use crate::api::{Api, deployment, pod};

const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

#[tokio::test(start_paused = true)]
async fn all_mistakes_of_a_pod_come_in_one_answer() {
    let api = Api::start().await;
    let mut wrong = pod("p");
    wrong["spec"]["containers"][0]["image"] = json!("");
    wrong["spec"]["containers"][0]["ports"] = json!([{"containerPort": 0}]);
    wrong["spec"]["tolerations"] = json!([{"key": "a", "effect": "Never"}]);
    let status = api.post(PODS, &wrong).await.refused(422);
    let causes = status["details"]["causes"].as_array().unwrap();
    let fields: Vec<_> = causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    assert_eq!(
        fields,
        [
            "spec.containers[0].image",
            "spec.containers[0].ports[0].containerPort",
            "spec.tolerations[0].effect",
        ]
    );
    assert_eq!(causes[0]["reason"], "FieldValueRequired");
    assert_eq!(causes[2]["reason"], "FieldValueNotSupported");
}

#[tokio::test(start_paused = true)]
async fn quantities_are_stored_canonically() {
    let api = Api::start().await;
    let mut asking = pod("p");
    asking["spec"]["containers"][0]["resources"] =
        json!({"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5}});
    let created = api.post(PODS, &asking).await.ok();
    assert_eq!(
        created["spec"]["containers"][0]["resources"],
        json!({
            "limits": {"cpu": "1", "memory": "1Gi"},
            "requests": {"cpu": "500m", "memory": "1Gi"},
        })
    );
    let mut wrong = pod("q");
    wrong["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "1x"}});
    let status = api.post(PODS, &wrong).await.refused(400);
    assert_eq!(
        status["message"],
        "Pod in version \"v1\" cannot be handled as a Pod: quantities must match the regular \
         expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_hardly_meant_is_warned_about() {
    let api = Api::start().await;
    let mut odd = deployment("web", 1);
    odd["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]);
    let answer = api.post(DEPLOYMENTS, &odd).await;
    answer.ok();
    let warning = answer.headers["warning"].to_str().unwrap();
    assert!(warning.contains("spec.template.spec.containers[0].env[1]: hides previous definition"));

    let scale = json!({"spec": {"replicas": 2}});
    let answer = api.merge(&format!("{DEPLOYMENTS}/web"), &scale).await;
    answer.ok();
    assert!(answer.headers.contains_key("warning"), "it is another generation");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let answer = api.merge(&format!("{DEPLOYMENTS}/web"), &label).await;
    answer.ok();
    assert!(answer.headers.get("warning").is_none(), "nothing is wanted anew");
}

#[tokio::test(start_paused = true)]
async fn a_status_is_checked_as_well() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, &deployment("web", 1)).await.ok();
    let path = format!("{DEPLOYMENTS}/web/status");
    let wrong = json!({"status": {"replicas": 1, "readyReplicas": 2}});
    let status = api.merge(&path, &wrong).await.refused(422);
    assert_eq!(
        status["message"],
        "Deployment.apps \"web\" is invalid: status.readyReplicas: Invalid value: 2: cannot be \
         greater than status.replicas"
    );
    api.merge(&path, &json!({"status": {"replicas": 2, "readyReplicas": 2}})).await.ok();

    api.post(PODS, &pod("p")).await.ok();
    let path = format!("{PODS}/p/status");
    api.merge(&path, &json!({"status": {"phase": "Running", "qosClass": null}})).await.ok();
    let read: Value = api.get(&format!("{PODS}/p")).await.ok();
    assert_eq!(read["status"]["qosClass"], "BestEffort", "the server knows better");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_frozen_but_for_its_image() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await.ok();
    let path = format!("{PODS}/p");
    let mut read = api.get(&path).await.ok();
    read["spec"]["containers"][0]["image"] = json!("nginx:2");
    let updated = api.put(&path, &read).await.ok();
    assert_eq!(updated["metadata"]["generation"], 2);
    let mut moved = updated.clone();
    moved["spec"]["hostNetwork"] = json!(true);
    let status = api.put(&path, &moved).await.refused(422);
    let message = status["message"].as_str().unwrap();
    assert!(message.starts_with(
        "Pod \"p\" is invalid: spec: Forbidden: pod updates may not change fields other than \
         `spec.containers[*].image`,"
    ));
    assert!(
        message.contains("\n-  \"HostNetwork\": false,\n+  \"HostNetwork\": true,\n"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn who_replaces_a_pod_need_not_repeat_the_tolerations_of_every_pod() {
    let api = Api::start().await;
    let created = api.post(PODS, &pod("p")).await.ok();
    let mut wanted = created.clone();
    wanted["spec"]["tolerations"] = json!([{"key": "mine", "operator": "Exists"}]);
    let path = format!("{PODS}/p");
    let updated = api.put(&path, &wanted).await.ok();
    let keys: Vec<_> = updated["spec"]["tolerations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|toleration| toleration["key"].as_str().unwrap())
        .collect();
    let [not_ready, unreachable] =
        ["not-ready", "unreachable"].map(|key| format!("node.kubernetes.io/{key}"));
    assert_eq!(keys, ["mine", &not_ready, &unreachable]);
    assert_eq!(updated["metadata"]["generation"], 2);

    let mut less = updated.clone();
    less["spec"]["tolerations"] =
        json!([{"key": not_ready, "operator": "Exists", "effect": "NoExecute"}, {"key": "other"}]);
    less["spec"]["tolerations"][1]["operator"] = "Exists".into();
    let status = api.put(&path, &less).await.refused(422);
    assert_eq!(
        status["message"],
        "Pod \"p\" is invalid: spec.tolerations: Forbidden: existing toleration can not be \
         modified except its tolerationSeconds"
    );
}

#[tokio::test(start_paused = true)]
async fn a_template_is_warned_of_with_every_new_generation() {
    let api = Api::start().await;
    let mut negative = deployment("web", 1);
    negative["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(-1);
    api.post(DEPLOYMENTS, &negative).await.ok();
    let path = format!("{DEPLOYMENTS}/web");
    let scaled = api.merge(&path, &json!({"spec": {"replicas": 2}})).await;
    scaled.ok();
    let warning = scaled.headers[header::WARNING].to_str().unwrap();
    assert!(warning.contains("terminationGracePeriodSeconds: must be >= 0"), "{warning}");
    let labelled = api.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    labelled.ok();
    assert!(!labelled.headers.contains_key(header::WARNING));
}

#[tokio::test(start_paused = true)]
async fn what_a_pod_asks_for_as_a_whole_is_filled_in_and_stays() {
    let api = Api::start().await;
    let mut whole = pod("p");
    whole["spec"]["nodeName"] = json!("n1");
    whole["spec"]["resources"] = json!({"limits": {"cpu": "1", "memory": "1Gi"}});
    let created = api.post(PODS, &whole).await.ok();
    let all = json!({"cpu": "1", "memory": "1Gi"});
    assert_eq!(created["spec"]["resources"], json!({"limits": all, "requests": all}));
    assert_eq!(created["status"]["qosClass"], "Guaranteed");
    let path = format!("{PODS}/p");
    api.merge(&path, &json!({"spec": {"resources": {"requests": null}}})).await.ok();
    api.merge(&path, &json!({"spec": {"resources": null}})).await.refused(422);
    let selected = api.get(&format!("{PODS}?fieldSelector=spec.host%3Dn1")).await.ok();
    assert_eq!(selected["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_range_of_a_node_for_pods_stays() {
    const NODES: &str = "/api/v1/nodes";
    let api = Api::start().await;
    let node = json!({"metadata": {"name": "n1"}, "spec": {"podCIDR": "10.0.0.0/24"}});
    let created = api.post(NODES, &node).await.ok();
    assert_eq!(created["spec"]["podCIDRs"], json!(["10.0.0.0/24"]));
    let other = json!({"spec": {"podCIDR": "10.9.0.0/24"}});
    let status = api.merge(&format!("{NODES}/n1"), &other).await.refused(422);
    let message = status["message"].as_str().unwrap();
    let why =
        "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid";
    assert!(message.contains(why), "{message}");
}
