//! Objects live in namespaces that exist and stay.
//!
//! A create reads its namespace once, before it writes. That the namespace did not begin to go
//! meanwhile, unseen by whoever empties it, is told by [`Endings`]: only if a namespace began to
//! go between the two moments is it read again.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::Writer;
use crate::metadata;
use crate::resource::Resource;
use crate::status::{Cause, Named, Result, Status};

/// Counts writes that end namespaces.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    /// How many are being written. Raised before the write, lowered after `done` was raised.
    under_way: AtomicU64,
    /// How many have been written, or given up.
    done: AtomicU64,
}

/// A write that ends a namespace, as long as it is under way.
pub(super) struct Ending<'a>(&'a Endings);

/// A moment in the count of endings; `None` while one was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment(Option<u64>);

impl Endings {
    /// The count. The order of the two reads matters: an ending that is no longer under way is
    /// counted.
    fn moment(&self) -> Moment {
        let quiet = self.under_way.load(Ordering::SeqCst) == 0;
        let done = self.done.load(Ordering::SeqCst);
        Moment(quiet.then_some(done))
    }

    /// Whether no namespace began to go since a moment.
    fn none_since(&self, moment: Moment) -> bool {
        moment.0.is_some() && self.moment() == moment
    }

    /// Announces a write, if it ends a namespace.
    pub(super) fn announce(
        &self,
        resource: &Resource,
        object: &Value,
        gone: bool,
    ) -> Option<Ending<'_>> {
        let ends = resource.is("", "namespaces") && (gone || metadata::is_deleting(object));
        ends.then(|| {
            self.under_way.fetch_add(1, Ordering::SeqCst);
            Ending(self)
        })
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.done.fetch_add(1, Ordering::SeqCst);
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Deserialize)]
struct Namespace {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    deletion_timestamp: Option<IgnoredAny>,
}

/// Refuses to create an object in a namespace that does not exist or is being deleted. Gives the
/// moment of which this is true.
pub(super) async fn accepts(writer: &Writer<'_>, namespace: &str, name: &str) -> Result<Moment> {
    let moment = writer.server.endings.moment();
    if !writer.resource.namespaced {
        return Ok(moment);
    }
    let missing = Named { group: "", resource: "namespaces", name: namespace };
    let entry = writer.server.get(&format!("/registry/namespaces/{namespace}")).await?;
    let entry = entry.ok_or_else(|| Status::not_found(missing))?;
    let stored: Result<Namespace, _> = serde_json::from_slice(&entry.value);
    if stored.is_ok_and(|namespace| namespace.metadata.deletion_timestamp.is_some()) {
        return Err(terminating(writer, namespace, name));
    }
    Ok(moment)
}

/// Refuses an object, written since a moment, whose namespace has begun to go since.
pub(super) async fn still_accepts(
    writer: &Writer<'_>,
    namespace: &str,
    name: &str,
    since: Moment,
) -> Result<()> {
    if !writer.resource.namespaced || writer.server.endings.none_since(since) {
        return Ok(());
    }
    accepts(writer, namespace, name).await.map(drop)
}

fn terminating(writer: &Writer<'_>, namespace: &str, name: &str) -> Status {
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let cause = Cause {
        reason: "NamespaceTerminating".to_owned(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".to_owned(),
    };
    Status::forbidden(writer.resource.named(name), &why, vec![cause])
}

#[cfg(test)]
mod tests {
    use super::{Endings, Moment};
    use crate::registry::Registry;
    use serde_json::json;

    #[test]
    fn a_namespace_that_ends_meanwhile_or_at_this_moment_is_noticed() {
        let endings = Endings::default();
        let table = Registry::new().table();
        let namespaces = table.get("", "v1", "namespaces").unwrap();
        let before = endings.moment();
        assert!(endings.none_since(before));
        let going = json!({"metadata": {"deletionTimestamp": "2025-01-01T00:00:00Z"}});
        let ending = endings.announce(namespaces, &going, false);
        assert!(ending.is_some());
        assert_eq!(endings.moment(), Moment(None));
        assert!(!endings.none_since(before));
        drop(ending);
        assert!(!endings.none_since(before));
        assert!(endings.none_since(endings.moment()));
    }

    #[test]
    fn only_what_ends_a_namespace_counts() {
        let endings = Endings::default();
        let table = Registry::new().table();
        let namespaces = table.get("", "v1", "namespaces").unwrap();
        let pods = table.get("", "v1", "pods").unwrap();
        assert!(endings.announce(namespaces, &json!({}), false).is_none());
        assert!(endings.announce(pods, &json!({}), true).is_none());
        assert!(endings.announce(namespaces, &json!({}), true).is_some());
    }
}
