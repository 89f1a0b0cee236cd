//! Objects that have to be looked at because of something that is no object.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures::{StreamExt, stream};
use steersman::ObjectKey;
use steersman::source::Source;
use tokio::sync::Notify;

/// The keys of objects that are to be looked at again. Clones share them; one that is named several
/// times is looked at once, so that there are never more than objects.
#[derive(Clone, Default)]
pub(crate) struct Wakes {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    keys: Mutex<BTreeSet<ObjectKey>>,
    news: Notify,
}

impl Wakes {
    /// Asks for these objects.
    pub(crate) fn wake(&self, keys: impl IntoIterator<Item = ObjectKey>) {
        let mut waiting = self.shared.keys.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.extend(keys);
        if !waiting.is_empty() {
            self.shared.news.notify_one();
        }
    }

    /// The source by which a controller hears of them.
    pub(crate) fn source(&self, name: &str) -> Source {
        let keys = stream::unfold(Arc::clone(&self.shared), |shared| async move {
            shared.news.notified().await;
            let keys =
                std::mem::take(&mut *shared.keys.lock().unwrap_or_else(PoisonError::into_inner));
            Some((stream::iter(keys), shared))
        });
        Source::stream(keys.flatten()).named(name)
    }
}
