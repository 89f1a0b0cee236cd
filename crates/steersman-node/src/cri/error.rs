//! What can go wrong when a container runtime is asked.

use std::path::PathBuf;
use std::time::Duration;

use tonic::Code;

/// Why a container runtime has not done what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CriError {
    /// Nobody listens at the socket.
    #[error(
        "no container runtime at {}: install one (`apt-get install containerd runc \
         containernetworking-plugins`) and start it (`containerd`), or name its socket ({why})",
        socket.display()
    )]
    Absent {
        /// Where it was looked for.
        socket: PathBuf,
        /// What the attempt to connect said.
        why: String,
    },
    /// It did not answer in time. What was asked may still be done.
    #[error("rpc error: code = DeadlineExceeded desc = {method} took longer than {within:?}")]
    Deadline {
        /// What it was asked.
        method: &'static str,
        /// How long it had.
        within: Duration,
    },
    /// It refused, or failed.
    #[error("rpc error: code = {code:?} desc = {message}")]
    Refused {
        /// In one word.
        code: Code,
        /// As it said it.
        message: String,
    },
    /// It is still doing what somebody else has asked.
    #[error("the container {container} is being started by an earlier call")]
    Starting {
        /// Its id.
        container: String,
    },
}

impl CriError {
    /// Whether what was asked about is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { code: Code::NotFound, .. })
    }

    /// What the runtime said, without how it was transported.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Refused { message, .. } => message.clone(),
            other => other.to_string(),
        }
    }
}
