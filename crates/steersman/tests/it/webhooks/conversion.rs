//! A custom resource of two versions, converted by the framework.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::crd::merge_crds;
use kube::{CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use steersman::webhook::{Conversion, Spoke, WebhookServer};
use steersman::{Client, Context, Controller, Error, ListOptions, Next, Result};
use steersman_testkit::Cluster;

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "demo.steersman.dev", version = "v1", kind = "Clock", namespaced)]
#[kube(status = "ClockStatus")]
struct ClockSpec {
    seconds: i64,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, JsonSchema)]
struct ClockStatus {
    seen: i64,
}

/// Clocks were once told the time in words.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "demo.steersman.dev", version = "v1alpha1", kind = "Clock", namespaced)]
#[kube(root = "OldClock", status = "ClockStatus")]
struct OldClockSpec {
    time: String,
}

impl Spoke for OldClock {
    type Hub = Clock;

    fn to_hub(&self) -> Result<Clock> {
        let words = &self.spec.time;
        let seconds = words.strip_suffix(" seconds").and_then(|number| number.parse().ok());
        let seconds = seconds.ok_or_else(|| Error::message(format!("{words:?} is no time")))?;
        let mut clock = Clock::new(&self.name_any(), ClockSpec { seconds });
        clock.status = self.status.clone();
        Ok(clock)
    }

    fn from_hub(hub: &Clock) -> Result<Self> {
        let time = format!("{} seconds", hub.spec.seconds);
        let mut clock = OldClock::new(&hub.name_any(), OldClockSpec { time });
        clock.status = hub.status.clone();
        Ok(clock)
    }
}

async fn clocks(cluster: &Cluster, stored: &str) -> Result<Client> {
    let definition: CustomResourceDefinition =
        merge_crds(vec![Clock::crd(), OldClock::crd()], stored)?;
    cluster.define(&definition).await?;
    let conversion = Conversion::hub::<Clock>().spoke::<OldClock>();
    cluster.webhooks(WebhookServer::builder("shop").converts(conversion)).await?;
    Ok(cluster.client().clone())
}

fn old_clock(name: &str, time: &str) -> OldClock {
    let mut clock = OldClock::new(name, OldClockSpec { time: time.to_owned() });
    clock.metadata.labels = Some([("kept".to_owned(), "yes".to_owned())].into());
    clock
}

#[steersman::test(anywhere)]
async fn an_object_can_be_read_and_written_in_every_version(cluster: Cluster) -> Result<()> {
    for stored in ["v1", "v1alpha1"] {
        let client = clocks(&cluster, stored).await?;
        let name = format!("of-{stored}");
        let old = client.create(&old_clock(&name, "5 seconds")).await?;
        assert_eq!(old.spec.time, "5 seconds");
        let new: Clock = client.get(name.as_str()).await?.unwrap();
        assert_eq!(new.spec.seconds, 5, "stored in {stored}");
        assert_eq!(new.labels()["kept"], "yes");
        assert_eq!(new.metadata, old.metadata);

        let patch = kube::api::Patch::Merge(json!({"spec": {"seconds": 7}}));
        client.patch::<Clock, _>(name.as_str(), &patch).await?;
        let old: OldClock = client.get(name.as_str()).await?.unwrap();
        assert_eq!(old.spec.time, "7 seconds");
        assert_eq!(old.uid(), new.uid());
    }
    let all: Vec<Clock> = cluster.client().list(&ListOptions::default()).await?;
    assert_eq!(all.len(), 2);
    Ok(())
}

#[steersman::test]
async fn what_cannot_be_converted_is_refused_with_the_reason(cluster: Cluster) -> Result<()> {
    let client = clocks(&cluster, "v1").await?;
    let refused = client.create(&old_clock("broken", "noon")).await.unwrap_err().to_string();
    assert!(refused.contains("\"noon\" is no time"), "{refused}");
    Ok(())
}

#[steersman::test]
async fn a_controller_of_one_version_serves_objects_of_the_other(cluster: Cluster) -> Result<()> {
    let client = clocks(&cluster, "v1alpha1").await?;
    cluster.run(Controller::of::<Clock>().reconcile(
        async |clock: Arc<Clock>, ctx: Context<Clock>| -> Result<Next> {
            ctx.status(ClockStatus { seen: clock.spec.seconds });
            Ok(Next::Settled)
        },
    ));
    client.create(&old_clock("old", "9 seconds")).await?;
    let seen = |clock: &OldClock| clock.status.as_ref().is_some_and(|status| status.seen == 9);
    cluster.eventually("old", seen).await
}
