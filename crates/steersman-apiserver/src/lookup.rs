//! Single entries of the store: as far as this server has heard, or as they were.

use steersman_store::{Entry, RangeRequest, Revision, Store, StoreError};

/// The entry of a key, as far as this server has heard. It costs nothing to ask; who decides by
/// it must stand that another server has changed or removed it a moment ago.
pub(crate) async fn known(store: &dyn Store, key: &str) -> Result<Option<Entry>, StoreError> {
    read(store, key, None).await
}

/// The entry of a key as it was at a revision, which this server may yet have to hear of.
pub(crate) async fn at(
    store: &dyn Store,
    key: &str,
    revision: Revision,
) -> Result<Option<Entry>, StoreError> {
    read(store, key, Some(revision)).await
}

async fn read(
    store: &dyn Store,
    key: &str,
    at: Option<Revision>,
) -> Result<Option<Entry>, StoreError> {
    let prefix = key.to_owned();
    let request = RangeRequest { prefix, limit: 1, at, stale: true, ..RangeRequest::default() };
    let first = store.range(request).await?.entries.pop();
    Ok(first.filter(|entry| *entry.key == *key))
}
