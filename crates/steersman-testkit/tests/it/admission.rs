//! What admission plug-ins mean to whoever works with Pods.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use serde_json::json;
use steersman::{Context, Controller, Next, Result};
use steersman_testkit::Cluster;
use tokio::time::Instant;

use crate::config_map;

fn pod(namespace: &str, name: &str) -> Pod {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    });
    serde_json::from_value(pod).unwrap()
}

fn runs(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
}

#[steersman::test]
async fn a_pod_in_a_new_namespace_waits_for_its_account_and_no_time_passes(
    cluster: Cluster,
) -> Result<()> {
    let mut shop = Namespace::default();
    shop.metadata.name = Some("shop".into());
    cluster.client().create(&shop).await?;
    let begin = Instant::now();
    let created = cluster.client().create(&pod("shop", "web")).await?;
    assert_eq!(begin.elapsed(), Duration::ZERO);
    let spec = created.spec.unwrap();
    assert_eq!(spec.service_account_name.as_deref(), Some("default"));
    let volumes = spec.volumes.unwrap_or_default();
    assert!(volumes[0].name.starts_with("kube-api-access-"), "{volumes:?}");
    assert_eq!((spec.priority, spec.tolerations.unwrap_or_default().len()), (Some(0), 2));
    cluster.eventually("shop/web", runs).await
}

#[steersman::test(controllers = false)]
async fn where_nobody_makes_accounts_no_pod_needs_one(cluster: Cluster) -> Result<()> {
    let created = cluster.client().create(&pod("default", "web")).await?;
    let spec = created.spec.unwrap();
    assert_eq!((spec.service_account_name, spec.volumes), (None, None));
    Ok(())
}

#[steersman::test]
async fn who_owns_a_pod_does_not_fight_with_plug_ins_over_it(cluster: Cluster) -> Result<()> {
    static RECONCILES: AtomicUsize = AtomicUsize::new(0);
    let owner = |map: &ConfigMap| map.metadata.name.as_deref() == Some("owner");
    cluster.run(Controller::of::<ConfigMap>().only(owner).owns::<Pod>().reconcile(
        async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| -> Result<Next> {
            RECONCILES.fetch_add(1, Ordering::Relaxed);
            let mut wanted = pod("default", "web");
            wanted.metadata.namespace = None;
            ctx.world().want(wanted).settle().await?;
            Ok(Next::After(Duration::from_secs(60)))
        },
    ));
    cluster.client().create(&config_map("owner")).await?;
    cluster.eventually("web", runs).await?;
    cluster.settle().await;
    let before: Pod = cluster.client().get("web").await?.unwrap();
    let reconciles = RECONCILES.load(Ordering::Relaxed);
    cluster.advance(Duration::from_secs(600)).await;
    let after: Pod = cluster.client().get("web").await?.unwrap();
    assert_eq!(after.metadata.resource_version, before.metadata.resource_version);
    assert!(RECONCILES.load(Ordering::Relaxed) >= reconciles + 9, "it looks again all the time");
    Ok(())
}
