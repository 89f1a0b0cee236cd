//! Prints every Pod of the current kubeconfig's cluster that changes, until Ctrl-C.

use std::sync::Arc;

use steersman::{Result, shutdown_signal};
use steersman_examples::workqueue::{PodLoop, print};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).init();
    let client = kube::Client::try_default().await?;
    let pods = PodLoop::start(client, Arc::new(print)).await;
    let stop = async {
        shutdown_signal().await;
        pods.stop(); // the worker ends after the Pod that it has in hand
    };
    tokio::join!(pods.run_worker(), stop);
    Ok(())
}
