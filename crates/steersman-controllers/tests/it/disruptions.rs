//! Disruption budgets: Pods are evicted as long as enough of them stay.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::Patch;
use serde_json::{Value, json};
use steersman::{Error, Result, clock};
use steersman_testkit::{Cluster, Restarts};

use crate::events::told;
use crate::objects::{all, all_become, deployment, is_ready, object, pod};
use crate::restarts::{built_in, small};

fn budget(spec: &Value) -> PodDisruptionBudget {
    let mut budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        budget["spec"][key] = value.clone();
    }
    object(budget)
}

/// Allowed disruptions, healthy, desired and expected Pods.
fn numbers(budget: &PodDisruptionBudget) -> [i32; 4] {
    let Some(status) = &budget.status else { return [-1; 4] };
    if status.observed_generation != budget.metadata.generation {
        return [-1; 4];
    }
    let found = [
        status.disruptions_allowed,
        status.current_healthy,
        status.desired_healthy,
        status.expected_pods,
    ];
    found.map(|count| count.unwrap_or(0))
}

fn refusal(error: &Error) -> (u16, String, String) {
    let status = error.status().cloned().unwrap_or_default();
    let causes = status.details.map(|details| details.causes).unwrap_or_default();
    let causes: Vec<String> =
        causes.iter().map(|cause| format!("{}: {}", cause.reason, cause.message)).collect();
    (status.code, status.message, causes.join(", "))
}

#[steersman::test(termination = Duration::from_secs(5))]
async fn pods_are_evicted_one_after_the_other_within_their_budget(cluster: Cluster) -> Result<()> {
    cluster.client().create(&deployment("web", 3, "nginx")).await?;
    all_become(&cluster, |pods: &[Pod]| pods.len() == 3 && pods.iter().all(is_ready)).await?;
    cluster.client().create(&budget(&json!({"maxUnavailable": 1}))).await?;
    cluster.eventually("web", |b: &PodDisruptionBudget| numbers(b) == [1, 3, 2, 3]).await?;
    let before: Vec<Pod> = all(&cluster).await?;
    let [first, other] = [0, 1].map(|n| before[n].metadata.name.clone().unwrap());
    cluster.client().evict(first.as_str(), None).await?;
    let refused = cluster.client().evict(other.as_str(), None).await.unwrap_err();
    let cause = "DisruptionBudget: The disruption budget web needs 2 healthy pods and has";
    let (code, message, why) = refusal(&refused);
    assert_eq!(code, 429);
    assert_eq!(message, "Cannot evict pod as it would violate the pod's disruption budget.");
    assert!(why.starts_with(cause), "{why}");
    // The evicted Pod is replaced, and then the next may go.
    cluster.eventually("web", |b: &PodDisruptionBudget| numbers(b) == [1, 3, 2, 3]).await?;
    cluster.client().evict(other.as_str(), None).await?;
    cluster.gone::<Pod>(other.as_str()).await
}

#[steersman::test]
async fn a_share_is_of_what_the_controllers_ask_for(cluster: Cluster) -> Result<()> {
    cluster.client().create(&budget(&json!({"minAvailable": "50%"}))).await?;
    cluster.eventually("web", |b: &PodDisruptionBudget| numbers(b) == [0, 0, 0, 0]).await?;
    let mut set: StatefulSet = object(json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {"replicas": 2, "serviceName": "db",
                 "selector": {"matchLabels": {"app": "web", "part": "db"}},
                 "template": {"metadata": {"labels": {"app": "web", "part": "db"}},
                              "spec": {"containers": [{"name": "main", "image": "nginx"}]}}},
    }));
    set.spec.as_mut().unwrap().replicas = Some(2);
    cluster.client().create(&set).await?;
    let mut web = deployment("web", 3, "nginx");
    let labels = json!({"app": "web", "part": "web"});
    let spec = web.spec.as_mut().unwrap();
    spec.selector.match_labels = serde_json::from_value(labels.clone())?;
    spec.template.metadata.as_mut().unwrap().labels = serde_json::from_value(labels)?;
    cluster.client().create(&web).await?;
    cluster.eventually("web", |b: &PodDisruptionBudget| numbers(b) == [2, 5, 3, 5]).await?;
    let more = Patch::Merge(json!({"spec": {"replicas": 5}}));
    cluster.client().patch::<Deployment, _>("web", &more).await?;
    cluster.eventually("web", |b: &PodDisruptionBudget| numbers(b) == [3, 7, 4, 7]).await?;
    assert!(
        told(&cluster, "PodDisruptionBudget")
            .await?
            .contains(&"controllermanager Normal NoPods: No matching pods found".to_owned())
    );
    Ok(())
}

#[steersman::test]
async fn pods_that_nobody_controls_count_for_a_number_and_are_told_of_for_a_share(
    cluster: Cluster,
) -> Result<()> {
    for name in ["a", "b"] {
        let mut pod = pod(name, &json!({}));
        pod.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
        cluster.client().create(&pod).await?;
    }
    cluster.client().create(&budget(&json!({"minAvailable": 1}))).await?;
    cluster.eventually("web", |b: &PodDisruptionBudget| numbers(b) == [1, 2, 1, 2]).await?;
    let share = Patch::Merge(json!({"spec": {"minAvailable": null, "maxUnavailable": 1}}));
    cluster.client().patch::<PodDisruptionBudget, _>("web", &share).await?;
    cluster.eventually("web", |b: &PodDisruptionBudget| numbers(b) == [0, 2, 0, 0]).await?;
    let unmanaged = "controllermanager Warning UnmanagedPods: Pods selected by this \
                     PodDisruptionBudget (selector: &LabelSelector{MatchLabels:map[string]string{app: \
                     web,},MatchExpressions:[]LabelSelectorRequirement{},}) were found to be unmanaged.";
    let told = told(&cluster, "PodDisruptionBudget").await?;
    assert!(told.iter().any(|line| line.starts_with(unmanaged)), "{told:?}");
    Ok(())
}

#[steersman::test]
async fn where_a_controller_has_no_scale_nothing_may_go(cluster: Cluster) -> Result<()> {
    let daemons: k8s_openapi::api::apps::v1::DaemonSet = object(json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}},
                 "template": {"metadata": {"labels": {"app": "web"}},
                              "spec": {"containers": [{"name": "main", "image": "nginx"}]}}},
    }));
    cluster.client().create(&daemons).await?;
    all_become(&cluster, |pods: &[Pod]| pods.len() == 3 && pods.iter().all(is_ready)).await?;
    cluster.client().create(&budget(&json!({"maxUnavailable": 1}))).await?;
    let failed = |budget: &PodDisruptionBudget| {
        let conditions = budget.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| {
            all[0].reason == "SyncFailed"
                && all[0].message == "daemonsets.apps does not implement the scale subresource"
        })
    };
    cluster.eventually("web", failed).await
}

#[steersman::test]
async fn pods_that_are_not_ready_go_as_the_policy_says(cluster: Cluster) -> Result<()> {
    let mut sick = pod("sick", &json!({"nodeName": "where-no-kubelet-is"}));
    sick.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    cluster.client().create(&sick).await?;
    let conditions = json!([{"type": "Ready", "status": "False"}]);
    let status = json!({"status": {"phase": "Running", "conditions": conditions}});
    cluster.client().patch_status::<Pod, _>("sick", &Patch::Merge(status)).await?;
    cluster.client().create(&budget(&json!({"minAvailable": 1}))).await?;
    cluster.eventually("web", |b: &PodDisruptionBudget| numbers(b) == [0, 0, 1, 1]).await?;
    let refused = cluster.client().evict("sick", None).await.unwrap_err();
    let why =
        "DisruptionBudget: The disruption budget web needs 1 healthy pods and has 0 currently";
    assert_eq!(refusal(&refused).2, why);
    let always = Patch::Merge(json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}));
    cluster.client().patch::<PodDisruptionBudget, _>("web", &always).await?;
    cluster.client().evict("sick", None).await?;
    let leaves = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    cluster.eventually("sick", leaves).await
}

#[steersman::test]
async fn a_pod_with_several_budgets_is_told_of_and_one_that_stays_is_spared(
    cluster: Cluster,
) -> Result<()> {
    for name in ["web", "all"] {
        let mut budget = budget(&json!({"minAvailable": 0}));
        budget.metadata.name = Some(name.into());
        cluster.client().create(&budget).await?;
    }
    cluster.settle().await;
    let mut covered = pod("a", &json!({}));
    covered.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    cluster.client().create(&covered).await?;
    cluster.eventually("a", is_ready).await?;
    let refused = cluster.client().evict("a", None).await.unwrap_err();
    let (code, why, _) = refusal(&refused);
    let several = "This pod has more than one PodDisruptionBudget, which the eviction subresource \
                   does not support.";
    assert_eq!((code, why.as_str()), (500, several));
    let note = "controllermanager Warning MultiplePodDisruptionBudgets: Pod \"default\"/\"a\" \
                matches multiple PodDisruptionBudgets.  Chose \"all\" arbitrarily.";
    let told = told(&cluster, "Pod").await?;
    assert!(told.contains(&note.to_owned()), "{told:?}");

    let conditions = json!([{"type": "DisruptionTarget", "status": "True", "reason": "ForATest",
                             "lastTransitionTime": clock::now_time()}]);
    let target = Patch::Strategic(json!({"status": {"conditions": conditions}}));
    cluster.client().patch_status::<Pod, _>("a", &target).await?;
    let status = |pod: &Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.clone());
        let mut conditions = conditions.into_iter().flatten();
        conditions.find(|it| it.type_ == "DisruptionTarget").map(|it| it.status)
    };
    cluster.advance(Duration::from_secs(115)).await;
    let a: Pod = cluster.client().get("a").await?.unwrap();
    assert_eq!(status(&a).as_deref(), Some("True"));
    cluster.advance(Duration::from_secs(10)).await;
    let a: Pod = cluster.client().get("a").await?.unwrap();
    assert_eq!(status(&a).as_deref(), Some("False"));
    Ok(())
}

#[test]
fn a_budget_lets_one_pod_go_whenever_its_controller_is_restarted() {
    let restarts = Restarts::of(built_in("disruption-controller")).settings(small());
    restarts.events(4).check(async |cluster| {
        cluster.client().create(&deployment("web", 2, "nginx")).await?;
        let two = |pods: &[Pod]| pods.len() == 2 && pods.iter().all(is_ready);
        let pods = all_become(cluster, two).await?;
        cluster.client().create(&budget(&json!({"maxUnavailable": 1}))).await?;
        cluster.eventually("web", |b: &PodDisruptionBudget| numbers(b) == [1, 2, 1, 2]).await?;
        let name = pods[0].metadata.name.as_deref().expect("every Pod has a name");
        cluster.client().evict(name, None).await?;
        cluster.gone::<Pod>(name).await?;
        all_become(cluster, two).await?;
        cluster.eventually("web", |b: &PodDisruptionBudget| numbers(b) == [1, 2, 1, 2]).await
    });
}
