//! What can go wrong when a container runtime is asked.

use std::path::PathBuf;
use std::time::Duration;

use tonic::Code;

/// Why a container runtime has not done what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CriError {
    /// Nobody listens at the socket, or not until the end.
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

    /// Whether the runtime does not know what it was asked. containerd 2.2 says so of some calls with
    /// another code.
    pub(crate) fn is_unimplemented(&self) -> bool {
        match self {
            Self::Refused { code: Code::Unimplemented, .. } => true,
            Self::Refused { code: Code::Unknown, message } => message.contains("not implemented"),
            _ => false,
        }
    }

    /// What the runtime said, without how it was transported.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Refused { message, .. } => message.clone(),
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_runtime_does_not_know_is_told_from_what_it_refuses() {
        let refused = |code, message: &str| CriError::Refused { code, message: message.into() };
        assert!(refused(Code::Unimplemented, "unknown method").is_unimplemented());
        assert!(refused(Code::Unknown, "not implemented yet").is_unimplemented());
        assert!(!refused(Code::Unknown, "no such cgroup").is_unimplemented());
        assert!(!refused(Code::Internal, "not implemented").is_unimplemented());
    }
}
