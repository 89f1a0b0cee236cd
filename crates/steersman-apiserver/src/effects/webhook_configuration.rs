//! Configurations of webhooks: who is asked about writes from now on.

use futures::future::BoxFuture;

use crate::state::effects::{Effects, Written};

/// Asks whom the written configurations name.
pub(super) struct Configurations;

impl Effects for Configurations {
    fn follow(&self, _gone: bool) -> bool {
        true
    }

    fn written<'a>(&'a self, written: Written<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(error) = written.server.load_webhooks().await {
                tracing::error!(%error, "cannot list webhook configurations");
            }
        })
    }
}
