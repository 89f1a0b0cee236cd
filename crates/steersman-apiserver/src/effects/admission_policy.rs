//! Admission policies and their bindings: what is said about writes from now on.

use futures::future::BoxFuture;

use crate::state::effects::{Effects, Written};

/// Evaluates the policies that were written.
pub(super) struct Policies;

impl Effects for Policies {
    fn follow(&self, _gone: bool) -> bool {
        true
    }

    fn written<'a>(&'a self, written: Written<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(error) = written.server.load_policies().await {
                tracing::error!(%error, "cannot list admission policies");
            }
        })
    }
}
