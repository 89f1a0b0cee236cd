//! How a machine becomes a member of a cluster of which it knows an address and a bootstrap token,
//! as kubeadm and a kubelet do it.
//!
//! [`discovery`] finds out whether the server at that address is the right one. Then a key is made,
//! and a certificate for it [asked for](signing) with the token; both are [kept](place) in the
//! agent's directory, where an agent that is started anew finds them, and [renewed](renewal) before
//! they end. What a cluster must hold before anybody can join is an [`Invitation`].

mod access;
mod authorities;
mod discovery;
mod invitation;
mod place;
mod renewal;
mod signing;
mod token;

use std::path::{Path, PathBuf};

pub use authorities::{Authorities, NoAuthority};
pub use invitation::{Invitation, Invited};
pub use renewal::Membership;
pub use token::{BootstrapToken, NoToken};

/// How a machine tells whether it talks to the right cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Who signed the certificate of the server.
    Authorities(Authorities),
    /// The hashes (`sha256:…`) of the keys of those who may have; the server itself tells the rest,
    /// and signs it with the token.
    Hashes(Vec<String>),
}

/// What a machine is told so that it can join a cluster.
#[derive(Clone, Debug)]
pub struct Join {
    /// Where the API server is, as `https://HOST:PORT`.
    pub server: String,
    /// With what a certificate is asked for.
    pub token: BootstrapToken,
    /// How the right cluster is known.
    pub trust: Trust,
}

/// Why a machine is no member of a cluster.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The cluster says nothing that could be checked.
    #[error("cannot read the ConfigMap kube-public/cluster-info of {server}: {why}")]
    NoClusterInfo {
        /// Whom it was asked of.
        server: String,
        /// What was said to it.
        why: String,
    },
    /// What the cluster says of itself is not signed with the token.
    #[error(
        "token id {id:?} is invalid for this cluster or it has expired; \
         `steersman token create` makes a new one"
    )]
    NotSigned {
        /// Of the token.
        id: String,
    },
    /// It is another cluster.
    #[error(
        "cluster CA found in cluster-info ConfigMap is invalid: none of the public keys \
         {found:?} are pinned"
    )]
    NotPinned {
        /// The hashes of the keys that it has.
        found: Vec<String>,
    },
    /// The server cannot be asked.
    #[error("{server}: {why}")]
    Server {
        /// Where it is.
        server: String,
        /// What went wrong.
        why: String,
    },
    /// Somebody does not want this node.
    #[error("the request {name} for a certificate was refused: {why}")]
    Refused {
        /// Of the CertificateSigningRequest.
        name: String,
        /// What it says.
        why: String,
    },
    /// What was to be kept cannot be, or what was kept cannot be read.
    #[error("{}: {why}", path.display())]
    Files {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A key or a request could not be made.
    #[error("cannot make a request for a certificate: {0}")]
    Key(String),
}

impl JoinError {
    fn server(server: &str, error: &dyn std::error::Error) -> Self {
        Self::Server { server: server.to_owned(), why: with_sources(error) }
    }

    fn files(path: &Path, error: impl std::fmt::Display) -> Self {
        Self::Files { path: path.to_owned(), why: error.to_string() }
    }
}

/// An error and what lies behind it.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let reason = error.to_string();
        if !text.contains(&reason) {
            text = format!("{text}: {reason}");
        }
        source = error.source();
    }
    text
}
