//! The members of the cluster: a channel to each, and which of them is asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::{ConnectError, Options};

/// How long to wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// A connection on which nothing comes for this long is asked whether it lives. etcd ends
/// connections that ask more often than every five seconds.
const SILENCE_MAX: Duration = Duration::from_millis(5500);
/// How long it may take to say so.
const SIGN_OF_LIFE_MAX: Duration = Duration::from_secs(3);
/// Etcd answers a list in one message; lists are read in pages far below this.
const WINDOW: u32 = 8 * 1024 * 1024;

/// Every member, in the order in which they were named.
pub(super) struct Members {
    members: Vec<Member>,
    /// Who is asked until it fails.
    current: AtomicUsize,
}

/// One member. Its channel connects when it is used, and again when the connection is lost.
pub(super) struct Member {
    pub(super) address: String,
    pub(super) channel: Channel,
}

impl Members {
    pub(super) fn new(options: &Options) -> Result<Self, ConnectError> {
        let members: Vec<Member> =
            options.endpoints.iter().map(|name| member(name, options)).collect::<Result<_, _>>()?;
        if members.is_empty() {
            return Err(ConnectError::NoEndpoints);
        }
        Ok(Self { members, current: AtomicUsize::new(0) })
    }

    pub(super) fn count(&self) -> usize {
        self.members.len()
    }

    /// The member to ask, and its place.
    pub(super) fn current(&self) -> (usize, &Member) {
        let place = self.current.load(Ordering::Relaxed);
        (place, &self.members[place])
    }

    /// Asks the next one from now on, unless somebody else has moved on already.
    pub(super) fn avoid(&self, failed: usize) {
        let next = (failed + 1) % self.members.len();
        let moved =
            self.current.compare_exchange(failed, next, Ordering::Relaxed, Ordering::Relaxed);
        if moved.is_ok() && next != failed {
            let from = &self.members[failed].address;
            let to = &self.members[next].address;
            tracing::debug!(from, to, "switched to another etcd member");
        }
    }
}

fn member(name: &str, options: &Options) -> Result<Member, ConnectError> {
    let name = name.trim();
    let invalid = |reason: &dyn std::fmt::Display| ConnectError::InvalidEndpoint {
        endpoint: name.to_owned(),
        reason: reason.to_string(),
    };
    let uri = if name.contains("://") { name.to_owned() } else { format!("http://{name}") };
    let mut endpoint = Endpoint::from_shared(uri)
        .map_err(|error| invalid(&error))?
        .connect_timeout(CONNECT_MAX)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(SILENCE_MAX)
        .keep_alive_timeout(SIGN_OF_LIFE_MAX)
        .keep_alive_while_idle(false)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW);
    match endpoint.uri().scheme_str() {
        Some("http") => {}
        Some("https") => {
            let tls = tls(options).ok_or_else(|| {
                invalid(&"https needs the certificate of the authority that signed etcd's")
            })?;
            endpoint = endpoint.tls_config(tls).map_err(|error| invalid(&sources(&error)))?;
        }
        _ => return Err(invalid(&"it must begin with http:// or https://")),
    }
    Ok(Member { address: name.to_owned(), channel: endpoint.connect_lazy() })
}

fn tls(options: &Options) -> Option<ClientTlsConfig> {
    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(options.ca.as_ref()?));
    Some(match &options.certificate {
        Some((chain, key)) => tls.identity(Identity::from_pem(chain, key)),
        None => tls,
    })
}

/// An error with all that lies beneath it.
fn sources(error: &dyn std::error::Error) -> String {
    let all = std::iter::successors(Some(error), |error| error.source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
