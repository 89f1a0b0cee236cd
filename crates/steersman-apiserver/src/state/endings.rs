//! Whether a namespace began to go between two moments, without a lock and without a read.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::metadata;
use crate::resource::Resource;

/// Counts writes that end namespaces.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    /// How many are being written. Raised before the write, lowered after `done` was raised.
    under_way: AtomicU64,
    /// How many have been written, or given up.
    done: AtomicU64,
}

/// A write that ends a namespace, as long as it is under way.
pub(crate) struct Ending<'a>(&'a Endings);

/// A moment in the count of endings; `None` while one was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(Option<u64>);

impl Endings {
    /// The count. The order of the two reads matters: an ending that is no longer under way is
    /// counted.
    pub(crate) fn moment(&self) -> Moment {
        let quiet = self.under_way.load(Ordering::SeqCst) == 0;
        let done = self.done.load(Ordering::SeqCst);
        Moment(quiet.then_some(done))
    }

    /// Whether no namespace began to go since a moment.
    pub(crate) fn none_since(&self, moment: Moment) -> bool {
        moment.0.is_some() && self.moment() == moment
    }

    /// Notes that a namespace has begun to go, as this server hears from the store.
    pub(crate) fn heard(&self) {
        self.done.fetch_add(1, Ordering::SeqCst);
    }

    /// Announces a write, if it ends a namespace.
    pub(crate) fn announce(
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
        let quiet = endings.moment();
        assert!(endings.none_since(quiet));
        endings.heard();
        assert!(!endings.none_since(quiet));
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
