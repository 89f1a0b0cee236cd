//! The network's way in: HTTPS over hyper and rustls, HTTP/1.1 and HTTP/2.
//!
//! A [connection] that fails ends alone. [places] has who may stay connected, so that nobody who
//! comes has to wait. When the token is cancelled the server is no longer ready, stops to accept,
//! ends the watches, takes itself out of the endpoints, tells those who are connected to go
//! elsewhere, lets the requests under way finish, and gives up on them after a deadline.

mod connection;
mod heads;
mod impatient;
mod places;
mod trouble;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::connection::{Door, Stop, connect};
use self::places::{Limits, Places};
use self::trouble::{News, Trouble};
use crate::pki::ServerTls;
use crate::server::ApiServer;

/// How many connections are open at once, if there are files enough; each costs memory before it
/// asks for anything.
const CONNECTIONS_MAX: usize = 10_000;

/// How long a server that stops may take to say so in the store, which may not answer.
const WITHDRAWAL: Duration = Duration::from_secs(1);

/// How many files are left for other things than connections.
const OTHER_FILES: usize = 256;

/// How a server listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How long requests under way may take to finish when the server stops.
    pub grace: Duration,
    /// How many connections there may be; as many as there are files for, up to ten thousand, if
    /// nothing is said.
    pub connections: Option<usize>,
}

impl From<Duration> for Options {
    fn from(grace: Duration) -> Self {
        Self { grace, connections: None }
    }
}

/// Serves HTTPS until `shutdown` is cancelled, and then for at most the grace of the options.
pub async fn serve(
    api: ApiServer,
    listener: TcpListener,
    tls: ServerTls,
    shutdown: CancellationToken,
    options: impl Into<Options>,
) {
    let options = options.into();
    if let Ok(address) = listener.local_addr() {
        api.advertise(address);
    }
    let reception = Reception {
        door: Arc::new(Door {
            acceptor: TlsAcceptor::from(Arc::new(tls.config)),
            clients: tls.clients,
        }),
        places: Places::new(Limits::of(options.connections.unwrap_or_else(connections_max))),
        connections: TaskTracker::new(),
        stop: Stop::default(),
        api,
    };
    shutdown.run_until_cancelled(reception.accept_all(&listener)).await;
    drop(listener);
    reception.end(options.grace).await;
}

/// How many connections there are files for.
fn connections_max() -> usize {
    let files = files_max().unwrap_or(usize::MAX);
    files.saturating_sub(OTHER_FILES).max(files / 2).min(CONNECTIONS_MAX)
}

/// How many files this process may open.
#[cfg(unix)]
fn files_max() -> Option<usize> {
    use rustix::process::{Resource, getrlimit};
    usize::try_from(getrlimit(Resource::Nofile).current?).ok()
}

#[cfg(not(unix))]
fn files_max() -> Option<usize> {
    None
}

/// Takes those who come, and sees them off.
struct Reception {
    api: ApiServer,
    door: Arc<Door>,
    places: Arc<Places>,
    connections: TaskTracker,
    stop: Stop,
}

impl Reception {
    async fn accept_all(&self, listener: &TcpListener) {
        let mut failing = Trouble::default();
        let mut crowded = Trouble::default();
        loop {
            match listener.accept().await {
                Ok((stream, address)) => {
                    if failing.passed() == News::Over {
                        tracing::info!("connections are accepted again");
                    }
                    self.take(stream, address, &mut crowded);
                }
                Err(error) => self.wait(&error, &mut failing).await,
            }
        }
    }

    fn take(&self, stream: TcpStream, address: SocketAddr, crowded: &mut Trouble) {
        let Some(place) = self.places.enter(address.ip()) else {
            if let News::Happened(times) = crowded.happened() {
                tracing::warn!(%address, times, "no place for a connection: all are busy");
            }
            return;
        };
        crowded.passed();
        let door = Arc::clone(&self.door);
        let api = self.api.clone();
        let stop = self.stop.clone();
        self.connections.spawn(async move {
            connect(api, door, stream, Arc::clone(&place), stop).await;
            place.left();
        });
    }

    /// Waits after a failure, most likely for lack of files, of which some may become free.
    async fn wait(&self, error: &io::Error, failing: &mut Trouble) {
        let Some(backoff) = trouble::backoff(error) else { return };
        if let News::Happened(times) = failing.happened() {
            tracing::warn!(%error, times, "cannot accept connections");
        }
        self.places.make_room();
        tokio::time::sleep(backoff).await;
    }

    /// Ends in order, in so long at most.
    async fn end(&self, grace: Duration) {
        self.api.shutdown();
        self.stop.in_order.cancel();
        self.connections.close();
        // Others may be there for the clients, who then should not come here any more.
        let withdrawn = tokio::time::timeout(grace.min(WITHDRAWAL), self.api.withdraw());
        let finished = tokio::time::timeout(grace, self.connections.wait());
        let (withdrawn, finished) = tokio::join!(withdrawn, finished);
        match withdrawn {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot remove this server from its endpoints");
            }
            Err(_) => tracing::warn!("timed out removing this server from its endpoints"),
        }
        if finished.is_err() {
            tracing::warn!("shutdown deadline exceeded, dropping open connections");
        }
        self.stop.at_once.cancel();
    }
}
