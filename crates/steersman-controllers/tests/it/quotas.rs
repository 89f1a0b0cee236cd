//! Quotas say what is used, whatever becomes of it, and nobody gets more than they limit.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, join_all};
use http::{Request, Response};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ResourceQuota};
use kube::api::{DeleteParams, Patch};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use steersman::{Error, Result};
use steersman_testkit::Cluster;

use crate::garbage::{boat_kind, boats, fleet, serve};
use crate::objects::{all, all_become, config_map, deployment, is_ready, object, pod};

/// How long the slow webhook takes.
const SLOW: Duration = Duration::from_millis(100);

const SECOND: Duration = Duration::from_secs(1);

async fn limit(cluster: &Cluster, hard: Value) -> Result<()> {
    let quota: ResourceQuota = object(json!({
        "metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard},
    }));
    cluster.client().create(&quota).await?;
    cluster.eventually("q", |quota: &ResourceQuota| json!(quota.status)["hard"] == hard).await
}

/// Waits until the quota says that this is used.
async fn uses(cluster: &Cluster, used: Value) -> Result<()> {
    cluster.eventually("q", |quota: &ResourceQuota| json!(quota.status)["used"] == used).await
}

async fn raise(cluster: &Cluster, hard: &Value) -> Result<()> {
    let spec = Patch::Merge(json!({"spec": {"hard": hard}}));
    cluster.client().patch::<ResourceQuota, _>("q", &spec).await.map(drop)
}

/// How many ConfigMaps there are once everybody has published theirs.
async fn config_maps(cluster: &Cluster) -> Result<usize> {
    cluster.advance(SECOND).await;
    Ok(all::<ConfigMap>(cluster).await?.len())
}

async fn delete_map(cluster: &Cluster, name: &str) -> Result<()> {
    cluster.client().delete::<ConfigMap>(name, &DeleteParams::default()).await.map(drop)
}

fn asking(name: &str, cpu: &str) -> Pod {
    let container = json!({
        "name": "main", "image": "nginx", "resources": {"requests": {"cpu": cpu}},
    });
    pod(name, &json!({"containers": [container], "restartPolicy": "Never"}))
}

#[steersman::test]
async fn a_quota_counts_what_is_there_and_is_charged_what_comes(cluster: Cluster) -> Result<()> {
    cluster.client().create(&config_map("a", &[])).await?;
    let there = config_maps(&cluster).await?;
    let hard = json!({"configmaps": (there + 1).to_string(), "secrets": "1"});
    limit(&cluster, hard).await?;
    uses(&cluster, json!({"configmaps": there.to_string(), "secrets": "0"})).await?;
    cluster.client().create(&config_map("b", &[])).await?;
    uses(&cluster, json!({"configmaps": (there + 1).to_string(), "secrets": "0"})).await?;
    let refused = cluster.client().create(&config_map("c", &[])).await.unwrap_err();
    assert!(
        refused.to_string().contains("exceeded quota: q, requested: configmaps=1"),
        "{refused}"
    );
    Ok(())
}

#[steersman::test]
async fn what_is_deleted_can_be_had_again(cluster: Cluster) -> Result<()> {
    let there = config_maps(&cluster).await?;
    limit(&cluster, json!({"count/configmaps": (there + 1).to_string()})).await?;
    for round in 0..3 {
        let name = format!("map-{round}");
        cluster.client().create(&config_map(&name, &[])).await?;
        assert!(cluster.client().create(&config_map("more", &[])).await.is_err());
        delete_map(&cluster, &name).await?;
        uses(&cluster, json!({"count/configmaps": there.to_string()})).await?;
    }
    Ok(())
}

#[steersman::test]
async fn a_pod_that_has_ended_frees_what_it_asked_for_and_stays_counted(
    cluster: Cluster,
) -> Result<()> {
    limit(&cluster, json!({"pods": "1", "requests.cpu": "1", "count/pods": "2"})).await?;
    cluster.client().create(&asking("first", "750m")).await?;
    cluster.eventually("first", is_ready).await?;
    assert!(cluster.client().create(&asking("second", "500m")).await.is_err());
    let ended = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    cluster.client().patch_status::<Pod, _>("first", &ended).await?;
    uses(&cluster, json!({"pods": "0", "requests.cpu": "0", "count/pods": "1"})).await?;
    cluster.client().create(&asking("second", "500m")).await?;
    uses(&cluster, json!({"pods": "1", "requests.cpu": "500m", "count/pods": "2"})).await?;
    cluster.client().delete::<Pod>("first", &DeleteParams::default()).await?;
    cluster.client().delete::<Pod>("second", &DeleteParams::default()).await?;
    uses(&cluster, json!({"pods": "0", "requests.cpu": "0", "count/pods": "0"})).await
}

#[steersman::test]
async fn a_quota_that_limits_something_else_is_counted_at_once(cluster: Cluster) -> Result<()> {
    limit(&cluster, json!({"pods": "1"})).await?;
    cluster.client().create(&asking("first", "1")).await?;
    let hard = json!({"requests.cpu": "3", "pods": "2"});
    raise(&cluster, &hard).await?;
    uses(&cluster, json!({"requests.cpu": "1", "pods": "1"})).await?;
    cluster.client().create(&asking("second", "1")).await?;
    let other = json!({"requests.cpu": null, "pods": null, "secrets": "0"});
    raise(&cluster, &other).await?;
    uses(&cluster, json!({"secrets": "0"})).await?;
    cluster.client().create(&asking("third", "9")).await.map(drop)
}

#[steersman::test]
async fn a_deployment_grows_as_far_as_its_quota_and_further_when_that_is_raised(
    cluster: Cluster,
) -> Result<()> {
    limit(&cluster, json!({"pods": "3"})).await?;
    cluster.client().create(&deployment("web", 10, "nginx")).await?;
    all_become(&cluster, |pods: &[Pod]| pods.len() == 3).await?;
    cluster.advance(60 * SECOND).await;
    assert_eq!(all::<Pod>(&cluster).await?.len(), 3);
    raise(&cluster, &json!({"pods": "5"})).await?;
    cluster.advance(600 * SECOND).await;
    assert_eq!(all::<Pod>(&cluster).await?.len(), 5);
    uses(&cluster, json!({"pods": "5"})).await
}

#[steersman::test]
async fn what_nobody_tells_is_found_within_five_minutes(cluster: Cluster) -> Result<()> {
    let hard = json!({"services": "9"});
    limit(&cluster, hard).await?;
    let there = cluster.client().get::<ResourceQuota>("q").await?.unwrap();
    let there = json!(there.status)["used"].clone();
    let wrong = Patch::Merge(json!({"status": {"used": {"services": "7"}}}));
    cluster.client().patch_status::<ResourceQuota, _>("q", &wrong).await?;
    cluster.advance(240 * SECOND).await;
    let quota: ResourceQuota = cluster.client().get("q").await?.unwrap();
    assert_eq!(json!(quota.status)["used"], json!({"services": "7"}));
    cluster.advance(61 * SECOND).await;
    let quota: ResourceQuota = cluster.client().get("q").await?.unwrap();
    assert_eq!(json!(quota.status)["used"], there);
    Ok(())
}

#[steersman::test]
async fn custom_resources_are_counted_once_they_are_served_in_whatever_version(
    cluster: Cluster,
) -> Result<()> {
    let hard = json!({"count/boats.example.com": "2"});
    limit(&cluster, hard).await?;
    cluster.client().create(&boats(&[("v1", true)])).await?;
    cluster.advance(31 * SECOND).await;
    uses(&cluster, json!({"count/boats.example.com": "0"})).await?;
    let launch = async |version: &str, name: &str| {
        let boat = DynamicObject::new(name, &boat_kind(version));
        fleet(version, &cluster).create(&Default::default(), &boat).await
    };
    launch("v1", "argo").await?;
    launch("v1", "bounty").await?;
    assert!(launch("v1", "calypso").await.is_err());
    for versions in [[("v1", true), ("v2", true)], [("v1", false), ("v2", true)]] {
        serve(&versions, &cluster).await?;
        cluster.advance(120 * SECOND).await;
        uses(&cluster, json!({"count/boats.example.com": "2"})).await?;
    }
    fleet("v2", &cluster).delete("argo", &DeleteParams::default()).await?;
    uses(&cluster, json!({"count/boats.example.com": "1"})).await?;
    launch("v2", "calypso").await?;
    Ok(())
}

/// How many watches of ingresses were begun so far.
async fn watches(cluster: &Cluster) -> Result<u64> {
    let metrics = Request::get("/metrics").body(Vec::new())?;
    let metrics = cluster.client().kube().request_text(metrics).await?;
    let lines = metrics.lines().filter(|line| {
        line.starts_with("apiserver_request_total")
            && line.contains("resource=\"ingresses\"")
            && line.contains("verb=\"WATCH\"")
    });
    Ok(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum())
}

#[steersman::test]
async fn a_resource_is_watched_when_a_quota_asks_for_it_and_no_longer(
    cluster: Cluster,
) -> Result<()> {
    limit(&cluster, json!({"services": "9"})).await?;
    cluster.advance(SECOND).await;
    let before = watches(&cluster).await?;
    let hard = json!({"count/ingresses.networking.k8s.io": "1"});
    raise(&cluster, &hard).await?;
    cluster.advance(10 * SECOND).await;
    assert_eq!(watches(&cluster).await?, before + 1);
    raise(&cluster, &json!({"count/ingresses.networking.k8s.io": "2"})).await?;
    cluster.advance(10 * SECOND).await;
    assert_eq!(watches(&cluster).await?, before + 1);
    cluster.client().delete::<ResourceQuota>("q", &DeleteParams::default()).await?;
    cluster.advance(SECOND).await;
    limit(&cluster, hard).await?;
    cluster.advance(SECOND).await;
    assert_eq!(watches(&cluster).await?, before + 2, "the first one has ended");
    Ok(())
}

/// Answers reviews in this process.
type Converter = dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> + Send + Sync;

/// Converts by changing the version alone, and takes its time on the way to the store.
fn slow_converter() -> Arc<Converter> {
    Arc::new(|request| {
        let review: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let to = review["request"]["desiredAPIVersion"].clone();
        let objects = review["request"]["objects"].as_array();
        let mut objects = objects.cloned().unwrap_or_default();
        objects.iter_mut().for_each(|object| object["apiVersion"] = to.clone());
        let response = json!({
            "uid": review["request"]["uid"], "result": {"status": "Success"},
            "convertedObjects": objects,
        });
        let answer = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "response": response,
        });
        Box::pin(async move {
            if to == "example.com/v1" {
                // A slow webhook, on the clock of the test.
                let _ = tokio::time::timeout(SLOW, std::future::pending::<()>()).await;
            }
            Response::new(answer.to_string().into())
        })
    })
}

#[steersman::test]
async fn a_charge_is_not_taken_off_while_its_object_is_still_to_be_written(
    cluster: Cluster,
) -> Result<()> {
    cluster.serve_webhooks("https://convert.test", slow_converter());
    let mut definition = boats(&[("v1", true), ("v2", true)]);
    definition.spec.conversion = Some(object(json!({
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://convert.test/convert"},
        },
    })));
    cluster.client().create(&definition).await?;
    cluster.client().create(&config_map("a", &[])).await?;
    let there = config_maps(&cluster).await?;
    limit(&cluster, json!({"count/boats.example.com": "1", "configmaps": "99"})).await?;
    cluster.advance(60 * SECOND).await;
    let launch = async |name: &str| {
        let boat = DynamicObject::new(name, &boat_kind("v2"));
        fleet("v2", &cluster).create(&Default::default(), &boat).await
    };
    let meanwhile = async {
        cluster.advance(Duration::from_millis(20)).await;
        delete_map(&cluster, "a").await?; // whoever counts now finds no boat
        cluster.advance(Duration::from_millis(40)).await;
        Ok::<_, Error>(launch("bounty").await.is_err())
    };
    let (launched, refused) = tokio::join!(launch("argo"), meanwhile);
    launched?;
    assert!(refused?, "there is room for one");
    let maps = (there - 1).to_string();
    uses(&cluster, json!({"count/boats.example.com": "1", "configmaps": maps})).await
}

#[steersman::test]
async fn whoever_counts_in_between_lets_nobody_have_more_than_there_is(
    cluster: Cluster,
) -> Result<()> {
    const MOST: usize = 12;
    let others = config_maps(&cluster).await?;
    let most = others + MOST;
    limit(&cluster, json!({"configmaps": most.to_string()})).await?;
    for round in 0..20 {
        let own =
            |map: &ConfigMap| map.metadata.name.as_deref()?.strip_prefix("map-").map(str::to_owned);
        let there: Vec<String> = all::<ConfigMap>(&cluster).await?.iter().filter_map(own).collect();
        let deleted = there.iter().skip(round % 3).step_by(2);
        let deletes = join_all(deleted.map(|name| {
            let name = format!("map-{name}");
            let cluster = &cluster;
            async move { delete_map(cluster, &name).await }
        }));
        let creates = join_all((0..64).map(|n| {
            let map = config_map(&format!("map-{round}-{n}"), &[]);
            let client = cluster.client();
            async move { client.create(&map).await.is_ok() }
        }));
        let (deleted, created) = tokio::join!(deletes, creates);
        deleted.into_iter().collect::<Result<()>>()?;
        let now = all::<ConfigMap>(&cluster).await?.len();
        assert!(now <= most, "round {round}: {now} of {most}");
        assert!(round > 0 || created.iter().filter(|it| **it).count() == MOST);
        cluster.advance(Duration::from_millis(170 * (round as u64 % 7))).await;
    }
    let there = all::<ConfigMap>(&cluster).await?.len();
    uses(&cluster, json!({"configmaps": there.to_string()})).await
}
