//! What must hold on any cluster: these also run on the one of `STEERSMAN_TEST_KUBECONFIG`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, ObjectMeta, Patch};
use kube::core::{ApiResource, DynamicObject};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use steersman::conditions::{ConditionType, Conditions};
use steersman::events::NewEvent;
use steersman::kind::{Kind, Scope};
use steersman::{Context, Controller, Error, Next, Result};
use steersman_testkit::Cluster;

const READY: ConditionType = ConditionType::new("Ready");
const FINALIZER: &str = "buckets.example.com/outside";

/// Something outside of the cluster, and what tells of it inside.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "anywhere.example.com", version = "v1", kind = "Bucket", namespaced)]
#[kube(status = "BucketStatus")]
pub(crate) struct BucketSpec {
    /// How many Secrets there are to it.
    keys: usize,
}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(default)]
pub(crate) struct BucketStatus {
    keys: usize,
    conditions: Vec<Condition>,
}

/// What exists outside.
type Outside = Arc<Mutex<BTreeSet<String>>>;

fn secret(bucket: &Bucket, number: usize) -> Secret {
    let name = Some(format!("{}-{number}", bucket.name_any()));
    Secret { metadata: ObjectMeta { name, ..ObjectMeta::default() }, ..Secret::default() }
}

async fn keep(bucket: &Bucket, ctx: &Context<Bucket>) -> Result<Next> {
    let wanted = (0..bucket.spec.keys).map(|number| secret(bucket, number));
    let seen = ctx.world().want_all(wanted).prune::<Secret>().settle().await?;
    let keys = seen.of::<Secret>().len();
    ctx.change_status(|status: &mut BucketStatus| status.keys = keys)?;
    if bucket.spec.keys > 5 {
        ctx.condition(READY.no("TooMany", "at most five"));
        return Err(Error::terminal("at most five keys"));
    }
    ctx.condition(READY.yes("Kept", format!("{keys} keys")));
    ctx.event(NewEvent::normal("Kept").action("Keep").note(format!("{keys} keys")));
    Ok(Next::Settled)
}

fn buckets(outside: &Outside) -> Controller {
    let (made, removed) = (Arc::clone(outside), Arc::clone(outside));
    Controller::of::<Bucket>()
        .owns::<Secret>()
        .cleanup(FINALIZER, move |bucket: Arc<Bucket>, _: Context<Bucket>| {
            removed.lock().unwrap().remove(&bucket.name_any());
            async { Ok(()) }
        })
        .reconcile(move |bucket: Arc<Bucket>, ctx: Context<Bucket>| {
            assert!(bucket.finalizers().contains(&FINALIZER.to_owned()));
            made.lock().unwrap().insert(bucket.name_any());
            async move { keep(&bucket, &ctx).await }
        })
}

fn status(bucket: &Bucket) -> BucketStatus {
    bucket.status.clone().unwrap_or_default()
}

async fn resize(cluster: &Cluster, keys: usize) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": {"keys": keys}}));
    cluster.client().patch::<Bucket, _>("a", &patch).await.map(drop)
}

#[steersman::test(anywhere)]
async fn children_follow_their_owner_and_the_status_tells(cluster: Cluster) -> Result<()> {
    cluster.install::<Bucket>().await?;
    cluster.run(buckets(&Outside::default()));
    cluster.client().create(&Bucket::new("a", BucketSpec { keys: 3 })).await?;
    let ready = |bucket: &Bucket| status(bucket).conditions.is_condition_true("Ready");
    cluster
        .eventually("a", move |bucket: &Bucket| ready(bucket) && status(bucket).keys == 3)
        .await?;
    cluster.eventually("a-2", |_: &Secret| true).await?;
    let before: Bucket = cluster.client().get("a").await?.unwrap();

    resize(&cluster, 1).await?;
    cluster.gone::<Secret>("a-2").await?;
    cluster.eventually("a", |bucket: &Bucket| status(bucket).keys == 1).await?;
    let after: Bucket = cluster.client().get("a").await?.unwrap();
    let since = |bucket: &Bucket| {
        let conditions = status(bucket).conditions;
        conditions.condition("Ready").unwrap().last_transition_time.clone()
    };
    assert_eq!(since(&before), since(&after), "it was ready all the time");

    resize(&cluster, 9).await?;
    let refused = |bucket: &Bucket| status(bucket).conditions.is_condition_false("Ready");
    cluster.eventually("a", refused).await
}

#[steersman::test(anywhere)]
async fn what_is_outside_goes_before_its_object(cluster: Cluster) -> Result<()> {
    cluster.install::<Bucket>().await?;
    let outside = Outside::default();
    cluster.run(buckets(&outside));
    cluster.client().create(&Bucket::new("a", BucketSpec { keys: 1 })).await?;
    cluster.eventually("a", |bucket: &Bucket| status(bucket).keys == 1).await?;
    assert!(outside.lock().unwrap().contains("a"));
    cluster.client().delete::<Bucket>("a", &DeleteParams::default()).await?;
    cluster.gone::<Bucket>("a").await?;
    assert!(outside.lock().unwrap().is_empty());
    Ok(())
}

#[steersman::test(anywhere)]
async fn events_tell_what_was_done(cluster: Cluster) -> Result<()> {
    cluster.install::<Bucket>().await?;
    cluster.run(buckets(&Outside::default()));
    cluster.client().create(&Bucket::new("a", BucketSpec { keys: 2 })).await?;
    cluster.eventually("a", |bucket: &Bucket| status(bucket).keys == 2).await?;
    let options = steersman::ListOptions::namespace(cluster.namespace());
    for _ in 0..100 {
        let events: Vec<Event> = cluster.client().list(&options).await?;
        let told = |event: &Event| event.note.as_deref() == Some("2 keys");
        if let Some(event) = events.iter().find(|event| told(event)) {
            assert_eq!(event.reason.as_deref(), Some("Kept"));
            assert_eq!(event.regarding.as_ref().and_then(|it| it.name.as_deref()), Some("a"));
            return Ok(());
        }
        cluster.advance(std::time::Duration::from_millis(200)).await;
    }
    Err(Error::message("no event after 20 s"))
}

#[steersman::test(anywhere)]
async fn a_kind_known_only_at_run_time_is_reconciled(cluster: Cluster) -> Result<()> {
    cluster.install::<Bucket>().await?;
    let resource = ApiResource::erase::<Bucket>(&());
    let kind: Kind<DynamicObject> = Kind::dynamic(resource, Scope::Namespaced);
    let controller = Controller::of_kind(&kind).named("dynamic").owns::<ConfigMap>().reconcile(
        async |bucket: Arc<DynamicObject>, ctx: Context<DynamicObject>| {
            let name = Some(format!("{}-map", bucket.name_any()));
            let metadata = ObjectMeta { name, ..ObjectMeta::default() };
            ctx.apply(ConfigMap { metadata, ..ConfigMap::default() }).await?;
            ctx.status(json!({"keys": bucket.data["spec"]["keys"]}));
            Ok(Next::Settled)
        },
    );
    cluster.run(controller);
    cluster.client().create(&Bucket::new("d", BucketSpec { keys: 4 })).await?;
    cluster.eventually("d", |bucket: &Bucket| status(bucket).keys == 4).await?;
    cluster.eventually("d-map", |map: &ConfigMap| map.owner_references().len() == 1).await
}
