//! The server's process: serves Pods, and writes many of them at once when told to.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use steersman_bench_server::Server;

use super::wire::{Line, Phase, nanoseconds, tell};

/// Serves until standard input ends. Each line there is a number of Pods to write at once.
pub(crate) async fn run(kubeconfig: &Path, pods: usize) -> Result<(), String> {
    let server = Server::start(Arc::new(steersman::clock::now), pods, kubeconfig).await?;
    tell(&Line::Serving { kubeconfig: kubeconfig.display().to_string() })?;
    let mut commands = commands();
    while let Some(count) = commands.recv().await {
        // Everything else is done before the first write.
        let writes = server.prepare(count, &Phase::Burst.mark(0)).await?;
        let begun = nanoseconds();
        server.write(writes).await?;
        tell(&Line::Begun { at: begun })?;
    }
    Ok(())
}

/// The commands from standard input, which can only be read by a thread.
fn commands() -> tokio::sync::mpsc::Receiver<usize> {
    let (send, receive) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        let lines = std::io::stdin().lock().lines().map_while(Result::ok);
        for count in lines.filter_map(|line| line.trim().parse().ok()) {
            if send.blocking_send(count).is_err() {
                return;
            }
        }
    });
    receive
}
