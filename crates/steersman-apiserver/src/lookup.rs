//! Single entries of the store, as far as this server has heard or as they were, how far the store
//! is, and how much there is in a folder.

use steersman_store::{Entry, RangeRequest, Revision, Store, StoreError, WatchRequest};

/// The entry of a key, as far as this server has heard. It costs nothing to ask; who decides by
/// it must stand that another server has changed or removed it a moment ago.
pub(crate) async fn known(store: &dyn Store, key: &str) -> Result<Option<Entry>, StoreError> {
    store.known(key, None).await
}

/// The entry of a key as it was at a revision, which this server may yet have to hear of.
pub(crate) async fn at(
    store: &dyn Store,
    key: &str,
    revision: Revision,
) -> Result<Option<Entry>, StoreError> {
    store.known(key, Some(revision)).await
}

/// How much there is in a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stock {
    pub(crate) objects: u64,
    /// The bytes of one, on average, by the first of them.
    pub(crate) size: u64,
}

/// By how many entries is told how large all are.
const SAMPLE: usize = 8;

/// How much there is in a folder, as far as this server has heard.
pub(crate) async fn stock(store: &dyn Store, prefix: String) -> Result<Stock, StoreError> {
    let (count, stale) = (true, true);
    let request = RangeRequest { prefix, limit: SAMPLE, count, stale, ..RangeRequest::default() };
    let page = store.range(request).await?;
    let seen = page.entries.len() as u64;
    let bytes: u64 = page.entries.iter().map(|entry| entry.value.len() as u64).sum();
    let objects = seen + page.remaining.unwrap_or(0) as u64;
    Ok(Stock { objects, size: bytes.checked_div(seen).unwrap_or(0) })
}

/// The latest revision of the store, or the latest that this server has heard of.
pub(crate) async fn revision(store: &dyn Store, stale: bool) -> Result<Revision, StoreError> {
    // A folder that holds nothing: the answer is only the revision.
    let prefix = "\0".to_owned();
    let nothing = RangeRequest { prefix, limit: 1, stale, ..RangeRequest::default() };
    Ok(store.range(nothing).await?.revision)
}

/// Waits until something below one of these prefixes is written after a revision. What looks at
/// the store again and again waits for this first: while nothing changes there is nothing to see,
/// and an idle hour costs nothing. Returns as well if the store cannot tell; so whoever asks again
/// pauses in between.
pub(crate) async fn moved_past(store: &dyn Store, prefixes: &[&str], revision: Revision) {
    let mut watches = Vec::new();
    for prefix in prefixes {
        let request = WatchRequest { prefix: (*prefix).to_owned(), after: revision };
        let Ok(watch) = store.watch(request).await else { return };
        watches.push(watch);
    }
    let changes = watches.iter_mut().map(|watch| watch.next());
    let _ = futures::future::select_all(changes).await;
}
