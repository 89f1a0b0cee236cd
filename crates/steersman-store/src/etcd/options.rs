//! How to reach etcd, and why that failed.

use std::fmt::Debug;
use std::time::Duration;

use crate::{HISTORY_BYTES, StoreError};

/// How to reach etcd, and how to use it.
#[derive(Clone)]
pub struct Options {
    /// The members' addresses: `https://10.0.0.1:2379`.
    pub endpoints: Vec<String>,
    /// Who signed the members' certificates, in PEM; `https` needs it.
    pub ca: Option<Vec<u8>>,
    /// Our own certificate chain and its key, in PEM.
    pub certificate: Option<(Vec<u8>, Vec<u8>)>,
    /// A user, who may read and write all keys, and the password.
    pub user: Option<(String, String)>,
    /// How much history to keep in etcd, and how often to stand for the election of who compacts
    /// it; `None` leaves that to others.
    pub compaction: Option<Duration>,
    /// How long a request may take, all attempts together.
    pub request_timeout: Duration,
    /// How many bytes of the past are kept in memory at most, for watches; etcd itself may keep more.
    pub history_bytes: u64,
    /// How many revisions' changes to keep in memory for watches.
    #[doc(hidden)]
    pub history: u64,
    /// Stands before every key in etcd: gives tests that share an etcd a place each.
    #[doc(hidden)]
    pub root: String,
    /// What all keys begin with; others are not seen and cannot be written.
    #[doc(hidden)]
    pub prefix: String,
}

impl Options {
    /// The usual choices for these members.
    pub fn new<E: Into<String>>(endpoints: impl IntoIterator<Item = E>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            ca: None,
            certificate: None,
            user: None,
            compaction: Some(Duration::from_secs(300)),
            request_timeout: Duration::from_secs(10),
            history_bytes: HISTORY_BYTES,
            history: 100_000,
            root: String::new(),
            prefix: "/registry/".into(),
        }
    }
}

/// Without the secrets.
impl Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("endpoints", &self.endpoints)
            .field("user", &self.user.as_ref().map(|(name, _)| name))
            .finish_non_exhaustive()
    }
}

/// Why a store on etcd could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The options name no member.
    #[error("no endpoint of etcd is given")]
    NoEndpoints,
    /// An address or what belongs to it cannot be used.
    #[error("etcd's endpoint {endpoint} cannot be used: {reason}")]
    InvalidEndpoint {
        /// The address.
        endpoint: String,
        /// What is wrong.
        reason: String,
    },
    /// etcd does not answer, or not as it should.
    #[error("cannot open the store on etcd at {endpoints}")]
    Store {
        /// The members that were asked.
        endpoints: String,
        /// What happened.
        source: StoreError,
    },
}

impl ConnectError {
    /// What an error means to whoever gave these options.
    pub(super) fn of(options: &Options, error: StoreError) -> Self {
        let source = match error {
            // A member that wants to see a certificate just ends the connection.
            StoreError::Unavailable { reason }
                if options.ca.is_some() && options.certificate.is_none() =>
            {
                let hint = "etcd may want to see a client's certificate, and none is given";
                StoreError::Unavailable { reason: format!("{reason} ({hint})") }
            }
            error => error,
        };
        Self::Store { endpoints: options.endpoints.join(","), source }
    }
}
