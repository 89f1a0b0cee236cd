//! Keeps the Pods of PodSets on the cluster of the current kubeconfig, until Ctrl-C. With the
//! argument `manifests` it only prints what a cluster must be told before:
//! `cargo run -p steersman-examples --bin replica_set manifests | kubectl apply -f -`.

use steersman::prelude::*;
use steersman_examples::replica_set::{manifests, pod_sets};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("manifests") {
        print_manifests();
        return Ok(());
    }
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).init();
    Manager::from_env().await?.with(pod_sets()).run_until(shutdown_signal()).await
}

#[expect(clippy::print_stdout, reason = "this is what was asked for")]
fn print_manifests() {
    print!("{}", manifests());
}
