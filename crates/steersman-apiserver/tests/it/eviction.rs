//! Evictions, and the disruption budgets that have a say in them.

use serde_json::{Value, json};

use crate::api::{Answer, Api, pod};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// A pod on a node, labelled `app=web`, running and perhaps ready.
async fn running(api: &Api, name: &str, ready: bool) {
    let mut object = pod(name);
    object["metadata"]["labels"] = json!({"app": "web"});
    object["spec"]["nodeName"] = "n1".into();
    api.post(PODS, &object).await.ok();
    let ready = if ready { "True" } else { "False" };
    let status = json!({"status": {
        "phase": "Running", "conditions": [{"type": "Ready", "status": ready}],
    }});
    api.merge(&format!("{PODS}/{name}/status"), &status).await.ok();
}

/// A budget over `app=web` whose controller has written this status.
async fn budget(api: &Api, name: &str, spec: Value, status: Value) {
    let mut object = json!({"metadata": {"name": name}, "spec": spec});
    object["spec"]["selector"] = json!({"matchLabels": {"app": "web"}});
    api.post(BUDGETS, &object).await.ok();
    api.merge(&format!("{BUDGETS}/{name}/status"), &json!({"status": status})).await.ok();
}

fn status(allowed: i64, current: i64, desired: i64) -> Value {
    json!({
        "observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": current,
        "desiredHealthy": desired, "expectedPods": 3,
    })
}

async fn evict(api: &Api, name: &str, options: Value) -> Answer {
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name},
        "deleteOptions": options,
    });
    api.post(&format!("{PODS}/{name}/eviction"), &eviction).await
}

#[tokio::test(start_paused = true)]
async fn a_granted_eviction_is_written_into_the_budget_and_the_pod_says_why_it_goes() {
    let api = Api::start().await;
    running(&api, "p", true).await;
    budget(&api, "b", json!({"minAvailable": 1}), status(1, 2, 1)).await;
    let answer = evict(&api, "p", json!({})).await;
    assert_eq!((answer.code, answer.ok()["status"].as_str()), (201, Some("Success")));

    let going = api.get(&format!("{PODS}/p")).await.ok();
    assert_eq!(going["metadata"]["deletionGracePeriodSeconds"], 30);
    let conditions = going["status"]["conditions"].as_array().unwrap();
    let target = conditions.iter().find(|c| c["type"] == "DisruptionTarget").unwrap();
    assert_eq!(target["reason"], "EvictionByEvictionAPI");
    assert_eq!(target["message"], "Eviction API: evicting");

    let budget = api.get(&format!("{BUDGETS}/b")).await.ok();
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert_eq!(budget["status"]["disruptedPods"]["p"], "2025-01-01T00:00:00Z");
    let condition = &budget["status"]["conditions"][0];
    assert_eq!(condition["type"], "DisruptionAllowed");
    assert_eq!(
        (condition["status"].as_str(), condition["reason"].as_str()),
        (Some("False"), Some("InsufficientPods"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_budget_refuses_with_its_cause() {
    let api = Api::start().await;
    running(&api, "p", true).await;
    budget(&api, "b", json!({"minAvailable": 2}), status(0, 2, 2)).await;
    let refused = evict(&api, "p", json!({})).await.refused(429);
    assert_eq!(refused["reason"], "TooManyRequests");
    assert_eq!(
        refused["message"],
        "Cannot evict pod as it would violate the pod's disruption budget."
    );
    let cause = &refused["details"]["causes"][0];
    assert_eq!(cause["reason"], "DisruptionBudget");
    assert_eq!(
        cause["message"],
        "The disruption budget b needs 2 healthy pods and has 2 currently"
    );
    let pod = api.get(&format!("{PODS}/p")).await.ok();
    assert!(pod["metadata"].get("deletionTimestamp").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_not_up_to_date_asks_to_come_back() {
    let api = Api::start().await;
    running(&api, "p", true).await;
    let mut old = status(3, 3, 1);
    old["observedGeneration"] = 0.into();
    budget(&api, "b", json!({"minAvailable": 1}), old).await;
    let answer = evict(&api, "p", json!({})).await;
    let refused = answer.refused(429);
    assert_eq!(refused["details"]["retryAfterSeconds"], 10);
    assert_eq!(answer.headers["retry-after"], "10");
    assert_eq!(
        refused["details"]["causes"][0]["message"],
        "The disruption budget b is still being processed by the server."
    );
}

#[tokio::test(start_paused = true)]
async fn a_budget_with_too_many_evictions_that_nobody_has_noticed_gives_no_cause() {
    let api = Api::start().await;
    running(&api, "p", true).await;
    let mut full = status(1, 2, 1);
    let gone = |i: i32| (format!("gone-{i}"), Value::from("2025-01-01T00:00:00Z"));
    full["disruptedPods"] = (0..2001).map(gone).collect();
    budget(&api, "b", json!({"minAvailable": 1}), full).await;
    let refused = evict(&api, "p", json!({})).await.refused(403);
    assert_eq!(
        refused["message"],
        "poddisruptionbudget.policy \"b\" is forbidden: DisruptedPods map too big - too many \
         evictions not confirmed by PDB controller"
    );
    assert!(refused["details"].get("causes").is_none(), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_was_exhausted_says_since_when() {
    let api = Api::start().await;
    running(&api, "p", true).await;
    let mut exhausted = status(1, 2, 1);
    let since = "2024-01-01T00:00:00Z";
    exhausted["conditions"] = json!([{
        "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods",
        "message": "", "lastTransitionTime": since,
    }]);
    budget(&api, "b", json!({"minAvailable": 1}), exhausted).await;
    evict(&api, "p", json!({})).await.ok();
    let budget = api.get(&format!("{BUDGETS}/b")).await.ok();
    let condition = &budget["status"]["conditions"][0];
    assert_eq!(condition["observedGeneration"], 1);
    assert_eq!(condition["lastTransitionTime"], since);
}

#[tokio::test(start_paused = true)]
async fn two_budgets_over_one_pod_are_not_supported() {
    let api = Api::start().await;
    running(&api, "p", true).await;
    for name in ["a", "b"] {
        budget(&api, name, json!({"minAvailable": 1}), status(1, 2, 1)).await;
    }
    let refused = evict(&api, "p", json!({})).await.refused(500);
    assert!(refused["message"].as_str().unwrap().contains("more than one PodDisruptionBudget"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_has_ended_or_not_begun_asks_no_budget() {
    let api = Api::start().await;
    budget(&api, "b", json!({"minAvailable": 2}), status(0, 2, 2)).await;
    for phase in ["Pending", "Succeeded", "Failed"] {
        let name = phase.to_lowercase();
        running(&api, &name, false).await;
        let path = format!("{PODS}/{name}");
        api.merge(&format!("{path}/status"), &json!({"status": {"phase": phase}})).await.ok();
        evict(&api, &name, json!({"gracePeriodSeconds": 0})).await.ok();
        api.get(&path).await.refused(404);
    }
    running(&api, "going", true).await;
    api.delete(&format!("{PODS}/going")).await.ok();
    evict(&api, "going", json!({"gracePeriodSeconds": 5})).await.ok();
    let going = api.get(&format!("{PODS}/going")).await.ok();
    assert_eq!(going["metadata"]["deletionGracePeriodSeconds"], 5);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_ready_goes_if_the_rest_is_healthy_or_the_budget_always_allows_it() {
    let api = Api::start().await;
    running(&api, "sick", false).await;
    budget(&api, "b", json!({"minAvailable": 2}), status(0, 1, 2)).await;
    evict(&api, "sick", json!({})).await.refused(429);
    let healthy = json!({"status": {"currentHealthy": 2}});
    api.merge(&format!("{BUDGETS}/b/status"), &healthy).await.ok();
    evict(&api, "sick", json!({"gracePeriodSeconds": 0})).await.ok();
    let budget = api.get(&format!("{BUDGETS}/b")).await.ok();
    assert!(budget["status"].get("disruptedPods").is_none());

    running(&api, "sick", false).await;
    let broken = json!({"status": {"currentHealthy": 0}});
    api.merge(&format!("{BUDGETS}/b/status"), &broken).await.ok();
    evict(&api, "sick", json!({})).await.refused(429);
    let always = json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}});
    api.merge(&format!("{BUDGETS}/b"), &always).await.ok();
    evict(&api, "sick", json!({})).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_of_an_eviction_asks_the_budget_and_changes_nothing() {
    let api = Api::start().await;
    running(&api, "p", true).await;
    budget(&api, "b", json!({"minAvailable": 1}), status(1, 2, 1)).await;
    let before =
        (api.get(&format!("{PODS}/p")).await.ok(), api.get(&format!("{BUDGETS}/b")).await.ok());
    evict(&api, "p", json!({"dryRun": ["All"]})).await.ok();
    let after =
        (api.get(&format!("{PODS}/p")).await.ok(), api.get(&format!("{BUDGETS}/b")).await.ok());
    assert_eq!(before, after);
    api.merge(&format!("{BUDGETS}/b/status"), &json!({"status": {"disruptionsAllowed": 0}}))
        .await
        .ok();
    evict(&api, "p", json!({"dryRun": ["All"]})).await.refused(429);
}

#[tokio::test(start_paused = true)]
async fn preconditions_of_an_eviction_must_hold() {
    let api = Api::start().await;
    running(&api, "p", true).await;
    let refused = evict(&api, "p", json!({"preconditions": {"uid": "other"}})).await.refused(409);
    assert!(refused["message"].as_str().unwrap().contains("the UID in the precondition (other)"));
    evict(&api, "p", json!({"preconditions": {"resourceVersion": "1"}})).await.refused(409);
    let pod = api.get(&format!("{PODS}/p")).await.ok();
    let version = &pod["metadata"]["resourceVersion"];
    evict(&api, "p", json!({"preconditions": {"resourceVersion": version}})).await.ok();
}

#[tokio::test(start_paused = true)]
async fn an_eviction_of_another_version_name_or_with_odd_options_is_refused() {
    let api = Api::start().await;
    running(&api, "p", true).await;
    let path = format!("{PODS}/p/eviction");
    let later = json!({"apiVersion": "policy/v2", "kind": "Eviction", "metadata": {"name": "p"}});
    api.post(&path, &later).await.refused(400);
    let other = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "q"}});
    let refused = api.post(&path, &other).await.refused(400);
    assert_eq!(refused["message"], "name in URL does not match name in Eviction object");
    let unsafe_option = json!({"ignoreStoreReadErrorWithClusterBreakingPotential": true});
    evict(&api, "p", unsafe_option).await.refused(422);
    evict(&api, "absent", json!({})).await.refused(404);
}
