//! How the system asks a program to stop.

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the exit code of a program is that was not given the time to stop.
const IMPATIENT: i32 = 1;

/// Ready when the process is asked to stop: Ctrl-C, or SIGTERM where that exists. Who asks once more
/// does not want to wait for all that stopping takes: then the process exits with the code 1,
/// wherever it is.
pub async fn shutdown_signal() {
    let mut requests = Requests::listen();
    requests.next().await;
    tokio::spawn(async move {
        requests.next().await;
        tracing::warn!("asked to stop once more, exit at once");
        std::process::exit(IMPATIENT);
    });
}

/// The requests to stop. None is missed between two that are waited for.
#[cfg(unix)]
struct Requests {
    /// `None` if the system does not let us listen.
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
}

#[cfg(unix)]
impl Requests {
    fn listen() -> Self {
        let listen = |kind| signal(kind).ok();
        Self {
            interrupt: listen(SignalKind::interrupt()),
            terminate: listen(SignalKind::terminate()),
        }
    }

    async fn next(&mut self) {
        tokio::select! {
            () = received(&mut self.interrupt) => {}
            () = received(&mut self.terminate) => {}
        }
    }
}

#[cfg(unix)]
async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}

/// The requests to stop, of which there is one sort.
#[cfg(not(unix))]
struct Requests;

#[cfg(not(unix))]
impl Requests {
    fn listen() -> Self {
        Self
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
