//! Serves tides for the cluster of the kubeconfig, which runs on this machine: `steersman up`, then
//! `cargo run -p tides`, then `kubectl get tides`.

use std::sync::Arc;

use kube::Client;
use steersman_apiserver::Clock;
use steersman_apiserver::pki::Pki;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt().init();
    let client = Client::try_default().await?;
    let pki = Pki::new(&["tides.default.svc".to_owned()])?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tides::server::register(&client, port, &pki.ca).await?;
    let shutdown = CancellationToken::new();
    let ending = shutdown.clone();
    tokio::spawn(async move {
        let _ = tokio::signal::ctrl_c().await;
        ending.cancel();
    });
    #[expect(clippy::disallowed_methods, reason = "a server by itself has no framework's clock")]
    let clock: Clock = Arc::new(jiff::Timestamp::now);
    tides::server::serve(client, clock, (listener, pki), shutdown).await
}
