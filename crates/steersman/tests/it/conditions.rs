//! Conditions and status as a controller reports them.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use kube::api::Patch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use steersman::conditions::{ConditionType, Conditions};
use steersman::events::NewEvent;
use steersman::{Context, Controller, Error, ListOptions, Next, Result};
use steersman_testkit::Cluster;

use crate::logged::Logged;

const READY: ConditionType = ConditionType::new("Ready");

/// Wants to be so large.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[kube(group = "test.steersman.dev", version = "v1", kind = "Gauge", namespaced)]
#[kube(status = "GaugeStatus")]
pub(crate) struct GaugeSpec {
    /// Its size.
    pub(crate) size: i32,
}

/// How large it is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub(crate) struct GaugeStatus {
    #[serde(default)]
    pub(crate) size: i32,
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
    #[serde(default)]
    pub(crate) reached: Option<i32>,
}

pub(crate) fn gauge(name: &str, size: i32) -> Gauge {
    Gauge::new(name, GaugeSpec { size })
}

fn ready(gauge: &Gauge) -> Option<&Condition> {
    gauge.status.as_ref()?.conditions.condition("Ready")
}

/// Is ready from size 3 on; reports and then fails from size 9 on.
fn gauges() -> Controller {
    Controller::of::<Gauge>().reconcile(
        async |gauge: Arc<Gauge>, ctx: Context<Gauge>| -> Result<Next> {
            let size = gauge.spec.size;
            ctx.change_status(|status: &mut GaugeStatus| status.size = size)?;
            ctx.condition(READY.is(size >= 3, "Measured", format!("its size is {size}")));
            let note = format!("its size is {size}");
            ctx.event(NewEvent::normal("Measured").action("Measure").note(note));
            if size >= 9 {
                return Err(Error::terminal("too large"));
            }
            Ok(Next::Settled)
        },
    )
}

async fn resize(cluster: &Cluster, size: i32) -> Result<Gauge> {
    cluster.advance(Duration::from_secs(60)).await;
    let patch = Patch::Merge(json!({"spec": {"size": size}}));
    cluster.client().patch::<Gauge, _>("a", &patch).await?;
    cluster
        .eventually("a", |gauge: &Gauge| {
            ready(gauge).is_some_and(|it| it.message == format!("its size is {size}"))
        })
        .await?;
    Ok(cluster.client().get("a").await?.unwrap())
}

#[steersman::test]
async fn a_condition_keeps_its_time_until_its_status_changes(cluster: Cluster) -> Result<()> {
    cluster.install::<Gauge>().await?;
    cluster.run(gauges());
    cluster.client().create(&gauge("a", 1)).await?;
    let first = resize(&cluster, 2).await?;
    let time = |gauge: &Gauge| ready(gauge).unwrap().last_transition_time.clone();
    let second = resize(&cluster, 1).await?;
    assert_eq!(time(&first), time(&second));
    assert_eq!(ready(&second).unwrap().observed_generation, second.metadata.generation);
    let third = resize(&cluster, 9).await?;
    assert!(time(&third).0 > time(&second).0, "and it is told although the reconcile failed");
    assert_eq!(ready(&third).unwrap().status, "True");
    assert_eq!(third.status.unwrap().size, 9);
    Ok(())
}

#[steersman::test]
async fn what_others_report_stays(cluster: Cluster) -> Result<()> {
    cluster.install::<Gauge>().await?;
    cluster.client().create(&gauge("a", 1)).await?;
    let other = json!({"type": "Other", "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": "2029-01-01T00:00:00Z"});
    let status = json!({"reached": 7, "conditions": [other]});
    let patch = Patch::Merge(json!({ "status": status }));
    cluster.client().patch_status::<Gauge, _>("a", &patch).await?;
    cluster.run(gauges());
    let gauge = resize(&cluster, 4).await?;
    let status = gauge.status.unwrap();
    assert!(status.conditions.is_condition_true("Other"), "{status:?}");
    assert_eq!((status.size, status.reached), (4, Some(7)));
    Ok(())
}

#[steersman::test]
async fn a_report_that_changes_nothing_is_not_written(cluster: Cluster) -> Result<()> {
    cluster.install::<Gauge>().await?;
    cluster.run(gauges());
    cluster.client().create(&gauge("a", 1)).await?;
    let before = resize(&cluster, 2).await?;
    let patch = Patch::Merge(json!({"metadata": {"labels": {"poked": "yes"}}}));
    let poked = cluster.client().patch::<Gauge, _>("a", &patch).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let after: Gauge = cluster.client().get("a").await?.unwrap();
    assert_eq!(after.metadata.resource_version, poked.metadata.resource_version);
    assert_eq!(after.status, before.status);
    Ok(())
}

#[steersman::test]
async fn events_of_a_reconcile_are_about_its_object(cluster: Cluster) -> Result<()> {
    cluster.install::<Gauge>().await?;
    cluster.run(gauges());
    let gauge = cluster.client().create(&gauge("a", 1)).await?;
    resize(&cluster, 2).await?;
    cluster.advance(Duration::from_secs(10)).await;
    let events: Vec<Event> = cluster.client().list(&ListOptions::namespace("default")).await?;
    let mut notes: Vec<_> = events
        .iter()
        .filter(|event| event.regarding.as_ref().is_some_and(|it| it.uid == gauge.metadata.uid))
        .filter(|event| event.reporting_controller.as_deref() == Some("gauge"))
        .filter_map(|event| event.note.as_deref())
        .collect();
    notes.sort_unstable();
    assert_eq!(notes, ["its size is 1", "its size is 2"]);
    Ok(())
}

#[steersman::test]
async fn a_condition_on_a_kind_without_status_is_an_error(cluster: Cluster) -> Result<()> {
    // A kind without a status subresource says so, for conditions as well.
    let mut records = cluster.reconciles();
    let controller = Controller::of::<ConfigMap>().only(crate::reconcile::of_the_test).reconcile(
        async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| -> Result<Next> {
            ctx.condition(READY.yes("R", ""));
            Ok(Next::Settled)
        },
    );
    cluster.run(controller);
    cluster.client().create(&crate::reconcile::config_map("a")).await?;
    let outcome = records.recv().await?.outcome.to_string();
    assert!(outcome.contains("lacks the status subresource"), "{outcome}");
    Ok(())
}

/// Has a status without conditions.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "test.steersman.dev", version = "v1", kind = "Plain", namespaced)]
#[kube(status = "PlainStatus")]
struct PlainSpec {}

#[derive(Serialize, Deserialize, Clone, Debug, Default, JsonSchema)]
struct PlainStatus {
    #[serde(default)]
    seen: i32,
}

#[steersman::test]
async fn a_condition_that_the_schema_does_not_have_is_an_error_in_the_log_once(
    cluster: Cluster,
) -> Result<()> {
    cluster.install::<Plain>().await?;
    let logged = Logged::begin();
    cluster.run(Controller::of::<Plain>().reconcile(
        async |plain: Arc<Plain>, ctx: Context<Plain>| -> Result<Next> {
            let seen = plain.status.as_ref().map_or(0, |status| status.seen);
            ctx.change_status(|status: &mut PlainStatus| status.seen = (seen + 1).min(3))?;
            ctx.condition(READY.yes("Fine", "nobody will read this"));
            Ok(Next::After(Duration::from_secs(10)))
        },
    ));
    cluster.client().create(&Plain::new("a", PlainSpec {})).await?;
    cluster.advance(Duration::from_secs(120)).await;
    let text = logged.text();
    let pruned = "status.conditions is not kept by the server: the schema of Plain lacks the field";
    assert_eq!(text.matches(pruned).count(), 1, "{text}");
    assert!(!text.contains("status.seen is not kept"), "{text}");
    Ok(())
}
