//! The server's process: serves objects, and writes many of them at once when told to.

use std::path::Path;
use std::sync::Arc;

use steersman_bench_server::{Objects, Server};

use super::lines;
use super::wire::{Line, Phase, nanoseconds, tell};

/// Serves until standard input ends. Each line there is a phase and a number of objects to
/// write at once.
pub(crate) async fn run(kubeconfig: &Path, objects: Objects) -> Result<(), String> {
    let server = Server::start(Arc::new(steersman::clock::now), objects, kubeconfig).await?;
    tell(&Line::Serving { kubeconfig: kubeconfig.display().to_string() })?;
    let mut commands = lines();
    while let Some(line) = commands.recv().await {
        let Some((phase, count)) = command(&line) else { continue };
        // Everything else is done before the first write.
        let writes = server.prepare(count, &phase.mark(nanoseconds())).await?;
        let begun = nanoseconds();
        server.write(writes).await?;
        tell(&Line::Begun { at: begun })?;
    }
    Ok(())
}

fn command(line: &str) -> Option<(Phase, usize)> {
    let (phase, count) = line.trim().split_once(' ')?;
    Some((Phase::named(phase)?, count.parse().ok()?))
}
