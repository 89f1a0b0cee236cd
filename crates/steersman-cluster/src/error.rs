//! Why a cluster does not start.

use std::net::SocketAddr;

use steersman_apiserver::identity::IdentityError;
use steersman_apiserver::pki::PkiError;
use steersman_apiserver::status::Status;
use steersman_store::{StoreError, disk, etcd};

/// Why a cluster could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address to listen on is not to be had.
    #[error("cannot listen on {address}: {reason}; choose another address with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        reason: String,
    },
    /// The directory cannot be used.
    #[error("cannot open the data directory")]
    Disk(#[from] disk::OpenError),
    /// etcd cannot be used.
    #[error("cannot use etcd; check that it runs, its addresses and, for https, the certificates")]
    Etcd(#[from] etcd::ConnectError),
    /// What the store holds cannot be decrypted, or not be read at all.
    #[error("cannot read what is stored; check the providers of the encryption configuration")]
    Encryption(#[from] StoreError),
    /// The cluster's authority could not be read or made.
    #[error("cannot tell who the cluster is")]
    Identity(#[from] IdentityError),
    /// No certificates could be made.
    #[error("cannot make the certificates of the cluster")]
    Pki(#[from] PkiError),
    /// The API server could not write what every cluster has.
    #[error("cannot start the API server: {message}")]
    ApiServer {
        /// What it said.
        message: String,
    },
}

impl From<Status> for StartError {
    fn from(status: Status) -> Self {
        Self::ApiServer { message: status.to_string() }
    }
}
