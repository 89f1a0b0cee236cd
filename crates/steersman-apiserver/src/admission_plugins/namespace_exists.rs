//! `NamespaceExists` refuses whatever is done in a namespace that does not exist. What
//! `NamespaceLifecycle` refuses is more, and both are seldom on.

use futures::future::BoxFuture;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::stored;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;

/// Refuses writes in namespaces that do not exist.
pub(super) struct NamespaceExists;

impl Plugin for NamespaceExists {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        !write.place.namespace.is_empty() && write.resource.namespaced
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        _new: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let _: IgnoredAny = stored::namespace(&write).await?;
            Ok(())
        })
    }
}
