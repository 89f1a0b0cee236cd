//! Controllers that reach the cluster through faults or over a link.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Patch;
use serde_json::json;
use steersman::{Context, Controller, Next, Result};
use steersman_testkit::{Cluster, Condition, Fault, Faults, Link};

use crate::config_map;

/// Marks the ConfigMap `a`.
fn marks() -> Controller {
    Controller::of::<ConfigMap>()
        .only(|map: &ConfigMap| map.metadata.name.as_deref() == Some("a"))
        .reconcile(async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let mark = Patch::Merge(json!({"data": {"marked": "yes"}}));
            ctx.patch::<ConfigMap, _>(ctx.key(), &mark).await?;
            Ok(Next::Settled)
        })
}

#[steersman::test]
async fn a_controller_runs_through_faults_and_recovers(cluster: Cluster) -> Result<()> {
    let faults = Faults::seeded(7).with(Fault::ConnectionRefused, 1.0);
    let mut records = cluster.reconciles();
    cluster.run_with(&faults, marks());
    let created = cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(600)).await;
    assert!(faults.injected(Fault::ConnectionRefused) > 10, "{faults}");
    let untouched: ConfigMap = cluster.client().get("a").await?.unwrap();
    assert_eq!(untouched, created, "only the controller meets the faults");
    faults.heal();
    cluster.eventually("a", |map: &ConfigMap| map.data.is_some()).await?;
    assert!(records.try_recv().is_ok(), "its reconciles are heard of like any other's");
    Ok(())
}

#[steersman::test]
async fn a_controller_behind_a_link_waits_for_it(cluster: Cluster) -> Result<()> {
    let link = Link::seeded(1);
    link.set(Condition::HELD);
    cluster.run_over(&link, marks());
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(10)).await;
    assert!(cluster.client().get::<ConfigMap>("a").await?.unwrap().data.is_none());
    cluster.run(marks()); // a second replica, in better health, may have the same name
    cluster.eventually("a", |map: &ConfigMap| map.data.is_some()).await
}
