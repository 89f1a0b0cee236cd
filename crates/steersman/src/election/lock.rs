//! The requests for one Lease, each with a time limit and none retried.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::PostParams;
use kube::core::Status;

/// Reads and writes one Lease.
#[derive(Clone)]
pub(crate) struct Lock {
    api: Api<Lease>,
    name: Arc<str>,
    timeout: Duration,
}

/// Why a request for a Lease failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    /// There was no answer.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The server refused.
    #[error("{}", .0.message)]
    Refused(Box<Status>),
    /// The server could not be reached, or answered something else.
    #[error(transparent)]
    Request(kube::Error),
}

impl From<kube::Error> for LockError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            error => Self::Request(error),
        }
    }
}

impl LockError {
    /// Whether the server answered, so that asking it again makes sense.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// Whether somebody else wrote the Lease first, so that reading it again helps at once.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 409)
    }
}

impl Lock {
    pub(crate) fn new(
        client: kube::Client,
        namespace: &str,
        name: impl Into<Arc<str>>,
        timeout: Duration,
    ) -> Self {
        Self { api: Api::namespaced(client, namespace), name: name.into(), timeout }
    }

    pub(crate) async fn get(&self) -> Result<Option<Lease>, LockError> {
        self.limited(self.api.get_opt(&self.name)).await
    }

    pub(crate) async fn create(&self, lease: &Lease) -> Result<Lease, LockError> {
        self.limited(self.api.create(&PostParams::default(), lease)).await
    }

    /// Replaces the Lease if nobody changed it since it was read.
    pub(crate) async fn replace(&self, lease: &Lease) -> Result<Lease, LockError> {
        self.limited(self.api.replace(&self.name, &PostParams::default(), lease)).await
    }

    /// A request that is not answered in time is given up: its connection is not used again.
    async fn limited<T>(
        &self,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, LockError> {
        match tokio::time::timeout(self.timeout, request).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(LockError::Timeout(self.timeout)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_the_server_said() {
        let status = Status::failure("namespaces \"a\" not found", "NotFound").with_code(404);
        let error = LockError::from(kube::Error::Api(status.boxed()));
        assert_eq!(error.to_string(), "namespaces \"a\" not found");
        assert!(error.is_answer() && !error.is_conflict());
    }
}
