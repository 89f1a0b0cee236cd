//! Runs the operator of Backups, or prints what its cluster must have before:
//! `backup manifests | kubectl apply -f -`.

use std::env;
use std::net::Ipv4Addr;

use backup::Folders;
use backup::operator::{manifests, operator, served};
use steersman::health::Liveness;
use steersman::manager::Site;
use steersman::prelude::*;
use tracing_subscriber::EnvFilter;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "manifests are printed when they are asked for")]
async fn main() -> Result<()> {
    // At one's desk, where the API server cannot reach them, there are none.
    let webhooks = match env::var("ENABLE_WEBHOOKS").as_deref() {
        Ok("false") => None,
        _ => Some(served()?),
    };
    if env::args().nth(1).as_deref() == Some("manifests") {
        print!("{}", manifests(webhooks.as_ref()));
        return Ok(());
    }
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).init();
    let store = Folders::new(env::var("BACKUP_STORE").as_deref().unwrap_or("/var/lib/backup"));
    let mut manager = operator(Manager::from_env().await?, store)
        .liveness(Liveness::default())
        .serve(Site::health((Ipv4Addr::UNSPECIFIED, 8081)));
    if let Some(webhooks) = webhooks {
        manager = manager.webhooks(webhooks);
    }
    manager.run_until(shutdown_signal()).await
}
