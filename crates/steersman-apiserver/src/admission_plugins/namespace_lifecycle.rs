//! `NamespaceLifecycle` keeps new objects out of namespaces that are missing or going, and keeps
//! the namespaces without which there is no cluster.
//!
//! What is created as an object of its own [`crate::write`] looks after, which has to look again
//! once it has written; here is what is created through a subresource, such as a binding.

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use super::stored;
use crate::admission_registration::Operation;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::{Cause, Result, Status};

/// The namespaces that stay.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Keeps namespaces, and new content out of those that go.
pub(super) struct NamespaceLifecycle;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    deletion_timestamp: Option<String>,
}

impl Plugin for NamespaceLifecycle {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        match write.operation {
            // What is created by itself looks at its namespace when it is written.
            Operation::Create => {
                write.is_of("", "bindings")
                    || (!write.subresource.is_empty() && write.resource.namespaced)
            }
            Operation::Update => false,
            Operation::Delete => write.is_of("", "namespaces"),
            Operation::Connect => false,
        }
    }

    fn admit<'a>(
        &'a self,
        write: Attributes<'a>,
        new: &'a mut Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let namespace: Metadata = stored::namespace(&write).await?;
            match namespace.deletion_timestamp {
                None => Ok(false),
                Some(_) => Err(going(&write, new)),
            }
        })
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        _new: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        let stays = write.operation == Operation::Delete && IMMORTAL.contains(&write.place.name);
        let why = "this namespace may not be deleted";
        let refused = stays.then(|| write.forbidden(&Value::Null, why));
        Box::pin(futures::future::ready(refused.map_or(Ok(()), Err)))
    }
}

fn going(write: &Attributes<'_>, object: &Value) -> Status {
    let namespace = write.place.namespace;
    let why = Cause::no_new_content(namespace);
    write.forbidden_because(object, &why, vec![Cause::namespace_terminating(namespace)])
}
