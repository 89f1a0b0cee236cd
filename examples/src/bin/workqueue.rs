//! Prints every Pod of the current kubeconfig's cluster that changes, until Ctrl-C.

use std::sync::Arc;

use steersman::{Result, shutdown_signal};
use steersman_examples::workqueue::{PodLoop, print};

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().init();
    let client = kube::Client::try_default().await?;
    let pods = PodLoop::start(client, Arc::new(print)).await;
    tokio::select! {
        () = pods.run_worker() => {}
        () = shutdown_signal() => pods.stop(),
    }
    Ok(())
}
