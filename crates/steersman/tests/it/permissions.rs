//! The inferred permissions suffice: whatever the framework does for a controller, it may do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Secret, Service};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, Patch};
use kube::{CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use steersman::events::NewEvent;
use steersman::manifests::{Manifests, rule};
use steersman::shard::Sharding;
use steersman::webhook::{
    AdmissionRequest, ClientConfig, Defaulter, Denied, SharedCa, WebhookServer,
};
use steersman::{Context, Controller, ListOptions, Manager, Next, ObjectKey, Result};
use steersman_testkit::{Cluster, Fault, Faults};

#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "demo.example.com", version = "v1", kind = "Till", namespaced)]
#[kube(status = "TillStatus")]
struct TillSpec {
    rounds: i32,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct TillStatus {
    rounds: i32,
}

impl Defaulter for Till {
    fn set_defaults(&mut self, _: &AdmissionRequest) -> Result<(), Denied> {
        Ok(())
    }
}

fn config_map(name: &str, round: i32) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.into());
    map.data = Some(BTreeMap::from([("round".to_owned(), round.to_string())]));
    map
}

/// Does everything that one can do with what was declared.
async fn reconcile(till: Arc<Till>, ctx: Context<Till>) -> Result<Next> {
    let round = till.spec.rounds;
    ctx.apply(config_map("applied", round)).await?;
    let ring = |map: &mut ConfigMap| {
        map.data = config_map("", round).data;
        Ok(())
    };
    ctx.create_or_update(config_map("updated", 0), ring).await?;
    ctx.create_or_patch(config_map("patched", 0), ring).await?;
    let patch = Patch::Merge(json!({"metadata": {"labels": {"round": round.to_string()}}}));
    let applied = ObjectKey { namespace: ctx.key().namespace.clone(), name: "applied".into() };
    ctx.patch::<ConfigMap, _>(&applied, &patch).await?;
    ctx.world().want(config_map("wanted", round)).settle().await?;
    let created = ctx.create(config_map(&format!("created-{round}"), round)).await;
    match created {
        Ok(map) => {
            ctx.delete(&map).await?;
        }
        Err(error) if error.is_already_exists() => {}
        Err(error) => return Err(error),
    }
    ctx.live().list::<ConfigMap>(&ListOptions::namespace("default")).await?;
    ctx.prune(|map: &ConfigMap| !map.name_any().starts_with("created")).await?;
    let nodes = ctx.list::<Node>()?;
    for _ in 0..3 {
        ctx.event(NewEvent::normal("Rang").action("Ring").note(format!("{} nodes", nodes.len())));
    }
    ctx.status(TillStatus { rounds: round });
    Ok(Next::Settled)
}

async fn clean_up(_: Arc<Till>, ctx: Context<Till>) -> Result<()> {
    ctx.prune(|_: &ConfigMap| false).await.map(drop)
}

fn tills() -> Controller {
    let woken = |_: &Secret| None::<ObjectKey>;
    Controller::of::<Till>()
        .owns::<ConfigMap>()
        .owns_metadata::<Service>()
        .watches(woken)
        .reads::<Node>()
        .cleanup("demo.example.com/till", clean_up)
        .reconcile(reconcile)
}

fn manifests() -> Manifests {
    Manifests::new("tills", "operators").definition(Till::crd()).controller(&tills())
}

/// Lets a till ring twice and go.
async fn ring(cluster: &Cluster) -> Result<()> {
    let rung = |rounds| {
        move |till: &Till| till.status.as_ref().is_some_and(|status| status.rounds == rounds)
    };
    cluster.client().create(&Till::new("till", TillSpec { rounds: 1 })).await?;
    cluster.eventually("till", rung(1)).await?;
    let again = Patch::Merge(json!({"spec": {"rounds": 2}}));
    cluster.client().patch::<Till, _>("till", &again).await?;
    cluster.eventually("till", rung(2)).await?;
    cluster.advance(Duration::from_secs(60)).await; // Events are written in the background
    cluster.client().delete::<Till>("till", &DeleteParams::default()).await?;
    cluster.gone::<Till>("till").await
}

#[steersman::test]
async fn of_a_controller_with_everything(cluster: Cluster) -> Result<()> {
    cluster.deploy(&manifests()).await?.run(tills());
    ring(&cluster).await?;
    let events = cluster.client().list::<Event>(&ListOptions::default()).await?;
    assert!(events.iter().any(|event| event.reason.as_deref() == Some("Rang")), "{events:#?}");
    Ok(())
}

/// Without any of them it is told of just that one.
#[steersman::test]
async fn none_of_which_can_be_left_out(cluster: Cluster) -> Result<()> {
    for resource in [
        "configmaps",
        "events.events.k8s.io",
        "nodes",
        "secrets",
        "services",
        "tills.demo.example.com",
        "tills.demo.example.com/status",
    ] {
        let fork = cluster.fork().await?;
        let deployed = fork.deploy(&manifests()).await?;
        let mut role: ClusterRole = fork.client().get("tills").await?.unwrap();
        let left_out = rule([""; 0], resource);
        for rule in
            role.rules.iter_mut().flatten().filter(|it| it.api_groups == left_out.api_groups)
        {
            let left_out = left_out.resources.as_ref().unwrap();
            rule.resources.as_mut().unwrap().retain(|resource| !left_out.contains(resource));
        }
        role.rules.as_mut().unwrap().retain(|rule| rule.resources != Some(Vec::new()));
        fork.client().update(&role).await?;
        deployed.run(tills());
        fork.client().create(&Till::new("till", TillSpec { rounds: 1 })).await?;
        fork.advance(Duration::from_secs(120)).await;
        let missing: Vec<String> = deployed.missing().into_iter().map(|it| it.resource).collect();
        assert_eq!(missing, [resource]);
    }
    Ok(())
}

/// On gaps and conflicts, objects are listed and read again.
#[steersman::test]
async fn of_a_controller_that_meets_faults(cluster: Cluster) -> Result<()> {
    let deployed = cluster.deploy(&manifests()).await?;
    let faults = Faults::seeded(3).with(Fault::Malformed, 0.2).all(0.1);
    let running = Manager::new(deployed.client_with(&faults)).with(tills()).start();
    cluster.advance(Duration::from_secs(60)).await;
    cluster.client().create(&Till::new("till", TillSpec { rounds: 1 })).await?;
    cluster.advance(Duration::from_secs(600)).await;
    faults.heal();
    cluster.client().delete::<Till>("till", &DeleteParams::default()).await?;
    cluster.gone::<Till>("till").await?;
    running.stop().await;
    assert_eq!(deployed.missing(), []);
    Ok(())
}

#[steersman::test]
async fn of_a_program_that_works_in_one_namespace(cluster: Cluster) -> Result<()> {
    cluster.deploy(&manifests().in_namespaces(["default"])).await?.run(tills());
    ring(&cluster).await
}

/// Events about what is in no namespace are in `default`, wherever the program works.
#[steersman::test]
async fn of_a_program_in_one_namespace_that_reconciles_what_is_in_none(
    cluster: Cluster,
) -> Result<()> {
    let reconcile = async |_: Arc<Namespace>, ctx: Context<Namespace>| {
        ctx.event(NewEvent::normal("Seen").action("See"));
        Ok(Next::Settled)
    };
    let namespaces = || Controller::of::<Namespace>().named("namespaces").reconcile(reconcile);
    let manifests = Manifests::new("spaces", "operators").controller(&namespaces());
    let deployed = cluster.deploy(&manifests.in_namespaces(["elsewhere"])).await?;
    deployed.run(namespaces());
    cluster.advance(Duration::from_secs(60)).await;
    let events = cluster.client().list::<Event>(&ListOptions::namespace("default")).await?;
    assert!(events.iter().any(|event| event.reason.as_deref() == Some("Seen")), "{events:#?}");
    Ok(())
}

#[steersman::test]
async fn of_replicas_that_share_keys(cluster: Cluster) -> Result<()> {
    let deployed = cluster.deploy(&manifests().leader_election()).await?;
    let sharded = |identity: &str| {
        let sharding = Sharding::new("operators", "tills").identity(identity);
        let reconcile = async |_: Arc<Till>, ctx: Context<Till>| -> Result<Next> {
            ctx.status(TillStatus { rounds: ctx.object().spec.rounds });
            Ok(Next::Settled)
        };
        let controller = Controller::of::<Till>().sharded(sharding).reconcile(reconcile);
        Manager::new(deployed.client()).with(controller).start()
    };
    let replicas = ["one", "two"].map(sharded);
    cluster.client().create(&Till::new("till", TillSpec { rounds: 1 })).await?;
    cluster.eventually("till", |till: &Till| till.status.is_some()).await?;
    for replica in replicas {
        replica.stop().await;
    }
    Ok(())
}

/// The authority is kept in a Secret, and those who are to trust it are told.
#[steersman::test(nodes = 0, controllers = false)]
async fn of_replicas_that_share_an_authority(cluster: Cluster) -> Result<()> {
    let server = || -> Result<WebhookServer> {
        let shared = SharedCa::for_hosts(["tills.operators.svc"]);
        let lifetime = Duration::from_secs(6 * 3600);
        let server = WebhookServer::builder("tills").defaults::<Till>();
        server.in_process().shared_ca(shared.lifetime(lifetime)).build()
    };
    let reached = ClientConfig::service("operators", "tills");
    let deployed = cluster.deploy(&manifests().webhooks(&server()?, &reached)).await?;
    let start = || -> Result<_> { Ok(Manager::new(deployed.client()).webhooks(server()?).start()) };
    let replicas = [start()?, start()?];
    cluster.advance(Duration::from_secs(24 * 3600)).await; // several authorities come and go
    let secret = cluster.client().get::<Secret>("operators/tills-webhook-ca").await?;
    assert!(secret.is_some());
    for replica in replicas {
        replica.ready().await?;
    }
    Ok(())
}
