//! Keeps the Pods of PodSets on the cluster of the current kubeconfig, until Ctrl-C.

use kube::CustomResourceExt;
use steersman::prelude::*;
use steersman_examples::replica_set::{PodSet, pod_sets};

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().init();
    let manager = Manager::from_env().await?;
    manager.client().apply(&PodSet::crd()).await?;
    manager.with(pod_sets()).run_until(shutdown_signal()).await
}
