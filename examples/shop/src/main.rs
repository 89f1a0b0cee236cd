use k8s_openapi::api::apps::v1::Deployment;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use steersman::manifests::Manifests;
use steersman::prelude::*;
use tracing_subscriber::EnvFilter;

#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "demo.dev", version = "v1", kind = "Shop", namespaced, status = "ShopStatus")]
struct ShopSpec {
    replicas: i32,
}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
struct ShopStatus {
    available: i32,
}

/// Keeps one Deployment per Shop and reports how much of it is available.
async fn reconcile(shop: Arc<Shop>, ctx: Context<Shop>) -> Result<Next> {
    let labels = json!({"shop": shop.metadata.name});
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": shop.metadata.name},
        "spec": {"replicas": shop.spec.replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "shop", "image": "nginx:1.29"}]}}}
    }))?;
    let applied = ctx.apply(deployment).await?; // server-side apply, owned by `shop`
    let available = applied.status.and_then(|status| status.available_replicas).unwrap_or(0);
    ctx.status(ShopStatus { available }); // written when the reconcile ends, if it changed
    Ok(Next::Settled)
}

fn shops() -> Controller {
    Controller::of::<Shop>().owns::<Deployment>().reconcile(reconcile)
}

/// What a cluster must have before: `cargo run -- manifests | kubectl apply -f -`.
fn manifests() -> Manifests {
    Manifests::new("shop", "default").definition(Shop::crd()).controller(&shops())
}

/// Runs on the cluster of the current kubeconfig, or on the one it is deployed in.
#[tokio::main]
async fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("manifests") {
        print!("{}", manifests());
        return Ok(());
    }
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).init(); // try RUST_LOG=debug
    Manager::from_env().await?.with(shops()).run_until(shutdown_signal()).await
}

#[cfg(test)]
mod tests {
    use steersman_testkit::Cluster;

    use super::*;

    /// A whole cluster, in milliseconds, on virtual time. The controller may do what the manifests
    /// allow, and no more.
    #[steersman::test]
    async fn a_shop_opens(cluster: Cluster) -> Result<()> {
        cluster.deploy(&manifests()).await?.run(shops());
        cluster.client().create(&Shop::new("corner", ShopSpec { replicas: 3 })).await?;
        let open = |shop: &Shop| shop.status.as_ref().is_some_and(|status| status.available == 3);
        cluster.eventually("corner", open).await
    }
}
