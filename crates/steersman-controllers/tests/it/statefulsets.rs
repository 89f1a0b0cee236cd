//! StatefulSets: Pods with names, one after the other.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ResourceQuota};
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::Result;
use steersman_testkit::Cluster;

use crate::events::told;
use crate::objects::{all, all_become, image, is_ready, object};
use crate::order::writes;

/// A set of three Pods, changed by what is in `spec`.
fn set(name: &str, spec: &Value) -> StatefulSet {
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 3,
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
            },
        },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        set["spec"][key] = value.clone();
    }
    object(set)
}

fn with_claims(policy: &Value) -> Value {
    json!({
        "persistentVolumeClaimRetentionPolicy": policy,
        "volumeClaimTemplates": [{
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"],
                     "resources": {"requests": {"storage": "1Gi"}}},
        }],
    })
}

fn settled(set: &StatefulSet, replicas: i32) -> bool {
    let Some(status) = &set.status else { return false };
    let counts = [status.ready_replicas, status.available_replicas, status.updated_replicas];
    counts.iter().all(|count| count.unwrap_or(0) == replicas)
        && status.replicas == replicas
        && status.current_revision == status.update_revision
        && status.observed_generation == set.metadata.generation
}

fn names(pods: &[Pod]) -> Vec<&str> {
    let mut names: Vec<&str> = pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
    names.sort_unstable();
    names
}

fn new_image(image: &str) -> Patch<Value> {
    let containers = json!([{"name": "main", "image": image}]);
    Patch::Merge(json!({"spec": {"template": {"spec": {"containers": containers}}}}))
}

#[steersman::test]
async fn pods_come_in_order_and_go_in_reverse(cluster: Cluster) -> Result<()> {
    cluster.client().create(&set("web", &json!({}))).await?;
    cluster.eventually("web", |set: &StatefulSet| settled(set, 3)).await?;
    let pods: Vec<Pod> = all(&cluster).await?;
    assert_eq!(names(&pods), ["web-0", "web-1", "web-2"]);
    for (ordinal, pod) in pods.iter().enumerate() {
        let labels = pod.metadata.labels.as_ref().unwrap();
        assert_eq!(labels["statefulset.kubernetes.io/pod-name"], format!("web-{ordinal}"));
        assert_eq!(labels["apps.kubernetes.io/pod-index"], ordinal.to_string());
        assert!(labels["controller-revision-hash"].starts_with("web-"));
        assert_eq!(pod.spec.as_ref().unwrap().subdomain.as_deref(), Some("web"));
    }
    let fewer = Patch::Merge(json!({"spec": {"replicas": 1}}));
    cluster.client().patch::<StatefulSet, _>("web", &fewer).await?;
    cluster.eventually("web", |set: &StatefulSet| settled(set, 1)).await?;
    all_become(&cluster, |pods: &[Pod]| names(pods) == ["web-0"]).await?;
    let said = |reason: &str, what: &str, n: usize| {
        format!(
            "statefulset-controller Normal {reason}: {what} Pod web-{n} in StatefulSet web successful"
        )
    };
    let mut expected: Vec<String> = (0..3).map(|n| said("SuccessfulCreate", "Create", n)).collect();
    expected.extend([1, 2].map(|n| said("SuccessfulDelete", "Delete", n)));
    assert_eq!(told(&cluster, "StatefulSet").await?, expected);
    Ok(())
}

#[steersman::test]
async fn a_status_knows_of_the_pod_that_was_just_created(cluster: Cluster) -> Result<()> {
    let record = cluster.audit();
    cluster.client().create(&set("web", &json!({}))).await?;
    cluster.eventually("web", |set: &StatefulSet| settled(set, 3)).await?;
    let written = writes(&record);
    let statuses = written.iter().filter(|write| write.ends_with("statefulsets/status")).count();
    // The first Pod is there, the second when the first is ready, the third, and all are ready.
    assert_eq!(statuses, 4, "{written:#?}");
    Ok(())
}

#[steersman::test]
async fn a_pod_waits_until_those_before_it_have_been_ready_for_long_enough(
    cluster: Cluster,
) -> Result<()> {
    cluster.client().create(&set("web", &json!({"minReadySeconds": 10}))).await?;
    all_become(&cluster, |pods: &[Pod]| pods.iter().any(is_ready)).await?;
    cluster.advance(Duration::from_secs(8)).await;
    assert_eq!(all::<Pod>(&cluster).await?.len(), 1);
    cluster.advance(Duration::from_secs(4)).await;
    assert_eq!(all::<Pod>(&cluster).await?.len(), 2);
    cluster.eventually("web", |set: &StatefulSet| settled(set, 3)).await
}

#[steersman::test]
async fn an_update_replaces_pods_from_the_highest_ordinal_down_to_the_partition(
    cluster: Cluster,
) -> Result<()> {
    let partitioned =
        json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}});
    cluster.client().create(&set("web", &partitioned)).await?;
    cluster.eventually("web", |set: &StatefulSet| settled(set, 3)).await?;
    cluster.client().patch::<StatefulSet, _>("web", &new_image("nginx:2")).await?;
    let half = |set: &StatefulSet| {
        let status = set.status.clone().unwrap_or_default();
        status.updated_replicas == Some(2)
            && status.current_replicas == Some(1)
            && status.ready_replicas == Some(3)
            && status.current_revision != status.update_revision
    };
    cluster.eventually("web", half).await?;
    let images = |pods: &[Pod]| -> Vec<String> {
        let mut all: Vec<_> = pods.iter().collect();
        all.sort_by_key(|pod| pod.metadata.name.clone());
        all.iter().map(|pod| image(pod).to_owned()).collect()
    };
    assert_eq!(images(&all::<Pod>(&cluster).await?), ["nginx:1", "nginx:2", "nginx:2"]);
    // Below the partition, a Pod that is deleted comes back as it was.
    cluster.client().delete::<Pod>("web-0", &DeleteParams::default()).await?;
    all_become(&cluster, |pods: &[Pod]| pods.len() == 3 && pods.iter().all(is_ready)).await?;
    assert_eq!(images(&all::<Pod>(&cluster).await?)[0], "nginx:1");
    let rest = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}});
    cluster.client().patch::<StatefulSet, _>("web", &Patch::Merge(rest)).await?;
    cluster.eventually("web", |set: &StatefulSet| settled(set, 3)).await?;
    assert_eq!(images(&all::<Pod>(&cluster).await?), ["nginx:2"; 3]);
    Ok(())
}

#[steersman::test]
async fn with_on_delete_pods_are_updated_when_somebody_deletes_them(
    cluster: Cluster,
) -> Result<()> {
    let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
    cluster.client().create(&set("web", &on_delete)).await?;
    all_become(&cluster, |pods: &[Pod]| pods.len() == 3 && pods.iter().all(is_ready)).await?;
    cluster.client().patch::<StatefulSet, _>("web", &new_image("nginx:2")).await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert!(all::<Pod>(&cluster).await?.iter().all(|pod| image(pod) == "nginx:1"));
    cluster.client().delete::<Pod>("web-1", &DeleteParams::default()).await?;
    let one_is_new = |pods: &[Pod]| {
        pods.len() == 3 && pods.iter().filter(|pod| image(pod) == "nginx:2").count() == 1
    };
    all_become(&cluster, one_is_new).await?;
    Ok(())
}

#[steersman::test]
async fn templates_are_kept_as_revisions_and_one_that_comes_back_keeps_its_name(
    cluster: Cluster,
) -> Result<()> {
    cluster.client().create(&set("web", &json!({"revisionHistoryLimit": 1}))).await?;
    cluster.eventually("web", |set: &StatefulSet| settled(set, 3)).await?;
    let first = all::<ControllerRevision>(&cluster).await?.remove(0);
    assert_eq!(first.revision, 1);
    assert!(first.metadata.labels.unwrap().contains_key("controller.kubernetes.io/hash"));
    for image in ["nginx:2", "nginx:1", "nginx:3"] {
        cluster.client().patch::<StatefulSet, _>("web", &new_image(image)).await?;
        cluster.eventually("web", |set: &StatefulSet| settled(set, 3)).await?;
    }
    let mut kept: Vec<ControllerRevision> = all(&cluster).await?;
    kept.sort_by_key(|revision| revision.revision);
    let numbers: Vec<i64> = kept.iter().map(|revision| revision.revision).collect();
    assert_eq!(numbers, [3, 4], "the second template is forgotten, the first has a new number");
    assert_eq!(kept[0].metadata.name, first.metadata.name);
    Ok(())
}

#[steersman::test]
async fn a_pod_that_has_failed_is_replaced(cluster: Cluster) -> Result<()> {
    cluster.client().create(&set("web", &json!({}))).await?;
    cluster.eventually("web", |set: &StatefulSet| settled(set, 3)).await?;
    let before: Pod = cluster.client().get("web-1").await?.unwrap();
    let failed = Patch::Merge(json!({"status": {"phase": "Failed", "reason": "Evicted"}}));
    cluster.client().patch_status::<Pod, _>("web-1", &failed).await?;
    let replaced = |pod: &Pod| pod.metadata.uid != before.metadata.uid && is_ready(pod);
    cluster.eventually("web-1", replaced).await
}

#[steersman::test]
async fn claims_stay_unless_the_policy_says_otherwise(cluster: Cluster) -> Result<()> {
    let keep = with_claims(&json!({}));
    cluster.client().create(&set("keep", &keep)).await?;
    let drop = with_claims(&json!({"whenDeleted": "Delete", "whenScaled": "Delete"}));
    cluster.client().create(&set("drop", &drop)).await?;
    for name in ["keep", "drop"] {
        cluster.eventually(name, |set: &StatefulSet| settled(set, 3)).await?;
        let first: PersistentVolumeClaim =
            cluster.client().get(format!("data-{name}-0").as_str()).await?.unwrap();
        assert_eq!(first.metadata.labels.unwrap()["app"], name);
        assert_eq!(first.metadata.owner_references.is_some(), name == "drop");
        let fewer = Patch::Merge(json!({"spec": {"replicas": 1}}));
        cluster.client().patch::<StatefulSet, _>(name, &fewer).await?;
        cluster.eventually(name, |set: &StatefulSet| settled(set, 1)).await?;
    }
    let count = |claims: &[PersistentVolumeClaim], name: &str| {
        let start = format!("data-{name}-");
        claims.iter().filter(|c| c.metadata.name.as_ref().unwrap().starts_with(&start)).count()
    };
    let scaled =
        |claims: &[PersistentVolumeClaim]| count(claims, "drop") == 1 && count(claims, "keep") == 3;
    all_become(&cluster, scaled).await?;
    // A Pod that comes back finds its claim, or a new one.
    for name in ["keep", "drop"] {
        let more = Patch::Merge(json!({"spec": {"replicas": 2}}));
        cluster.client().patch::<StatefulSet, _>(name, &more).await?;
        cluster.eventually(name, |set: &StatefulSet| settled(set, 2)).await?;
        cluster.client().delete::<StatefulSet>(name, &DeleteParams::default()).await?;
        cluster.gone::<StatefulSet>(name).await?;
    }
    let over =
        |claims: &[PersistentVolumeClaim]| count(claims, "drop") == 0 && count(claims, "keep") == 3;
    all_become(&cluster, over).await?;
    Ok(())
}

#[steersman::test]
async fn in_parallel_pods_do_not_wait_for_each_other(cluster: Cluster) -> Result<()> {
    let spec = json!({
        "podManagementPolicy": "Parallel", "replicas": 20, "ordinals": {"start": 5},
        "template": {"metadata": {"labels": {"app": "web"}},
                     "spec": {"containers": [{"name": "main", "image": "nginx"}],
                              "nodeSelector": {"no": "where"}}},
    });
    cluster.client().create(&set("web", &spec)).await?;
    let pods = all_become(&cluster, |pods: &[Pod]| pods.len() == 20).await?;
    assert!(pods.iter().any(|pod| pod.metadata.name.as_deref() == Some("web-24")));
    assert!(!pods.iter().any(is_ready));
    Ok(())
}

#[steersman::test]
async fn orphans_with_the_name_of_a_pod_of_the_set_are_adopted_and_no_others(
    cluster: Cluster,
) -> Result<()> {
    for name in ["web-0", "stray"] {
        let mut pod = crate::objects::pod(name, &json!({}));
        pod.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
        cluster.client().create(&pod).await?;
    }
    cluster.client().create(&set("web", &json!({"replicas": 1}))).await?;
    let adopted = |pod: &Pod| {
        let labels = pod.metadata.labels.as_ref().unwrap();
        pod.metadata.owner_references.is_some()
            && labels.contains_key("statefulset.kubernetes.io/pod-name")
    };
    cluster.eventually("web-0", adopted).await?;
    let stray: Pod = cluster.client().get("stray").await?.unwrap();
    assert!(stray.metadata.owner_references.is_none());
    Ok(())
}

#[steersman::test]
async fn a_claim_that_is_refused_does_not_keep_the_others_from_being_made(
    cluster: Cluster,
) -> Result<()> {
    let quota: ResourceQuota = object(json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": {"requests.storage": "2Gi"}},
    }));
    cluster.client().create(&quota).await?;
    let counted =
        |quota: &ResourceQuota| quota.status.as_ref().is_some_and(|status| status.used.is_some());
    cluster.eventually("few", counted).await?;
    let claim = |name: &str, storage: &str| {
        json!({"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}})
    };
    let claims = json!([claim("large", "5Gi"), claim("huge", "9Gi"), claim("small", "1Gi")]);
    cluster.client().create(&set("web", &json!({"volumeClaimTemplates": claims}))).await?;
    cluster.eventually("small-web-0", |_: &PersistentVolumeClaim| true).await?;
    let told = told(&cluster, "StatefulSet").await?;
    let failed = told.iter().find(|line| line.contains("FailedCreate: Create Pod web-0"));
    let failed = failed.expect("the Pod is not created");
    for start in
        ["error: [failed to create PVC large-web-0: ", ", failed to create PVC huge-web-0: "]
    {
        assert!(failed.contains(start), "{failed}");
    }
    Ok(())
}
