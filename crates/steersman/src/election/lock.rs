//! The requests for one Lease, each with a time limit and none retried.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::PostParams;

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
    /// The server refused, or could not be reached.
    #[error(transparent)]
    Request(#[from] kube::Error),
}

impl LockError {
    /// Whether the server answered, so that asking it again makes sense.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, Self::Request(kube::Error::Api(_)))
    }

    /// Whether somebody else wrote the Lease first, so that reading it again helps at once.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Request(kube::Error::Api(status)) if status.code == 409)
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
