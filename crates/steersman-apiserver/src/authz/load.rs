//! Reading roles and bindings from the store, and hearing what others write there.

use serde_json::Value;
use steersman_store::{Event, RangeRequest, Revision, Store, StoreError};

use super::rbac::{KINDS, Rbac};

/// The folders of roles and bindings.
pub(crate) fn folders() -> [String; 4] {
    KINDS.map(|plural| format!("/registry/{plural}/"))
}

impl Rbac {
    /// Reads all roles and bindings that the store holds, and says of which revision that is.
    pub(crate) async fn load(&self, store: &dyn Store) -> Result<Revision, StoreError> {
        let mut objects = Vec::new();
        let mut at = None;
        for prefix in folders() {
            let state = store.range(RangeRequest { prefix, at, ..RangeRequest::default() }).await?;
            at = Some(state.revision);
            let decoded = |entry: &steersman_store::Entry| {
                Some((entry.key.to_string(), decode(&entry.value)?))
            };
            objects.extend(state.entries.iter().filter_map(decoded));
        }
        let revision = at.unwrap_or(Revision(0));
        self.replace(&objects, revision);
        Ok(revision)
    }

    /// Takes in what a watch of one of the [`folders`] tells.
    pub(crate) fn follow(&self, event: &Event) {
        let object = event.current.as_ref().and_then(|entry| decode(&entry.value));
        self.hear(&event.key, object.as_ref(), event.revision);
    }
}

/// A stored object; one that cannot be read allows nothing.
fn decode(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok()
}
