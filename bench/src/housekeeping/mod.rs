//! Cleaning up, on the program over HTTPS: how soon a namespace is gone, how soon what belongs to
//! somebody goes with its owner, what a quota costs those who create, how soon a Pod of a large Service
//! is [found], how soon Pods of a node that is [lost] run elsewhere, and what controllers
//! cost that have nothing to do.

mod found;
mod lost;

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::program::Program;
use crate::report::{Figure, Report, median};
use crate::rollout::user::{User, text};

const NAMESPACES: &str = "/api/v1/namespaces";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const ACCOUNTS: &str = "/api/v1/serviceaccounts";
const CONCURRENCY: usize = 16;
const ROUNDS: usize = 5;
/// How many objects a namespace has that is not empty, and how many are created under a quota.
const OBJECTS: usize = 1000;
/// How many Pods a node takes.
const PODS_PER_NODE: usize = 110;
/// How long nothing happens before idleness is measured, and how long it is.
const SETTLE_TIME: Duration = Duration::from_secs(20);
const IDLE_TIME: Duration = Duration::from_secs(60);
/// What Kubernetes takes for an empty namespace.
const RIVAL: &str = "Kubernetes: 5150";

/// How much the benchmark `housekeeping` measures.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Extent {
    /// housekeeping: how many objects go with their owner.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    cascade: usize,
    /// housekeeping: how many Pods a large Service has.
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    service_pods: usize,
    /// housekeeping: how many Pods a node has that is lost.
    #[arg(long, value_name = "N", default_value_t = 90)]
    lost_pods: usize,
    /// housekeeping: how many Pods there are when nothing happens.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    idle_pods: usize,
}

/// Runs the benchmark.
pub(crate) fn run(extent: &Extent, report: &mut Report) -> Result<(), String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(clean(extent, report))?;
    runtime.block_on(found::measure(extent.service_pods, report))?;
    runtime.block_on(lost::measure(extent.lost_pods, report))?;
    runtime.block_on(idle(extent, report))
}

fn tell(report: &mut Report, metric: &str, value: f64, unit: &str) {
    report.figure(&Figure { metric, value, unit, goal: "" });
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

async fn clean(extent: &Extent, report: &mut Report) -> Result<(), String> {
    let program = Program::start(&["--nodes", "1"])?;
    program.ready().await.map_err(|error| error.to_string())?;
    let user = User::of(program.kubeconfig()).await?;
    namespaces(&user, report).await?;
    for mode in ["Background", "Foreground", "Orphan"] {
        cascade(&user, mode, extent.cascade, report).await?;
    }
    quota(&user, report).await
}

/// Deletes namespaces without content, and one with some.
async fn namespaces(user: &User, report: &mut Report) -> Result<(), String> {
    let mut empty = Vec::new();
    for round in 0..ROUNDS {
        empty.push(namespace(user, &format!("empty-{round}"), 0).await?);
    }
    let metric = "namespace, empty, deleted";
    report.figure(&Figure { metric, value: median(empty), unit: "ms", goal: RIVAL });
    let full = namespace(user, "full", OBJECTS).await?;
    tell(report, "namespace of 1,000 ConfigMaps, deleted", full, "ms");
    Ok(())
}

/// How long it takes until a namespace with so many objects is gone.
async fn namespace(user: &User, name: &str, objects: usize) -> Result<f64, String> {
    // What every namespace gets is there before it is deleted.
    let of_namespace = format!("fieldSelector=metadata.namespace%3D{name}");
    let mut accounts = user.follow_selected(ACCOUNTS, &of_namespace).await?;
    user.create(NAMESPACES, &json!({"metadata": {"name": name}})).await?;
    accounts.until(|accounts| !accounts.is_empty()).await?;
    let collection = format!("{NAMESPACES}/{name}/configmaps");
    create_all(user, &collection, objects, &Value::Null).await?;
    let mut followed = user.follow(NAMESPACES, name).await?;
    let begun = Instant::now();
    user.delete(&format!("{NAMESPACES}/{name}"), &json!({})).await?;
    followed.until_none().await?;
    Ok(milliseconds(begun))
}

/// Deletes an owner: until what it owned is gone, or belongs to nobody.
async fn cascade(
    user: &User,
    mode: &str,
    objects: usize,
    report: &mut Report,
) -> Result<(), String> {
    let owner = json!({"metadata": {"name": "owner", "labels": {"app": "owner"}}});
    let owner = user.create(CONFIG_MAPS, &owner).await?;
    let references = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": text(&owner["metadata"]["uid"]), "blockOwnerDeletion": true,
    }]);
    create_all(user, CONFIG_MAPS, objects, &references).await?;
    let app = if mode == "Background" { "child" } else { "owner" };
    let mut left = user.follow_all(CONFIG_MAPS, app).await?;
    let begun = Instant::now();
    user.delete(&format!("{CONFIG_MAPS}/owner"), &json!({"propagationPolicy": mode})).await?;
    left.until_none().await?;
    let took = milliseconds(begun);
    let metric = format!("{objects} objects of one owner, {}", mode.to_lowercase());
    tell(report, &metric, took, "ms");
    tell(report, "  for each", took * 1000.0 / objects as f64, "µs");
    user.remove(&format!("{CONFIG_MAPS}?labelSelector=app%3Dchild")).await.map(drop)
}

/// How fast objects are created without a quota that counts them, and with one.
async fn quota(user: &User, report: &mut Report) -> Result<(), String> {
    let rate = async || {
        let begun = Instant::now();
        create_all(user, CONFIG_MAPS, OBJECTS, &Value::Null).await?;
        let rate = OBJECTS as f64 / begun.elapsed().as_secs_f64();
        user.remove(&format!("{CONFIG_MAPS}?labelSelector=app%3Dchild")).await?;
        Ok::<f64, String>(rate)
    };
    tell(report, "ConfigMaps created, concurrency 16, no quota", rate().await?, "/s");
    let hard = json!({"metadata": {"name": "quota"}, "spec": {"hard": {"count/configmaps": "1M"}}});
    user.create(QUOTAS, &hard).await?;
    let mut quota = user.follow(QUOTAS, "quota").await?;
    let used = |quota: &Value| text(&quota["status"]["used"]["count/configmaps"]);
    quota.until_one(|quota| !used(quota).is_empty()).await?;
    let before = quota.objects().next().map(used).unwrap_or_default();
    tell(report, "the same, with a quota", rate().await?, "/s");
    let begun = Instant::now();
    quota.until_one(|quota| used(quota) == before).await?;
    tell(report, "until the quota knows that they are gone", milliseconds(begun), "ms");
    Ok(())
}

/// Creates so many ConfigMaps with the label `app=child`.
async fn create_all(
    user: &User,
    collection: &str,
    count: usize,
    owners: &Value,
) -> Result<(), String> {
    let creates = (0..count).map(async |number| {
        let metadata = json!({"name": format!("child-{number}"), "labels": {"app": "child"},
                              "ownerReferences": owners});
        user.create(collection, &json!({"metadata": metadata})).await.map(drop)
    });
    stream::iter(creates).buffer_unordered(CONCURRENCY).try_collect::<()>().await
}

/// What a cluster costs in which nothing happens.
async fn idle(extent: &Extent, report: &mut Report) -> Result<(), String> {
    let pods = extent.idle_pods;
    let nodes = (pods / PODS_PER_NODE + 2).to_string();
    let program = Program::start(&["--nodes", &nodes])?;
    program.ready().await.map_err(|error| error.to_string())?;
    let user = User::of(program.kubeconfig()).await?;
    let mut web = user.follow(DEPLOYMENTS, "web").await?;
    user.create(DEPLOYMENTS, &deployment(pods)).await?;
    web.until_one(|web| web["status"]["availableReplicas"] == pods).await?;
    tokio::time::sleep(SETTLE_TIME).await;
    let before = program.processor_time()?;
    tokio::time::sleep(IDLE_TIME).await;
    let spent = program.processor_time()? - before;
    let share = 100.0 * spent.as_secs_f64() / IDLE_TIME.as_secs_f64();
    tell(report, &format!("resident with {pods} Pods, idle"), program.resident()?, "MB");
    tell(report, "  of one processor", share, "%");
    Ok(())
}

fn deployment(replicas: usize) -> Value {
    let labels = json!({"app": "web"});
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]},
            },
        },
    })
}
